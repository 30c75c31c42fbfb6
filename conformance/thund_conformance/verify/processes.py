"""Child processes that never outlive this one, however it ends.

On Linux the kernel kills a child when the thread that started it ends (PR_SET_PDEATHSIG),
so also when this process is killed with SIGKILL. That ties a child to its thread: the thread
that starts one must wait for it. Elsewhere an exit handler kills what is left.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_LAUNCHER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks to die with its parent, then becomes the program. The parent may have died before the
request was made; then the parent's id has changed, and nothing is started."""


class Processes:
    """The living children of one verification; leaving the `with` block kills them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alive: set[subprocess.Popen[str]] = set()
        self._closed = False

    def __enter__(self) -> Self:
        atexit.register(self.close)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        atexit.unregister(self.close)

    def start(
        self, command: Sequence[str], *, folder: Path, errors: IO[bytes]
    ) -> subprocess.Popen[str]:
        """Start a program with its output piped here. The calling thread must wait for it.

        It gets a session of its own, so Ctrl-C reaches this process alone, which then decides.
        Raises: RuntimeError after `close`.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("these processes were closed; no other may start")
            process = subprocess.Popen(
                dying_with_parent(command),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            self._alive.add(process)
            return process

    def finish(self, process: subprocess.Popen[str]) -> int:
        """Wait for a child that has closed its output, and forget it. Gives its exit code."""
        try:
            return process.wait()
        finally:
            self.kill(process)
            if process.stdout is not None:
                process.stdout.close()
            with self._lock:
                self._alive.discard(process)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill one child with all of its group; nothing happens if it has ended."""
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()

    def close(self) -> None:
        """Kill every living child, and start no other."""
        with self._lock:
            self._closed = True
            alive = tuple(self._alive)
        for process in alive:
            self.kill(process)
            process.wait()

    def ids(self) -> tuple[int, ...]:
        """The process ids of the living children."""
        with self._lock:
            return tuple(process.pid for process in self._alive if process.poll() is None)


def dying_with_parent(command: Sequence[str]) -> list[str]:
    """The command, wrapped so that the kernel kills it when the starting thread ends (Linux)."""
    if not sys.platform.startswith("linux") or not sys.executable:
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
