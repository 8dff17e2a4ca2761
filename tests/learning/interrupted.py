"""A script with one worker, in a process of its own, and Ctrl-C for it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HEARS_CTRL_C = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""A process whose parent ignores Ctrl-C, as under `nohup`, would inherit that."""

BEGINS = 0.3
"""Seconds in which the worker, once it is up, begins to work."""

PATIENCE = 60
"""Seconds within which a process has to end."""


def interrupt(script: str, folder: Path) -> tuple[str, int]:
    """What a script says on stderr that hears Ctrl-C while its worker works, and that worker.

    Neither of them is left over, even if they do not end by themselves; nor are their pipes,
    which would be told of where they are collected as garbage, in the midst of another test.

    Args:
        script: prints the process id of its worker, then has it work for ever.
        folder: for the script and for temporary files.

    """
    path = folder / "script.py"
    path.write_text(HEARS_CTRL_C + script)
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
            assert caller.stdout is not None
            first = caller.stdout.readline()
            assert first.strip().isdecimal(), caller.communicate(timeout=PATIENCE)[1]
            groups.append(int(first))
            time.sleep(BEGINS)
            caller.send_signal(signal.SIGINT)
            _, told = caller.communicate(timeout=PATIENCE)
            return told, int(first)
        finally:
            for group in groups:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
