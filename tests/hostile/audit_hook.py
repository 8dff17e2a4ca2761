"""Runs commands of Overheard in processes that note what they do to the machine.

An audit hook is installed before Overheard is imported, in the command and in its worker
processes (`hook/sitecustomize.py`). It notes:

- `import: ` code that is no file of Python, of an installed package or of Overheard, and each
  name that Overheard imports and that is not its own;
- `exec: ` text that Overheard runs;
- `write: `, `mkdir: `, `rename: `, `remove: `, `link: `, `chmod: ` and more: changes outside of
  the folders that may be written;
- `changed: ` files under the working directory that differ afterwards, outside of these folders
  (native code such as that of safetensors calls no hook);
- `read: ` files that must not be opened;
- `process: ` other processes than Overheard's workers;
- `socket: `, `dlopen: `, `pickle: `: connections, libraries of native code, unpickling outside
  of the workers;
- `time: ` a command that was ended because it took too long.
"""

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import overheard

HOOK = Path(__file__).parent / "hook"

POLL_SECONDS = 0.02
"""Seconds between two looks at the memory of a command."""

MOST_TEXT = 2**20
"""Most bytes of what a command printed that are kept."""

TOO_LONG = 124
"""Exit code of a command that was ended because it took too long."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """How a command ended, and what it did that is not expected of it.

    Args:
        exit_code: its exit code; negative for a signal; 124 = it took too long.
        stdout: what it printed.
        stderr: its messages.
        seconds: how long it took.
        cpu_seconds: how long it computed, which does not depend on what else runs.
        peak_bytes: the most memory that it or one of its workers used.
        events: what it did that is not expected, such as "write: /etc/passwd".

    """

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    events: tuple[str, ...]


def run_watched(
    arguments: Sequence[str],
    *,
    cwd: Path,
    may_write: Sequence[Path],
    limit_s: float = 10,
    memory_bytes: int | None = None,
    may_import: Sequence[Path] = (),
    must_not_open: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    code: str | None = None,
) -> WatchedRun:
    """Run a command in a fresh process, which takes a second to start.

    Args:
        arguments: what follows `overheard`.
        cwd: working directory.
        may_write: folders and files that it may make, change and remove.
        limit_s: seconds after which it is ended.
        memory_bytes: most memory of its own, in each process; None = no limit.
        may_import: folders with code that the user named.
        must_not_open: files and folders that it must not even read.
        environment: further environment variables.
        code: Python code to run instead of the command; `arguments` is ignored.

    """
    with tempfile.TemporaryDirectory() as folder:
        watch = _Watch(Path(folder), cwd, may_write, may_import, must_not_open)
        words = ["-c", code] if code is not None else ["-m", "overheard", *arguments]
        inputs: dict[str, Any] = (
            {} if memory_bytes is None else {"preexec_fn": lambda: _limit_memory(memory_bytes)}
        )
        started, before = time.monotonic(), _computed()
        with watch.stdout.open("wb") as stdout, watch.stderr.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-P", *words],
                cwd=cwd,
                env=_environment(Path(folder))
                | {"OVERHEARD_WATCH": json.dumps(watch.expected)}
                | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
                **inputs,
            )

        def wait(seconds: float) -> tuple[int, float] | None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(seconds), _computed() - before
            return None

        return watch.follow(process.pid, wait, started, limit_s)


class WatchedCommands:
    """Runs many commands, each in a fork of one process that has imported Overheard.

    A command then starts in milliseconds. It is a context manager. Its `run` takes the
    arguments of `run_watched`, apart from `code`. A fork begins with the memory of the imports,
    about 400 MB, which counts into `peak_bytes` and `memory_bytes`.
    """

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HOOK / "warmed.py")],
            env=_environment(Path(self._folder.name)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        if self._answer(None) != "warm":
            raise RuntimeError("the process that imports Overheard failed: see its messages")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        may_write: Sequence[Path],
        limit_s: float = 10,
        memory_bytes: int | None = None,
        may_import: Sequence[Path] = (),
        must_not_open: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> WatchedRun:
        """Run a command; see `run_watched` for the arguments."""
        with tempfile.TemporaryDirectory() as folder:
            watch = _Watch(Path(folder), cwd, may_write, may_import, must_not_open)
            request = {
                "arguments": list(arguments),
                "cwd": str(cwd),
                "stdout": str(watch.stdout),
                "stderr": str(watch.stderr),
                "memory_bytes": memory_bytes,
                "environment": {"TMPDIR": folder} | dict(environment or {}),
                "expected": watch.expected,
            }
            started = time.monotonic()
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            pid = int(self._answer(None) or "")

            def wait(seconds: float) -> tuple[int, float] | None:
                answer = self._answer(seconds)
                if answer is None:
                    return None
                code, computed = answer.split()
                return int(code), float(computed)

            return watch.follow(pid, wait, started, limit_s)

    def _answer(self, seconds: float | None) -> str | None:
        """Return the next line; None = there is none after this many seconds."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return None
        line = b""
        while not line.endswith(b"\n"):
            one = self._process.stdout.read(1)
            if not one:
                raise RuntimeError("the process that imported Overheard has ended")
            line += one
        return line.decode().strip()


