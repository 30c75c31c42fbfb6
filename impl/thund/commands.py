"""`thund run` and `thund status`: a definition or a state folder in, what a person wants to see out."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thund_contract.vocabulary import END, NEVER

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console
    from rich.table import Table

    from thund.runners.local import Progress
    from thund.standing import PartitionStanding, Standing

FAILPOINT = "THUND_FAILPOINT"
"""Environment: "step:epoch", such as "outbox:12". The process says "paused" after that durable step
and waits to be killed: so crash tests can strike between two steps of a commit."""


@click.command()
@click.argument("definition", type=click.Path(path_type=Path))
@click.option("--drain", is_flag=True, help="Close all windows at the end of what is there.")
@click.option("--json", "as_json", is_flag=True, help="One JSON line per step, for programs.")
def run(definition: Path, *, drain: bool, as_json: bool) -> None:
    """Run the pipeline that DEFINITION, a TOML file, describes."""
    import msgspec

    from thund.definition import Pipeline
    from thund.launch import run as run_pipeline

    pipeline = Pipeline.from_toml(definition)
    if drain:
        trigger = msgspec.structs.replace(pipeline.trigger, drain=True, once=True)
        pipeline = msgspec.structs.replace(pipeline, trigger=trigger)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    show = _Show(as_json=as_json, title=pipeline.name)
    with show:
        ran = run_pipeline(pipeline, progress=show.progress, durable=show.durable, stop=stop)
    if ran.table is not None and not as_json:
        _print_table(ran.table)
        for name, table in ran.more.items():
            click.echo(f"{name}:")
            _print_table(table)
    show.done(ran.progress, mode=ran.mode, note=ran.note)


SHOWN_ROWS = 20


def _print_table(table: pa.Table) -> None:
    """The first rows of a table in memory, which nobody could look at later."""
    import pyarrow as pa
    from rich.table import Table

    shown = table.drop_columns(["_gar_id", "_epoch"])
    order = [(name, "ascending") for name in shown.schema.names if name.startswith("window_")]
    shown = shown.sort_by(order).slice(0, SHOWN_ROWS)
    out = Table(*shown.schema.names)
    texts = [shown.column(name).cast(pa.string()).to_pylist() for name in shown.schema.names]
    for row in zip(*texts, strict=True):
        out.add_row(*("" if text is None else text for text in row))
    wide_console().print(out)
    if table.num_rows > SHOWN_ROWS:
        click.echo(f"and {table.num_rows - SHOWN_ROWS} more rows")


def wide_console() -> Console:
    """A console that gives tables room where nobody's terminal sets the width."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=120)


class _Show:
    """The progress of a run: a line that lives on a terminal, or JSON lines."""

    def __init__(self, *, as_json: bool, title: str) -> None:
        self.as_json, self.title = as_json, title
        self.failpoint = os.environ.get(FAILPOINT)

    def __enter__(self) -> None:
        if self.as_json:
            return
        from rich.console import Console
        from rich.status import Status

        self.status = Status(f"{self.title}: starting", console=Console(stderr=True))
        self.status.start()

    def __exit__(self, *_: object) -> None:
        if not self.as_json:
            self.status.stop()

    def progress(self, now: Progress) -> None:
        if self.as_json:
            self._say("progress", **dataclasses.asdict(now))
        else:
            self.status.update(
                f"{self.title}: {now.accepted:,} rows, {now.late:,} late, {now.invalid:,} invalid, "
                f"W {show_time(now.watermark)}, epoch {now.epoch}, {now.open_groups:,} open groups"
            )

    def durable(self, step: str, epoch: int) -> None:
        if self.as_json:
            self._say("durable", step=step, epoch=epoch)
        if self.failpoint == f"{step}:{epoch}":
            self._say("paused", step=step, epoch=epoch)
            signal.pause()

    def done(self, last: Progress, *, mode: str, note: str | None) -> None:
        if self.as_json:
            self._say("done", mode=mode, note=note, **dataclasses.asdict(last))
            return
        if note:
            click.secho(note, fg="yellow", err=True)
        rarer = ("filtered", "repeated", "late_window_drops")
        more = "".join(f"{name}={n} " for name in rarer if (n := getattr(last, name)))
        click.echo(
            f"run: rows={last.accepted} admitted={last.admitted} late={last.late} "
            f"invalid={last.invalid} {more}duplicates={last.duplicates} epochs={last.epoch} "
            f"watermark={show_time(last.watermark)} drained={'yes' if last.drained else 'no'} "
            f"mode={mode}"
        )

    def _say(self, event: str, **facts: object) -> None:
        print(json.dumps({"event": event, **facts}), flush=True)  # noqa: T201 - the --json protocol


