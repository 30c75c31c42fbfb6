"""The engine as a process of its own, and the hand that kills it.

SIGKILL only: the engine gets no chance to tidy up.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from thund_contract.errors import ThundError
from thund_contract.vocabulary import MANIFEST_STEP, OUTBOX_STEP, POINTER_STEP, STATE_STEP

Event = dict[str, object]
BETWEEN = (STATE_STEP, OUTBOX_STEP, MANIFEST_STEP, POINTER_STEP)
"""A kill after one of these strikes between two durable steps of a commit."""


class EngineFailed(ThundError):
    """The engine stopped by itself, which is not what this run is about."""

    code = "demo"


@dataclass(frozen=True, slots=True)
class Kill:
    """Where the process was when it was killed."""

    life: int
    epoch: int
    where: str


class Process:
    """One life of `thund run`, with its JSON lines."""

    def __init__(self, definition: Path, *, failpoint: str | None = None) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "THUND_FAILPOINT"}
        if failpoint:
            environment["THUND_FAILPOINT"] = failpoint
        self.child = subprocess.Popen(
            [sys.executable, "-m", "thund", "run", str(definition), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def events(self) -> Iterator[Event]:
        """What the process says, until it ends or is killed."""
        assert self.child.stdout is not None
        for line in self.child.stdout:
            event: Event = json.loads(line)
            yield event

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self._close()

    def finish(self) -> None:
        """Wait for a process that ends by itself. Raises: EngineFailed with what it said."""
        assert self.child.stderr is not None
        said = self.child.stderr.read()
        code = self.child.wait()
        self._close()
        if code:
            raise EngineFailed(
                f"the engine ended with code {code}: {said.strip()[-2000:]}",
                allowed="an engine that ends only when it is done or killed",
                where="the engine's process",
                action="run the same definition by `thund run` to see it",
            )

    def _close(self) -> None:
        for stream in (self.child.stdout, self.child.stderr):
            if stream is not None:
                stream.close()


def run_calm(definition: Path, tell: Callable[[Event], None]) -> None:
    """One life, from the first row to the drain."""
    process = Process(definition)
    try:
        for event in process.events():
            tell(event)
        process.finish()
    finally:
        if process.child.poll() is None:
            process.kill()


def run_storm(
    definition: Path, *, seed: int, epochs: int, tell: Callable[[Event], None]
) -> list[Kill]:
    """Three kills at seeded moments, then a life that drains.

    The second kill strikes between two durable steps of a commit, after the step that the seed
    chose; the others strike a seeded number of milliseconds after some epoch's first step.
    """
    chance = random.Random(seed)  # noqa: S311 - a seeded demonstration, not a secret
    kills: list[Kill] = []
    reached = 0
    for life, share in enumerate((0.2, 0.5, 0.8), start=1):
        target = max(reached + 2, round(epochs * share) + chance.randint(-3, 3))
        if life == 2:
            step = chance.choice(BETWEEN)
            kill = _kill_between(definition, f"{step}:{target}", life, tell)
        else:
            kill = _kill_at(definition, target, chance.random() * 0.03, life, tell)
        kills.append(kill)
        reached = kill.epoch
    run_calm(definition, tell)
    return kills


def _kill_between(
    definition: Path, failpoint: str, life: int, tell: Callable[[Event], None]
) -> Kill:
    process = Process(definition, failpoint=failpoint)
    for event in process.events():
        tell(event)
        if event["event"] == "paused":
            process.kill()
            return Kill(life, _epoch(event), f"between {event['step']} and the next step")
    return _missed(process, failpoint)


def _kill_at(
    definition: Path, epoch: int, pause_s: float, life: int, tell: Callable[[Event], None]
) -> Kill:
    process = Process(definition)
    for event in process.events():
        tell(event)
        if event["event"] == "durable" and _epoch(event) >= epoch:
            time.sleep(pause_s)
            process.kill()
            return Kill(life, _epoch(event), f"{pause_s * 1000:.1f} ms after {event['step']}")
    return _missed(process, f"epoch {epoch}")


def _epoch(event: Event) -> int:
    epoch = event["epoch"]
    assert isinstance(epoch, int)
    return epoch


def _missed(process: Process, what: str) -> Kill:
    process.finish()
    raise EngineFailed(
        f"the engine was done before it could be killed at {what}",
        allowed="a run that is longer than the kills need",
        where="the engine's process",
        action="choose another --seed",
    )
