"""The harness catches each kind of thing that a command must not do, and nothing else."""

from pathlib import Path

import pytest

from tests.auditing.plans import TINY
from tests.hostile.audit_hook import TOO_LONG, WatchedCommands, run_watched

MISDEEDS = {
    "import: {cwd}/received.py": "import sys; sys.path.append('.'); import received",
    "import: not_there, by": (
        "from overheard.core.custom_code.reference import import_reference as take\n"
        "from overheard.core.errors import PlanError\n"
        "try: take('not_there:f', 'here', PlanError)\nexcept PlanError: pass"
    ),
    "import: nowhere, by": (
        "import overheard\n"
        "text = 'from importlib.util import find_spec\\n'\n"
        "text += 'try: find_spec(\"nowhere.part\")\\nexcept ImportError: pass'\n"
        "exec(compile(text, overheard.__file__, 'exec'))"
    ),
    "exec: text <string>, by": "exec('1')",
    "write: {cwd}/opened": "open('opened', 'w').close()",
    "write: {outside}/victim": "open('out/link', 'a').close()",
    "write: {cwd}/by_folder": (
        "import os; os.open('by_folder', os.O_CREAT, dir_fd=os.open('.', os.O_RDONLY))"
    ),
    "write: {cwd}/received.py": "import os; os.truncate('received.py', 0)",
    "mkdir: {cwd}/made": "import os; os.mkdir('made')",
    "rename: {cwd}/renamed": "import os; open('out/a', 'w'); os.rename('out/a', 'renamed')",
    "remove: {cwd}/received.py": "import os; os.remove('received.py')",
    "link: {cwd}/link": "import os; os.symlink('a', 'link')",
    "chmod: {cwd}/secret": "import os; os.chmod('secret', 0o777)",
    "changed: {cwd}/native.safetensors": (
        "import numpy, safetensors.numpy as s\n"
        "s.save_file({'a': numpy.zeros(1)}, 'native.safetensors')"
    ),
    "read: {cwd}/secret": "open('secret').close()",
    "process: true": "import subprocess; subprocess.run(['true'])",
    "process: b'true": "import os; os.system('true')",
    "process: a fork by": "import os; os.fork() or os._exit(0)",
    "socket: ('127.0.0.1', 9)": (
        "import socket\ntry: socket.socket().connect(('127.0.0.1', 9))\nexcept OSError: pass"
    ),
    "socket: the address of 'localhost'": "import socket; socket.getaddrinfo('localhost', 9)",
    "dlopen: {cwd}/library.so": (
        "import ctypes\ntry: ctypes.CDLL('{cwd}/library.so')\nexcept OSError: pass"
    ),
}
"""What must be noted, and the code that does it."""


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    cwd, outside = tmp_path / "cwd", tmp_path / "outside"
    (cwd / "out").mkdir(parents=True)
    outside.mkdir()
    (outside / "victim").write_text("precious")
    (cwd / "out" / "link").symlink_to(outside / "victim")
    (cwd / "received.py").write_text("")
    (cwd / "secret").write_text("")
    return cwd


def test_notes_each_kind(cwd: Path) -> None:
    # In one process, as each misdeed is noted by itself.
    places = {"cwd": str(cwd), "outside": str(cwd.parent / "outside")}
    steps = [step.replace("{cwd}", str(cwd)) for step in MISDEEDS.values()]
    code = "\n".join(
        f"def step{n}():\n " + step.replace("\n", "\n ") + f"\nstep{n}()"
        for n, step in enumerate(steps)
    )
    run = run_watched(
        (),
        cwd=cwd,
        may_write=[cwd / "out"],
        must_not_open=[cwd / "secret"],
        code=code,
        limit_s=60,
    )
    assert run.exit_code == 0, run.stderr
    for expected in MISDEEDS:
        noted = expected.format(**places)
        assert any(event.startswith(noted) for event in run.events), (noted, run.events)


def test_watches_workers(cwd: Path) -> None:
    code = f"""
import sys
from overheard.learning.workers import processes, worker
sys.path.append({str(cwd)!r})
pool = processes.acquire(1)
pool._executor.submit(worker.answer, b"creceived\\nf\\n.").result()
pool.stop()
"""
    run = run_watched((), cwd=cwd, may_write=[], code=code, limit_s=60)
    assert (run.exit_code, run.events) == (0, (f"import: {cwd}/received.py",)), run.stderr


def test_notes_nothing_of_an_honest_audit(cwd: Path, commands: WatchedCommands) -> None:
    (cwd / "plan.toml").write_text(TINY.toml())
    arguments = ("audit", "plan.toml", "--out", "new", "--device", "cpu", "--workers", "2")
    run = commands.run(arguments, cwd=cwd, may_write=[cwd / "new"], limit_s=60)
    assert (run.exit_code, run.events) == (0, ()), run.stderr
    run = commands.run(("show", "nowhere"), cwd=cwd, may_write=())
    assert (run.exit_code, run.stdout, run.events) == (2, "", ())
    assert "nowhere" in run.stderr


def test_notes_what_a_fork_does(cwd: Path, commands: WatchedCommands) -> None:
    arguments = ("audit", "plan.toml", "--out", "elsewhere", "--workers", "1")
    (cwd / "plan.toml").write_text(TINY.toml())
    run = commands.run(arguments, cwd=cwd, may_write=[cwd / "out"], limit_s=60)
    assert f"mkdir: {cwd}/elsewhere" in run.events
    assert f"changed: {cwd}/elsewhere" in run.events


def test_ends_a_command_that_takes_too_long(cwd: Path) -> None:
    run = run_watched((), cwd=cwd, may_write=(), code="while True: pass", limit_s=0.3)
    assert (run.exit_code, run.events) == (TOO_LONG, ("time: more than 0.3 s",))


def test_measures_and_limits_memory(cwd: Path) -> None:
    code = "x = b'1' * 300_000_000"
    assert run_watched((), cwd=cwd, may_write=(), code=code).peak_bytes > 300_000_000
    run = run_watched((), cwd=cwd, may_write=(), code=code, memory_bytes=200_000_000)
    assert "MemoryError" in run.stderr
