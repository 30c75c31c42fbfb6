"""The `thund` command; other packages add sub-commands by entry point, loaded only when asked for."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys

import click

from thund_contract.errors import ThundError

GROUP = "thund.commands"
OWN = {
    "run": "thund.commands:run",
    "state": "thund.commands:state",
    "status": "thund.commands:status",
    "warm": "thund.commands:warm",
}
"""thund's own commands; imported, like the others, only when they are called."""


class _Commands(click.Group):
    """A group whose commands are entry points: `thund --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*OWN, *self._points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OWN:
            module, _, name = OWN[cmd_name].partition(":")
            command = getattr(importlib.import_module(module), name)
        elif cmd_name in self._points():
            command = self._points()[cmd_name].load()
        else:
            return None
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, SUMMARIES.get(name, "")) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _points(self) -> dict[str, importlib.metadata.EntryPoint]:
        return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}


SUMMARIES = {
    "audit": "Run the committed history again through the reference, and compare.",
    "conform": "Run the conformance suite against an engine.",
    "demo": "Flights of 2013, three kills, and the proof that nothing was lost.",
    "laws": "The table of laws, and where each one lives.",
    "run": "Run a pipeline on its source.",
    "state": "Look after a state folder: rebuild a table from it.",
    "status": "What a pipeline has committed: epochs, watermark, partitions.",
    "verify": "Check every specification with TLC.",
    "warm": "Compile the kernels into numba's cache.",
}
"""One line for each command, so that help needs no import."""


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="thund")
@click.option("--traceback", is_flag=True, help="Show the Python traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, *, traceback: bool) -> None:
    """Event-time windows that keep their laws: model-checked, replayable, exactly once."""
    ctx.obj = {"traceback": traceback}


def main() -> None:
    """Run the command; an error of thund's own is four plain lines, without a traceback."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except ThundError as error:
        if "--traceback" in sys.argv:
            raise
        click.secho(f"error[{error.code}]: {error}", fg="red", err=True)
        sys.exit(1)