@click.command()
@click.argument("place")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON document.")
def status(place: str, *, as_json: bool) -> None:
    """Where the pipeline in PLACE, a TOML file or a state folder, stands; what holds its watermark."""
    import msgspec

    from thund.launch import status as status_of

    found = status_of(place)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    elif found is None:
        click.echo(f"{place}: no committed epoch yet")
    else:
        _print_standing(found)


@click.group()
def state() -> None:
    """Look after the state folder of an incremental pipeline."""


@state.command()
@click.argument("definition", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask before the table is emptied.")
def rebuild(definition: Path, *, yes: bool) -> None:
    """Empty the table of the pipeline in DEFINITION, and fill it from the committed outboxes."""
    from thund.definition import Pipeline
    from thund.launch import rebuild_sink

    pipeline = Pipeline.from_toml(definition)
    if not yes:
        click.confirm(f"empty the table of {pipeline.name} and fill it again?", abort=True)
    click.echo(f"rebuild: epochs={rebuild_sink(pipeline)}")


SHOWN_WINDOWS = 10


def _print_standing(found: Standing) -> None:
    from rich.table import Table

    console = wide_console()
    console.print(
        f"[bold]{found.pipeline}[/bold] epoch {found.epoch}, generation {found.generation}, "
        f"W {show_time(found.watermark)}{', drained' if found.drained else ''}"
    )
    console.print(_partition_table(found.partitions))
    for line in _about_holder(found):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if not found.waiting:
        return
    several = any(w.operator for w in found.waiting)
    table = Table(*(["window"] if several else []), "window start", "window end")
    table.add_column("groups", justify="right")
    for w in found.waiting[:SHOWN_WINDOWS]:
        own = [w.operator or "the first"] if several else []
        table.add_row(*own, show_time(w.start_ms), show_time(w.end_ms), f"{w.groups:,}")
    console.print(table)
    if len(found.waiting) > SHOWN_WINDOWS:
        click.echo(f"and {len(found.waiting) - SHOWN_WINDOWS:,} more windows")


def _partition_table(partitions: tuple[PartitionStanding, ...]) -> Table:
    from rich.table import Table

    names = ["accepted", "admitted", "late", "invalid"]
    rarer = ("filtered", "repeated", "late_window_drops")
    names += [name for name in rarer if any(getattr(p, name) for p in partitions)]
    table = Table("partition", "assigned", "last offset", "largest event time")
    for name in ("behind", *names):
        table.add_column(name.replace("_", " "), justify="right")
    for p in partitions:
        largest = "none yet" if p.max_event_time is None else show_time(p.max_event_time)
        behind = "" if p.behind_ms is None else _span(p.behind_ms)
        table.add_row(
            p.partition,
            ("yes" if p.assigned else "no") + (", idle" if p.idle else ""),
            str(p.last),
            largest + (" (holds W)" if p.holds else ""),
            behind,
            *(f"{getattr(p, name):,}" for name in names),
        )
    return table


def _about_holder(found: Standing) -> list[str]:
    """Which partition holds W, since when, and what its going would do. Law: W7."""
    if found.holder is None:
        assigned = any(p.assigned for p in found.partitions)
        why = "every assigned partition is idle" if assigned else "no partition is assigned"
        return ["W has ended." if found.drained else f"No partition holds W: {why}."]
    when = ""
    if found.since is not None:
        at = found.since.written_ms
        before = " at the latest" if found.since.earlier else ""
        when = f" since epoch {found.since.epoch}{before}"
        when += "" if at is None else f", committed {show_time(at)}"
    lines = [f"{found.holder} holds W{when}."]
    if found.bound is not None and found.bound < found.watermark:
        lines.append(
            f"W stands above what {found.holder} allows ({show_time(found.bound)}): it stays until "
            "that has passed it."
        )
    assert found.without is not None
    if found.without == found.watermark:
        return [*lines, "Without it W would be the same."]
    groups = sum(w.groups for w in found.waiting)
    waiting = f"{len(found.waiting):,} open windows with {groups:,} groups wait for it"
    return [*lines, f"Without it W would be {show_time(found.without)}; {waiting}."]


def _span(ms: int) -> str:
    """A length of time; two event times of the declared range are never too far apart for it."""
    import datetime as dt

    return str(dt.timedelta(milliseconds=ms))


def show_time(time_ms: int) -> str:
    """Milliseconds as UTC text; the bounds of W by their names."""
    if time_ms in (NEVER, END):
        return "never" if time_ms == NEVER else "end"
    import datetime as dt

    try:
        moment = dt.datetime.fromtimestamp(time_ms / 1000, tz=dt.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S")


@click.command()
def warm() -> None:
    """Compile the kernels into numba's cache, so that the next run starts quickly."""
    from thund.warm import warm as compile_all

    compile_all()
    click.echo("warm: the kernels are compiled")
