"""`thund demo`: the flights of 2013, three kills, and four questions whose answers are shown."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thund_contract.vocabulary import END

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from thund_conformance.demo.flights import Flights
    from thund_conformance.demo.storm import Event, Kill
    from thund_conformance.verify.models import Model
    from thund_conformance.verify.report import Report

EPOCH_ROWS = 8192

DEFINITION = """\
# Delays of the flights that left New York in 2013, by carrier and hour of scheduled departure.
name = "flights"
mode = "incremental"
state_root = "{run}/state"
key = ["carrier"]

[source]
kind = "files"
path = "data"
partition_by = "file"       # one log per airport
order_by = "departed"       # rows arrive as the flights really left

[watermark]
column = "scheduled"
allowed_lateness = "2h"

[window]
kind = "tumbling"
size = "1h"

[aggregates]
flights = "count"
total = "sum(delay)"
least = "min(delay)"
most = "max(delay)"
mean = "mean(delay)"

[sink]
kind = "duckdb"
path = "{run}/delays.duckdb"
table = "delays"

[trigger]
rows = {rows}
once = true
drain = true
"""


@click.command()
@click.option("--seed", default=2013, show_default=True, help="Chooses the moments of the kills.")
@click.option("--out", default="demo-out", show_default=True, type=click.Path(path_type=Path))
def demo(seed: int, out: Path) -> None:
    """Stream 328,521 real flights, kill the engine three times, and show that nothing was lost."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=110)  # a log has room for the tables
    show = _Demo(console, seed, out)
    verdict = show.run()
    click.echo(verdict.line())
    if not verdict.good:
        raise click.exceptions.Exit(1)


