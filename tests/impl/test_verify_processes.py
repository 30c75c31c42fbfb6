"""Child processes end with their parent, in whatever way it ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from thund_conformance.verify.processes import Processes, dying_with_parent

SECONDS = 20
LONG = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]

linux_only = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux lets a child die with its parent"
)


def wait_for_end(pid: int) -> bool:
    """Whether the process ends in time; it need not be our child."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], SECONDS)[0])
    finally:
        os.close(handle)


def test_required_leaving_the_block_kills_what_is_left(tmp_path: Path) -> None:
    processes = Processes()
    with tempfile.TemporaryFile() as errors, suppress(KeyboardInterrupt), processes:
        child = processes.start(LONG, folder=tmp_path, errors=errors)
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        assert processes.ids() == (child.pid,)
        raise KeyboardInterrupt
    assert child.returncode == -signal.SIGKILL
    assert processes.ids() == ()


def test_required_nothing_starts_after_the_end(tmp_path: Path) -> None:
    processes = Processes()
    processes.close()
    with pytest.raises(RuntimeError), tempfile.TemporaryFile() as errors:
        processes.start(LONG, folder=tmp_path, errors=errors)


def test_required_the_exit_code_is_that_of_the_program(tmp_path: Path) -> None:
    with Processes() as processes, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-c", "import os; print(os.getcwd()); raise SystemExit(12)"]
        child = processes.start(command, folder=tmp_path, errors=errors)
        assert child.stdout is not None
        assert child.stdout.read().strip() == str(tmp_path)
        assert processes.finish(child) == 12


@linux_only
def test_required_a_child_dies_with_a_parent_killed_by_sigkill(tmp_path: Path) -> None:
    """The parent starts it from a thread of a pool, as `verify_models` does."""
    script = f"""
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from thund_conformance.verify.processes import Processes

def work(processes):
    with open({str(tmp_path / "errors")!r}, "wb") as errors:
        child = processes.start({LONG!r}, folder=Path("."), errors=errors)
        child.stdout.readline()
        print(child.pid, flush=True)
        processes.finish(child)

with Processes() as processes, ThreadPoolExecutor() as pool:
    pool.submit(work, processes).result()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
        assert wait_for_end(pid)


@linux_only
def test_required_nothing_is_started_for_a_parent_that_is_gone() -> None:
    """The id in the command is that of the parent; with another one the launcher gives up."""
    command = dying_with_parent([sys.executable, "-c", "print('started')"])
    at = command.index(str(os.getpid()))
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"started\n"
    command[at] = "1"
    gone = subprocess.run(command, capture_output=True, check=False)
    assert (gone.returncode, gone.stdout) == (1, b"")
