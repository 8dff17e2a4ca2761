"""Runs an app in a process of its own, in which alone its code runs."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

from pydantic import TypeAdapter

from overheard.archive.layout import count_committed_rounds, manifest_path, transcript_folder
from overheard.core.custom_code.reference import REFERENCE, is_code_refused
from overheard.core.errors import PlanError
from overheard.disk.reading import parse_toml, read_small_file, read_text
from overheard.doctor.source.files import AppFiles, digest_files
from overheard.doctor.trial.child import ERROR_FILE
from overheard.doctor.trial.request import CLIENTS, MOST_CLIENTS, TrialRequest
from overheard.findings.names import make_printable

MOST_SECONDS = 600
"""Seconds after which an app is ended, unless the user states others."""

LAST_BYTES = 4000
"""How much of what an app printed is looked at, from its end."""

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@final
@dataclass(frozen=True, slots=True)
class TrialRun:
    """A run of an app.

    Args:
        recording: the folder of its recording.
        rounds: number of recorded rounds.
        is_ended_early: whether it took too long.

    """

    recording: Path
    rounds: int
    is_ended_early: bool


def find_trial(
    folder: Path, files: AppFiles, recording: Path, clients: int | None = None
) -> TrialRequest:
    """Return how an app would run; its code is read, and nothing runs.

    Args:
        folder: the folder of a Flower app.
        files: what was read of it.
        recording: where its recording goes.
        clients: number of clients; None = as the app states, or `CLIENTS`.

    Raises:
        PlanError: if code of others is refused, it is no Flower app, states an odd number of
            clients, or the recording exists.

    """
    if is_code_refused():
        raise PlanError(
            f"{folder}: --run runs its code, which --no-code refuses: leave out --no-code if "
            "you trust it"
        )
    path = folder / "pyproject.toml"
    if not folder.is_dir() or not path.is_file():
        raise PlanError(
            f"{folder}: --run runs a Flower app, and needs its folder with pyproject.toml, the "
            "one that `flwr run` is called with"
        )
    content = parse_toml(read_text(path, PlanError), str(path), PlanError)
    try:
        components = content["tool"]["flwr"]["app"]["components"]
        server, client = str(components["serverapp"]), str(components["clientapp"])
    except (KeyError, TypeError) as error:
        raise PlanError(
            f"{path}: names no serverapp and clientapp under [tool.flwr.app.components]: --run "
            "runs Flower apps"
        ) from error
    for reference in (server, client):
        if not REFERENCE.fullmatch(reference):
            raise PlanError(
                f"{path}: {make_printable(reference[:100])} is no 'module:name': correct it"
            )
    # One that broke off early has no manifest yet.
    if transcript_folder(recording).exists():
        raise PlanError(
            f"{recording} has a recording already: name another folder by --recording"
        )
    number = clients or files.nodes or CLIENTS
    if not 0 < number <= MOST_CLIENTS:
        raise PlanError(
            f"{path}: states {number} nodes (num-supernodes), and 1 to {MOST_CLIENTS} can be "
            "simulated: give a number by --clients"
        )
    config = {
        name: value
        for name, value in files.config.items()
        if isinstance(value, bool | int | float | str)
    }
    return TrialRequest(
        folder.resolve(),
        digest_files(files),
        server,
        client,
        config,
        number,
        recording.resolve(),
        commit_of(folder.resolve()),
    )


def describe_trial(request: TrialRequest, seconds: int) -> str:
    """Return what code runs, in words that are said before it runs."""
    commit = (
        f"commit {request.commit}, which the files may differ from"
        if request.commit
        else "of no known commit"
    )
    return make_printable(
        f"Runs the code of {request.folder} as you: server {request.server}, client "
        f"{request.client}, {request.clients} clients one after the other, for {seconds} s at "
        "most. SHA-256 of pyproject.toml and the Python files that were read: "
        f"{request.digest}, {commit}. It runs in a process of its own that nothing confines: "
        "it can read and write your files, read your environment variables, and use the "
        "network. Run only code that you trust."
    )


def commit_of(folder: Path) -> str:
    """Return the commit that git has checked out at a folder; "" = not known.

    The files of git are read. Git itself is not called, as its settings in a folder may run
    programs.
    """
    for place in (folder, *folder.parents):
        git = place / ".git"
        if not git.is_dir():
            continue
        try:
            head = read_small_file(git / "HEAD", PlanError).decode("ascii", "replace").strip()
            name = head.removeprefix("ref: ")
            if name == head:
                found = head
            elif not re.fullmatch(r"refs/[\w./-]+", name) or ".." in name:
                return ""
            elif (git / name).is_file():
                content = read_small_file(git / name, PlanError, inside=git)
                found = content.decode("ascii", "replace").strip()
            else:
                packed = read_small_file(git / "packed-refs", PlanError)
                lines = packed.decode("utf-8", "replace").splitlines()
                found = next(
                    (one.split(" ")[0] for one in lines if one.endswith(f" {name}")), ""
                )
        except PlanError:
            return ""
        return found if _COMMIT.fullmatch(found) else ""
    return ""


def run_trial(request: TrialRequest, seconds: int = MOST_SECONDS) -> TrialRun:
    """Run an app in a process of its own, and record it. What it prints is not shown.

    Args:
        request: which app, and how.
        seconds: after how many seconds to end it; rounds that were recorded until then stay.

    Raises:
        PlanError: if the app fails, or no round was recorded.

    """
    with TemporaryDirectory() as folder:
        place = Path(folder)
        code = _run(request, place, seconds)
        rounds = _recorded_rounds(request.recording)
        if (place / ERROR_FILE).is_file():
            raise PlanError(make_printable(read_text(place / ERROR_FILE, PlanError)))
        if not rounds:
            raise PlanError(_why_nothing(request, code, seconds, place / "said.txt"))
        if code not in (None, 0):
            raise PlanError(
                f"{request.folder}: its process ended with exit code {code} after {rounds} "
                f"rounds ({_last_line(place / 'said.txt')}): mend it, or give it more memory"
            )
    return TrialRun(request.recording, rounds, is_ended_early=code is None)


def _run(request: TrialRequest, place: Path, seconds: int) -> int | None:
    """Run the child, and return its exit code; None = it was ended."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(one or os.getcwd() for one in sys.path),
        "PYTHONSAFEPATH": "1",
    }
    with (place / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "overheard.doctor.trial.child", str(place / ERROR_FILE)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env=environment,
            # Its own group, so that what it starts ends with it.
            start_new_session=True,
        )
        try:
            process.communicate(TypeAdapter(TrialRequest).dump_json(request), seconds)
            return process.returncode
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and what it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _recorded_rounds(recording: Path) -> int:
    if not manifest_path(transcript_folder(recording)).is_file():
        return 0
    return count_committed_rounds(recording)


def _why_nothing(request: TrialRequest, code: int | None, seconds: int, said: Path) -> str:
    if code is None:
        return (
            f"{request.folder}: no round was done after {seconds} s: allow more by --seconds, "
            "or fewer clients by --clients"
        )
    return (
        f"{request.folder}: the app ended with exit code {code} and no round was recorded "
        f"({_last_line(said)}). Apps of Flower's message API are recorded; for the older API "
        "see docs/flower.md, Legacy strategies"
    )


def _last_line(said: Path) -> str:
    with said.open("rb") as file:
        file.seek(max(0, said.stat().st_size - LAST_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return make_printable((lines or ["it said nothing"])[-1][:300])