class _Watch:
    """What is expected of a command, and where its output and its log go."""

    def __init__(
        self,
        folder: Path,
        cwd: Path,
        may_write: Sequence[Path],
        may_import: Sequence[Path],
        must_not_open: Sequence[Path],
    ) -> None:
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"
        self.log = folder / "log"
        self._cwd = cwd
        drawing = [Path.home() / place / "matplotlib" for place in (".cache", ".config")]
        self._may_write = [os.path.realpath(cwd / one) for one in may_write]
        libraries = {sysconfig.get_path(one) for one in ("stdlib", "platstdlib", "purelib")}
        source = Path(overheard.__file__).parent
        self.expected: dict[str, Any] = {
            "log": str(self.log),
            "may_write": [*self._may_write, *map(str, (folder, *drawing))],
            "must_not_open": [str(cwd / one) for one in must_not_open],
            "may_import": [str(cwd / one) for one in may_import],
            "overheard": [str(source), *_studies(source)],
            "libraries": sorted({*libraries, *map(os.path.realpath, libraries), str(HOOK)}),
        }
        self._before = self._files()

    def follow(
        self,
        pid: int,
        wait: Callable[[float], tuple[int, float] | None],
        started: float,
        limit_s: float,
    ) -> WatchedRun:
        """Wait for a command, and tell what it did.

        Args:
            pid: its process ID, which is that of its process group, too.
            wait: waits this many seconds for its end; returns its exit code and its seconds of
                computing, or None.
            started: when it was started.
            limit_s: seconds after which it is ended.

        """
        peak, events = 0, list[str]()
        while (end := wait(POLL_SECONDS)) is None:
            peak = max(peak, _peak_of(pid))
            if time.monotonic() - started > limit_s:
                events.append(f"time: more than {limit_s:g} s")
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                ended = wait(limit_s)
                end = TOO_LONG, limit_s if ended is None else ended[1]
                break
        seconds = time.monotonic() - started
        for line in (
            self.log.read_text(errors="replace").splitlines() if self.log.exists() else ()
        ):
            if line.startswith("peak: "):
                peak = max(peak, int(line.split()[2]))
            else:
                events.append(line)
        after = self._files()
        changed = [
            one for one in self._before | after if self._before.get(one) != after.get(one)
        ]
        events += (f"changed: {one}" for one in sorted(changed))
        code, computed = end
        printed = _start_of(self.stdout), _start_of(self.stderr)
        return WatchedRun(code, *printed, seconds, computed, peak, tuple(events))

    def _files(self) -> dict[str, tuple[int, int, int]]:
        """Return mode, time and number of each file that must not change, by its path."""
        found = dict[str, tuple[int, int, int]]()
        for folder, folders, files in os.walk(os.path.realpath(self._cwd)):
            if folder in self._may_write:
                folders.clear()
                continue
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                if path not in self._may_write:
                    status = os.lstat(path)
                    # The time of a folder is that of the files that were made in it.
                    when = 0 if name in folders else status.st_mtime_ns
                    found[path] = (status.st_mode, when, status.st_ino)
        return found


def _studies(source: Path) -> list[str]:
    """Return the folder of the studies of a checkout, if there is one."""
    studies = source.parents[1] / "studies" / "src" / "overheard_studies"
    return [str(studies)] if studies.is_dir() else []


def _environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(HOOK), str(Path(overheard.__file__).parents[1])])
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([path, os.environ.get("PYTHONPATH", "")]).rstrip(":"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(folder),
    }


def _limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _computed() -> float:
    """Return how long all processes computed that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peak_of(pid: int) -> int:
    """Return the most memory that a running process has used so far; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def _start_of(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_TEXT).decode(errors="replace")
