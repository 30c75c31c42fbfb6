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

from thund_contract.errors import CallerError
from thund_contract.vocabulary import END, NEVER

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console
    from rich.table import Table

    from thund.manifest import Manifest
    from thund.runners.local import Progress

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
        click.echo(
            f"run: rows={last.accepted} admitted={last.admitted} late={last.late} "
            f"invalid={last.invalid} duplicates={last.duplicates} epochs={last.epoch} "
            f"watermark={show_time(last.watermark)} drained={'yes' if last.drained else 'no'} "
            f"mode={mode}"
        )

    def _say(self, event: str, **facts: object) -> None:
        print(json.dumps({"event": event, **facts}), flush=True)  # noqa: T201 - the --json protocol


@click.command()
@click.argument("place")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON document.")
def status(place: str, *, as_json: bool) -> None:
    """What the pipeline in PLACE, a TOML file or a state folder, has committed."""
    from thund.definition import Pipeline
    from thund.history import History
    from thund.stores import open_store

    state_root: str | None = place
    if place.endswith(".toml"):
        state_root = Pipeline.from_toml(Path(place)).state_root
    if state_root is None:
        raise CallerError(
            f"{place} has no state_root: recompute mode keeps nothing between runs",
            allowed="a state folder, or the TOML file of an incremental pipeline",
            where=place,
            action="look at the sink's table instead",
        )
    history = History(open_store(state_root, create=False))
    epoch = history.highest()
    if epoch == 0:
        click.echo(f"{state_root}: no committed epoch yet")
        return
    manifest = history.manifest(epoch)
    if as_json:
        click.echo(json.dumps(_facts(manifest)))
        return
    console = wide_console()
    console.print(
        f"[bold]{manifest.pipeline}[/bold] epoch {epoch}, generation {manifest.generation}, "
        f"W {show_time(manifest.watermark)}{', drained' if manifest.drained else ''}"
    )
    console.print(_partition_table(manifest))


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


def _partition_table(manifest: Manifest) -> Table:
    from rich.table import Table

    table = Table("partition", "assigned", "last offset", "largest event time", title=None)
    for name in ("accepted", "admitted", "late", "invalid"):
        table.add_column(name, justify="right")
    holder = holds_watermark(manifest)
    for p in manifest.partitions:
        largest = "none yet" if p.max_event_time is None else show_time(p.max_event_time)
        mark = " (holds W)" if p.partition == holder else ""
        counts = [f"{n:,}" for n in (p.accepted, p.admitted, p.late, p.invalid)]
        assigned = "yes" if p.assigned else "no"
        table.add_row(p.partition, assigned, str(p.last), largest + mark, *counts)
    return table


def holds_watermark(manifest: Manifest) -> str | None:
    """The assigned partition that is furthest behind: W waits for it. Law: W2."""
    assigned = [p for p in manifest.partitions if p.assigned]
    behind = min(
        assigned,
        key=lambda p: (p.max_event_time is not None, p.max_event_time or 0, p.partition),
        default=None,
    )
    return None if behind is None or manifest.watermark == END else behind.partition


def _facts(manifest: Manifest) -> dict[str, object]:
    return {
        "pipeline": manifest.pipeline,
        "epoch": manifest.epoch,
        "generation": manifest.generation,
        "watermark": manifest.watermark,
        "drained": manifest.drained,
        "holds_watermark": holds_watermark(manifest),
        "partitions": [dataclasses.asdict(p) for p in manifest.partitions],
    }


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
