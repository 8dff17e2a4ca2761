"""Runs a script with one worker in its own process, and sends it Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HANDLE_CTRL_C = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""Needed because a child of a process that ignores Ctrl-C, as under `nohup`, ignores it too."""

BEGINS = 0.3
"""Seconds until a started worker runs its task."""

PATIENCE = 60
"""Seconds until a process must have ended."""


def interrupt(script: str, folder: Path) -> tuple[str, int]:
    """Run a script, send it Ctrl-C while its worker runs, and return its stderr and the worker.

    Both processes are killed and the pipes closed, since open pipes would cause a warning in
    another test when they are garbage collected.

    Args:
        script: prints the process id of its worker, then lets it run forever.
        folder: for the script and for temporary files.

    """
    path = folder / "script.py"
    path.write_text(HANDLE_CTRL_C + script)
    with subprocess.Popen(
        [sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder)},
    ) as caller:
        groups = [caller.pid]
        try:
            first = caller.stdout.readline()
            assert first.strip().isdecimal(), caller.communicate(timeout=PATIENCE)[1]
            groups.append(int(first))
            time.sleep(BEGINS)
            caller.send_signal(signal.SIGINT)
            _, stderr = caller.communicate(timeout=PATIENCE)
            return stderr, int(first)
        finally:
            for group in groups:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
