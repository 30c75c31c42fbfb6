"""The law table has no empty cell for the laws that this version promises."""

from click.testing import CliRunner


def test_required_every_law_has_its_faces() -> None:
    from thund_conformance.verify.laws_cli import laws

    result = CliRunner().invoke(laws, ["--check"])
    assert result.exit_code == 0, result.output
