"""What pytest has to know of thund: the law marker, the options, the seed, and failing scenarios.

Heavy imports wait until a test of the suite is really there.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "suite"
FAILURES = Path(tempfile.gettempdir()) / "thund-failures"
DEFAULT_EXAMPLES = 100
OUT_OF_PROCESS = ("test_bad_input.py", "test_symbolic.py")
"""Tests that start other processes: slow, and blind to a bug that was put into this one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of their own group."""
    group = parser.getgroup("thund")
    group.addoption(
        "--thund-examples",
        type=int,
        default=DEFAULT_EXAMPLES,
        help="scenarios that each generated test draws (default: %(default)s)",
    )
    group.addoption(
        "--thund-rewrite",
        action="store_true",
        help="write the reference's outcome into the golden files",
    )
    group.addoption(
        "--thund-reach",
        action="store_true",
        help="print which situations the session reached, and how often",
    )
    group.addoption("--thund-law", metavar="ID", help="run only the tests that are marked with it")
    group.addoption(
        "--thund-engine",
        action="append",
        metavar="NAME",
        help="judge this engine, a built-in name or module:attribute, and no other",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """The marker, the Hypothesis profile, and a seed that is known before the first draw."""
    config.addinivalue_line("markers", "law(id): the laws of thund that a test is about")
    if getattr(config.option, "hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "thund",
        max_examples=config.getoption("--thund-examples"),
        deadline=None,
        derandomize=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("thund")


def pytest_report_header(config: pytest.Config) -> str:
    """How to draw the same scenarios again."""
    seed, examples = config.option.hypothesis_seed, config.getoption("--thund-examples")
    return f"thund: --hypothesis-seed={seed} --thund-examples={examples}"


JUDGED = ("engine_name", "slow_engine_name", "candidate_name")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of `engine_name` judges each engine, one of `candidate_name` all but the reference.

    One of `slow_engine_name` takes its time: it judges the reference and the implementation.
    """
    from thund_conformance import engines

    config = metafunc.config
    every: tuple[str, ...] = engines.BUILT_IN
    few: tuple[str, ...] = (engines.REFERENCE, engines.THUND)
    if config.getoption("--thund-law"):
        every = few = (engines.THUND,)
    asked = tuple(config.getoption("--thund-engine") or ())
    every, few = asked or every, asked or few
    compared = tuple(name for name in every if name != engines.REFERENCE)
    for fixture, names in zip(JUDGED, (every, few, compared), strict=True):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of one law or engine where asked; the look at what was reached comes last."""
    kept = [item for item in items if _wanted(item, config)]
    dropped = [item for item in items if not _wanted(item, config)]
    kept.sort(key=_place)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
    items[:] = kept


def _place(item: pytest.Item) -> int:
    """Written tests before drawn and slow ones where one law is asked for; the look back at the end."""
    if item.path.name == "test_reach.py":
        return 2
    if not item.config.getoption("--thund-law"):
        return 0
    others = item.path.name in OUT_OF_PROCESS
    return int(others or hasattr(getattr(item, "obj", None), "hypothesis"))


def _wanted(item: pytest.Item, config: pytest.Config) -> bool:
    law = config.getoption("--thund-law")
    if law and not any(law in mark.args for mark in item.iter_markers("law")):
        return False
    judged = set(getattr(item, "fixturenames", ())) & set(JUDGED)
    return bool(judged) or not config.getoption("--thund-engine")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget what the test before this one ran."""
    if item.path.parent == SUITE:
        from thund_conformance import judge

        judge.latest()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test shows the scenario that it ran last, as a golden file, and where it lies."""
    report = yield
    if report.when == "call" and report.failed and item.path.parent == SUITE:
        from thund_conformance import judge

        found = judge.latest()
        if found is not None:
            text = judge.as_golden(found)
            report.sections.append((f"scenario, ready to commit: {_keep(item, text)}", text))
    return report


def _keep(item: pytest.Item, text: str) -> Path:
    FAILURES.mkdir(exist_ok=True)
    path = FAILURES / (re.sub(r"[^A-Za-z0-9]+", "-", item.name).strip("-") + ".txt")
    path.write_text(text, encoding="utf-8")
    return path


def whole_suite(session: pytest.Session) -> bool:
    """Whether every test of the suite runs in this session."""
    files = {item.path for item in session.items if item.path.parent == SUITE}
    narrowed = session.testscollected < len(session.items) or any(
        session.config.getoption(name) for name in ("--thund-law", "--thund-engine", "-k", "-m")
    )
    return files == set(SUITE.glob("test_*.py")) and not narrowed


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The table of what was reached, where asked."""
    if config.getoption("--thund-reach"):
        from thund_conformance import reach

        terminalreporter.section("situations reached")
        terminalreporter.write_line(reach.table())