@dataclass(slots=True)
class Verdict:
    """The last line, and why it says FAIL where it does."""

    numbers: dict[str, int] = field(default_factory=dict)
    answers: dict[str, bool] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Every question was asked and answered with yes."""
        return set(self.answers) == {"identical", "sql", "audit", "tlc"} and all(
            self.answers.values()
        )

    def line(self) -> str:
        """`demo: PASS rows=… … tlc=yes`, the same words each time."""
        facts = [f"{name}={number}" for name, number in self.numbers.items()]
        facts += [f"{name}={'yes' if good else 'no'}" for name, good in self.answers.items()]
        return f"demo: {'PASS' if self.good else 'FAIL'} {' '.join(facts)}"


class _Demo:
    def __init__(self, console: Console, seed: int, out: Path) -> None:
        self.console, self.seed, self.out = console, seed, out.resolve()
        self.verdict = Verdict()
        self.epochs = self.duplicates = 0

    def run(self) -> Verdict:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        shutil.rmtree(self.out, ignore_errors=True)
        began = time.monotonic()
        tlc = _Tlc()
        tlc.start()
        columns = (TextColumn("{task.description:<28}"), BarColumn(30), MofNCompleteColumn())
        with Progress(*columns, console=self.console, transient=True) as bar:
            flights = self._flights()
            self._calm(bar, flights)
            kills = self._storm(bar, flights)
            self._compare(kills)
            self._sql()
            self._audit(bar)
            self._tlc(bar, tlc)
        self._late_windows()
        self.console.print(
            f"[dim]{time.monotonic() - began:.0f} s; all of it lies in {self.out.name}/[/dim]"
        )
        return self.verdict

    # ---- the runs --------------------------------------------------------------------------------

    def _flights(self) -> Flights:
        from thund_conformance.demo.flights import write_logs

        flights = write_logs(self.out / "data")
        self.epochs = -(-flights.rows // EPOCH_ROWS)
        self.console.print(
            f"[bold]source[/bold]     {flights.rows:,} flights of 2013 in {len(flights.origins)} logs "
            f"({', '.join(flights.origins)}), in the order of their real departure; "
            f"{flights.cancelled:,} cancelled flights never left"
        )
        for run in ("calm", "storm"):
            text = DEFINITION.format(run=run, rows=EPOCH_ROWS)
            (self.out / run).mkdir()
            (self.out / f"{run}.toml").write_text(text)
        return flights

    def _calm(self, bar: Bar, flights: Flights) -> None:
        from thund_conformance.demo.storm import run_calm

        task = bar.add_task("a run that is not killed", total=flights.rows)
        run_calm(self.out / "calm.toml", lambda event: self._tell(bar, task, event))

    def _storm(self, bar: Bar, flights: Flights) -> list[Kill]:
        from thund_conformance.demo.storm import run_storm

        task = bar.add_task("a run that is killed", total=flights.rows)
        kills = run_storm(
            self.out / "storm.toml",
            seed=self.seed,
            epochs=self.epochs,
            tell=lambda event: self._tell(bar, task, event),
        )
        for kill in kills:
            self.console.print(
                f"[bold red]SIGKILL[/bold red]    life {kill.life}, in or after epoch {kill.epoch}: {kill.where}"
            )
        return kills

    # ---- the questions -----------------------------------------------------------------------------

    def _compare(self, kills: list[Kill]) -> None:
        from thund_conformance.demo import checks

        calm, storm = (checks.committed(self.out / run / "state") for run in ("calm", "storm"))
        self.verdict.numbers = {
            "rows": storm.total("accepted"),
            "admitted": storm.total("admitted"),
            "late": storm.total("late"),
            "invalid": storm.total("invalid"),
            "duplicates": self.duplicates,
            "epochs": storm.epochs,
            "kills": len(kills),
        }
        found = checks.same_results(self._database("calm"), self._database("storm"))
        found += checks.same_progress(calm, storm)
        if not storm.drained or storm.watermark != END:
            found.append("the killed run did not drain")
        self._answer(
            "identical", "table, late rows, W and counters equal those of the calm run", found
        )

    def _sql(self) -> None:
        from thund_conformance.demo import checks

        found = checks.same_as_sql(self.out / "data", self._database("storm"))
        self._answer("sql", "the table equals a plain SQL GROUP BY over the admitted rows", found)

    def _audit(self, bar: Bar) -> None:
        from thund_conformance.audit import audit_history, open_place

        history, source = open_place(str(self.out / "storm.toml"))
        task = bar.add_task("audit by the reference", total=history.highest())
        found = audit_history(
            history, source, progress=lambda epoch, rows: bar.update(task, completed=epoch)
        )
        text = f"the reference, run over {found.epochs} epochs again, gives every outbox and state"
        self._answer("audit", text, list(found.differences))

    def _tlc(self, bar: Bar, tlc: _Tlc) -> None:
        task = bar.add_task("TLC checks the specs", total=None)
        tlc.join()
        bar.update(task, total=1, completed=1)
        if tlc.report is None:
            self._answer("tlc", "TLC passes the specifications", [str(tlc.error)])
            return
        bad = [f"{r.model.name}: {r.finding.found}" for r in tlc.report.failures]
        count, states = len(tlc.report.results), tlc.report.states
        text = f"TLC passes every specification: {count} models, {states:,} states"
        text += f" (`thund verify --full` runs all {tlc.known})"
        self._answer("tlc", text, bad)

    def _answer(self, name: str, claim: str, found: list[str]) -> None:
        self.verdict.answers[name] = not found
        mark = "[green]yes[/green]" if not found else "[red]NO [/red]"
        self.console.print(f"[bold]{name:<10}[/bold] {mark} {claim}")
        for line in found[:5]:
            self.console.print(f"           {line}", markup=False)

    # ---- what there is to see ------------------------------------------------------------------------

    def _late_windows(self) -> None:
        import datetime as dt
        import zoneinfo

        from rich.table import Table

        from thund_conformance.demo import checks
        from thund_conformance.demo.flights import ZONE

        table = Table(title="Hours that lost most flights to lateness (left over 2 h late)")
        for name in ("hour of 2013, New York", "carrier"):
            table.add_column(name)
        for name in ("in the table", "late, dropped", "mean delay", "worst delay"):
            table.add_column(name, justify="right")
        zone = zoneinfo.ZoneInfo(ZONE)
        for row in checks.busiest_late(self.out / "data", self._database("storm")):
            start_ms, carrier, flights, late, mean, worst = row
            hour = dt.datetime.fromtimestamp(start_ms / 1000, zone).strftime("%a %d %b, %H:00")
            shown = "" if mean is None else f"{mean:.0f} min"
            table.add_row(hour, carrier, str(flights), str(late), shown, f"{worst} min")
        self.console.print(table)

    def _database(self, run: str) -> Path:
        return self.out / run / "delays.duckdb"

    def _tell(self, bar: Bar, task: TaskID, event: Event) -> None:
        """Draw the progress; the counter of duplicates is the last life's."""
        if event["event"] in {"progress", "done"}:
            accepted, duplicates = event["accepted"], event["duplicates"]
            assert isinstance(accepted, int)
            assert isinstance(duplicates, int)
            self.duplicates = duplicates
            bar.update(task, completed=accepted)


def _is_main(model: Model) -> bool:
    """A model that must hold and is a module's own, or the refinement."""
    own = model.name == model.module.removesuffix(".tla").removeprefix("MC").lower()
    return not model.broken and not model.witness and (own or model.name.endswith("_refines"))


class _Tlc(threading.Thread):
    """TLC works on the other core while the engine runs."""

    def __init__(self) -> None:
        super().__init__(name="tlc", daemon=True)
        self.report: Report | None = None
        self.error: BaseException | None = None
        self.known = 0

    def run(self) -> None:
        from thund_conformance.verify.environment import find_specs, read_environment
        from thund_conformance.verify.models import load_models
        from thund_conformance.verify.report import verify_models

        try:
            specs = find_specs(read_environment())
            models = load_models(specs)
            self.known = len(models)
            names = [m.name for m in models if _is_main(m)]
            self.report = verify_models(specs, names=names, jobs=1)  # the engine has the other core
        except BaseException as error:  # noqa: BLE001 - shown as the answer to the question
            self.error = error
