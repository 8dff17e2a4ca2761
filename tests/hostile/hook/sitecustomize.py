"""Notes what a watched process does to the machine: imports, writes, processes, connections.

Python imports this file before all else, in the command and in its worker processes, as the
harness (`tests/hostile/audit_hook.py`) puts its folder first on PYTHONPATH. The environment
variable OVERHEARD_WATCH says what is expected; each line of the log is one thing that is not.

What native code does (such as writing safetensors) calls no audit hook. The harness compares
the files before and after for that.
"""

import atexit
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

VARIABLE = "OVERHEARD_WATCH"
"""The environment variable with what is expected, in JSON."""

WORKER_SERVER = os.path.join("multiprocessing", "forkserver.py")
"""File of Python that forks workers."""

WORKER_FOLDER = "pymp-"
"""Prefix of the folder with the socket to the process that forks workers."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_thread = threading.local()


class Watch:
    """What is expected of a process, and the log of what is not."""

    def __init__(self, expected: dict[str, Any]) -> None:
        self.log = os.open(
            expected["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self.may_write = [os.path.realpath(one) for one in expected["may_write"]]
        self.must_not_open = [os.path.realpath(one) for one in expected["must_not_open"]]
        self.has_custom_code = bool(expected["may_import"])
        self.overheard = tuple(os.path.join(one, "") for one in expected["overheard"])
        self.libraries = tuple(os.path.join(one, "") for one in expected["libraries"])
        own = [os.path.realpath(one) for one in expected["may_import"]]
        self.code = (
            self.overheard + self.libraries + tuple(os.path.join(one, "") for one in own)
        )
        self.shared_objects = (*self.libraries, "/lib/", "/usr/lib/", "/lib64/")
        self.noted = set[str]()

    def note(self, line: str) -> None:
        """Write a line, once in each process."""
        if line not in self.noted:
            self.noted.add(line)
            text = line.encode("utf-8", "backslashreplace").replace(b"\n", b"\\n")
            os.write(self.log, text + b"\n")


_watch: Watch | None = None


def begin(expected: dict[str, Any]) -> None:
    """Watch this process, and those that it starts, from now on."""
    global _watch  # noqa: PLW0603 - an audit hook cannot be removed, nor given anything
    os.environ[VARIABLE] = json.dumps(expected)
    _watch = Watch(expected)
    atexit.register(note_peak)


def note_peak() -> None:
    """Write the most memory that this process has used."""
    if _watch is None:
        return
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                _watch.note(f"peak: {os.getpid()} {int(line.split()[1]) * 1024}")


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if _watch is None:
        return
    check = _CHECKS.get(event)
    if check is None or getattr(_thread, "is_checking", False):
        return
    _thread.is_checking = True
    try:
        check(_watch, arguments)
    finally:
        _thread.is_checking = False


def _place(path: Any, folder: int = -1, follow: bool = True) -> str | None:
    """Return where a path leads; None = it is a file descriptor.

    Args:
        path: the path.
        folder: file descriptor of the folder that it is relative to, if not negative.
        follow: whether a link at the end is followed.

    """
    if isinstance(path, int):
        return None
    text = os.fsdecode(path)
    if folder >= 0 and not os.path.isabs(text):
        text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
    if follow:
        return os.path.realpath(text)
    parent, name = os.path.split(text.rstrip("/"))
    return os.path.join(os.path.realpath(parent or "."), name)


def _is_within(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(os.path.join(root, "")) for root in roots)


def _on_import(watch: Watch, arguments: tuple[Any, ...]) -> None:
    # Python passes the file for extension modules only.
    name, file = arguments[0], arguments[1]
    if file is not None and not os.path.abspath(file).startswith(watch.code):
        watch.note(f"import: {name} ({file})")


def _on_exec(watch: Watch, arguments: tuple[Any, ...]) -> None:
    file = arguments[0].co_filename
    if os.path.isabs(file):
        if not os.path.realpath(file).startswith(watch.code) and not file.startswith(
            watch.code
        ):
            watch.note(f"import: {file}")
    elif not file.startswith("<frozen "):
        caller = sys._getframe(1).f_back
        # Nothing calls the text of `python -c`.
        if caller is None or caller.f_code.co_filename.startswith(
            ("<frozen ", *watch.libraries)
        ):
            return
        watch.note(f"exec: text {file}, by {caller.f_code.co_filename}")


def _on_open(watch: Watch, arguments: tuple[Any, ...]) -> None:
    path, _, flags = arguments
    is_writing = bool(flags & _WRITING)
    if not is_writing and not watch.must_not_open:
        return
    follow = not flags & os.O_NOFOLLOW and not (flags & os.O_CREAT and flags & os.O_EXCL)
    place = _place(path, getattr(_thread, "folder", -1), follow)
    if place is None or place == "/dev/null":
        return
    if is_writing and not _is_within(place, watch.may_write):
        watch.note(f"write: {place}")
    elif _is_within(place, watch.must_not_open):
        watch.note(f"read: {place}")


def _changes(
    what: str, *paths: tuple[int, int | None], follow: bool = False, makes: bool = False
) -> Callable[[Watch, tuple[Any, ...]], None]:
    """Return a check of an event that changes paths.

    Args:
        what: what the event does.
        paths: where its arguments hold a path, and the descriptor of the folder above it.
        follow: whether it follows a link at the end of a path.
        makes: whether it fails on a path that exists, so that only others matter.

    """

    def check(watch: Watch, arguments: tuple[Any, ...]) -> None:
        for path, folder in paths:
            descriptor = -1 if folder is None else arguments[folder]
            place = _place(arguments[path], descriptor, follow)
            if place is None or (makes and os.path.lexists(place)):
                continue
            if not makes and not os.path.lexists(place) and path == 0:
                continue
            if not _is_within(place, watch.may_write):
                watch.note(f"{what}: {place}")

    return check


def _on_popen(watch: Watch, arguments: tuple[Any, ...]) -> None:
    words = arguments[1]
    texts = [words] if isinstance(words, str | bytes) else list(words)
    shown = " ".join(os.fsdecode(one) for one in texts)
    watch.note(f"process: {shown}")


def _on_fork(watch: Watch, _: tuple[Any, ...]) -> None:
    caller = sys._getframe(2).f_code.co_filename
    if not caller.endswith(WORKER_SERVER):
        watch.note(f"process: a fork by {caller}")


def _on_process(watch: Watch, arguments: tuple[Any, ...]) -> None:
    watch.note(f"process: {' '.join(str(one) for one in arguments[:2])}")


def _on_address(watch: Watch, arguments: tuple[Any, ...]) -> None:
    is_of_workers = os.sep + WORKER_FOLDER in str(arguments[1])
    if arguments[1] is not None and not is_of_workers:
        watch.note(f"socket: {arguments[1]!r}")


def _on_name(watch: Watch, arguments: tuple[Any, ...]) -> None:
    watch.note(f"socket: the address of {arguments[0]!r}")


def _on_dlopen(watch: Watch, arguments: tuple[Any, ...]) -> None:
    name = arguments[0]
    if name is None:
        return
    text = os.fsdecode(name)
    if os.sep in text and not os.path.realpath(text).startswith(watch.shared_objects):
        watch.note(f"dlopen: {text}")


def _on_unpickling(watch: Watch, arguments: tuple[Any, ...]) -> None:
    frame = sys._getframe(2)
    while frame is not None:
        if "/overheard/learning/workers/" in frame.f_code.co_filename:
            return
        if frame.f_code.co_filename.startswith(watch.overheard):
            watch.note(f"pickle: {arguments[0]}.{arguments[1]}")
            return
        frame = frame.f_back  # type: ignore[assignment]


_CHECKS: dict[str, Callable[[Watch, tuple[Any, ...]], None]] = {
    "import": _on_import,
    "exec": _on_exec,
    "open": _on_open,
    "os.mkdir": _changes("mkdir", (0, 2), makes=True),
    "os.rename": _changes("rename", (0, 2), (1, 3)),
    "os.remove": _changes("remove", (0, 1)),
    "os.rmdir": _changes("remove", (0, 1)),
    "os.symlink": _changes("link", (1, 2)),
    "os.link": _changes("link", (1, 3)),
    "os.truncate": _changes("write", (0, None), follow=True),
    "os.chmod": _changes("chmod", (0, 2), follow=True),
    "os.chown": _changes("chown", (0, 3), follow=True),
    "os.utime": _changes("utime", (0, 3), follow=True),
    "os.setxattr": _changes("setxattr", (0, None), follow=True),
    "subprocess.Popen": _on_popen,
    "os.fork": _on_fork,
    "os.forkpty": _on_process,
    "os.exec": _on_process,
    "os.posix_spawn": _on_process,
    "os.spawn": _on_process,
    "os.system": _on_process,
    "pty.spawn": _on_process,
    "socket.connect": _on_address,
    "socket.bind": _on_address,
    "socket.sendto": _on_address,
    "socket.sendmsg": _on_address,
    "socket.getaddrinfo": _on_name,
    "socket.gethostbyname": _on_name,
    "socket.gethostbyaddr": _on_name,
    "ctypes.dlopen": _on_dlopen,
    "pickle.find_class": _on_unpickling,
}


class _NameFinder:
    """Finds no module, and notes each name that Overheard imports and that is not its own.

    `import_module` raises no audit event. `find_spec` of a name with dots imports, too.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if _watch is None or _watch.has_custom_code or name.startswith("overheard"):
            return
        frame, calls = sys._getframe(1), set[str]()
        while frame is not None and "importlib" in frame.f_code.co_filename:
            calls.add(frame.f_code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        # Both of them import by this function; so does a statement that imports.
        is_by_name = "_find_and_load" in calls and calls & {"import_module", "find_spec"}
        if is_by_name and frame is not None:
            caller = frame.f_code.co_filename
            if caller.startswith(_watch.overheard):
                _watch.note(f"import: {name}, by {caller}")


def _watched_open() -> Callable[..., int]:
    """Return `os.open`, which tells the hook the folder that a path is relative to."""
    opened = os.open

    # Any: as `os.open` takes it.
    def open_in_folder(
        path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        _thread.folder = -1 if dir_fd is None else dir_fd
        try:
            return opened(path, flags, mode, dir_fd=dir_fd)
        finally:
            _thread.folder = -1

    # `shutil.rmtree` and others ask whether `os.open` takes a folder.
    for group in (os.supports_dir_fd, os.supports_follow_symlinks):
        if opened in group:
            group.add(open_in_folder)
    return open_in_folder


os.open = _watched_open()
sys.meta_path.insert(0, _NameFinder)  # type: ignore[arg-type]
sys.addaudithook(_on_event)
if VARIABLE in os.environ:
    begin(json.loads(os.environ[VARIABLE]))
