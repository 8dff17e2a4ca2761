"""Execution of tasks on a Ray cluster, or on a Ray started on this machine.

Ray sends data by cloudpickle, so anyone with access to one machine of the cluster can run
programs on all others, and on this one.
"""

import platform
import re
import signal
import socket
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, final
from urllib.parse import urlsplit
from warnings import catch_warnings, simplefilter
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

import overheard
from overheard.core.errors import PlanError, WorkerError
from overheard.core.escape import escape_unprintable
from overheard.learning.threads import available_cores
from overheard.learning.workers.job import Job, TaskResult, TensorBundle, WorkerTask

LOCAL = "local"
"""The address that stands for this machine."""

CONNECT_TIMEOUT = 5.0
"""Seconds within which a cluster must respond."""


def connect(address: str) -> Any:  # a module without types
    """Connect to the cluster at this address, and return the module `ray`.

    Args:
        address: "ray://host:port" of a running cluster. "local" starts one here with one worker
            per core, which runs until Python exits. If this process is already connected to a
            cluster, that one is used.

    Raises:
        PlanError: if Ray is not installed, or the cluster does not respond or cannot be joined.

    """
    _check_address(address)
    try:
        import ray
    except ImportError as missing:
        raise PlanError(
            f"the cluster {address!r} needs Ray: pip install '.[ray]' in a checkout of "
            "Overheard, or leave `cluster` out"
        ) from missing
    if not ray.is_initialized():
        _join(ray, address)
    return ray


def _check_address(address: str) -> None:
    """Refuse an address that does not respond; Ray itself would try for minutes."""
    if address == LOCAL:
        return
    message = (
        f"the Ray cluster {address!r} does not respond: give 'local', or 'ray://host:port' of"
    )
    try:
        parts = urlsplit(address)
        if parts.scheme != "ray" or parts.hostname is None or parts.port is None:
            raise PlanError(f"{message} the Ray Client server of a cluster")
        socket.create_connection((parts.hostname, parts.port), timeout=CONNECT_TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise PlanError(f"{message} one that runs; {error}") from error


def _join(ray: Any, address: str) -> None:  # a module without types
    # Ray warns of its own future changes at every start.
    with _sigterm_restored(), catch_warnings():
        simplefilter("ignore", FutureWarning)
        if address == LOCAL:
            ray.init(
                address=LOCAL,
                num_cpus=available_cores(),
                include_dashboard=False,
                configure_logging=False,
                log_to_driver=False,
            )
            return
        try:
            ray.init(address=address, configure_logging=False, log_to_driver=False)
        # In this order: no ray[client]; another service on that port; other versions there.
        except (ValueError, ConnectionError, RuntimeError) as error:
            raise PlanError(
                f"the Ray cluster {address!r} cannot be joined: give the port of its Ray "
                "Client server, and have ray[client] here in its version of Ray and of Python; "
                f"{escape_unprintable(str(error))}"
            ) from error


@contextmanager
def _sigterm_restored() -> Generator[None, None, None]:
    """Restore the handler of SIGTERM, which Ray replaces by one that prints and aborts."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(handler) and current_thread() is main_thread():
            signal.signal(signal.SIGTERM, handler)


class OtherSetupError(PlanError):
    """A machine has other versions than the one that sends the work."""


@final
@dataclass(frozen=True, slots=True)
class MachineSetup:
    """The versions of a machine.

    Args:
        python: version of Python, without the patch release.
        overheard: version of this package.
        code: digest of the source files of this package, which a checkout may have changed.
        torch: version of torch, without what it was built for.
        numpy: version of numpy.

    """

    python: str
    overheard: str
    code: str
    torch: str
    numpy: str

    def check_here(self) -> None:
        """Check that this machine has the same versions.

        Raises:
            OtherSetupError: if a version differs; it names the machine and the versions.

        """
        here = local_setup()
        differences = [
            f"{one.name} {getattr(here, one.name)} instead of {getattr(self, one.name)}"
            for one in fields(self)
            if getattr(here, one.name) != getattr(self, one.name)
        ]
        if differences:
            raise OtherSetupError(f"{platform.node()} has {', '.join(differences)}")


@cache
def local_setup() -> MachineSetup:
    """Return the versions of this machine."""
    return MachineSetup(
        ".".join(platform.python_version_tuple()[:2]),
        _installed_version("overheard"),
        _package_digest(),
        _installed_version("torch").partition("+")[0],
        _installed_version("numpy"),
    )


def _installed_version(package: str) -> str:
    """Return the version of a package, or that a machine has no more than its source."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _package_digest() -> str:
    """Return a digest of all source files of this package, 12 hexadecimal digits."""
    folder = Path(overheard.__file__).parent
    digest = blake2b(digest_size=6)
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


RETRIES = 3
"""How often Ray repeats a task whose worker or machine died."""

TASKS_PER_CORE = 2
"""Submitted tasks per core of the cluster, so that no core waits for the caller."""

PATIENCE = 60.0
"""Seconds without a result after which a cluster without any core is given up. Ray takes some
15 s to notice that a machine died, and a new machine takes its time to join."""

MISSING_MODULE = re.compile(r"No module named '[\w.]{1,200}'")
"""What Python says of a module that it does not find."""

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]
"""Named tensors as Ray sends them: arrays, read in place on each machine."""


def run_on_ray(
    tasks: Iterable[tuple[int, WorkerTask]], address: str
) -> Generator[TaskResult, None, None]:
    """Run numbered tasks on a Ray cluster, and yield results as they finish, in any order.

    Every machine of the cluster needs this package in the same version, and the module that
    builds the model. Each bundle of tensors is sent once. Ray repeats a task whose worker or
    machine died. A task that fails is run again here, so that its own error is raised.

    Args:
        tasks: numbered tasks.
        address: see `connect`.

    Raises:
        PlanError: if Ray is not installed, the cluster does not respond or cannot be joined, or
            one of its machines has other versions or does not find a module.
        WorkerError: if workers die repeatedly on one task, or the cluster is lost.

    """
    ray = connect(address)
    try:
        yield from _ClusterRun(ray, local_setup()).run(tasks)
    except ConnectionError as lost:
        # Otherwise Ray would start anew, or search for another cluster, at the next call.
        with suppress(Exception):
            ray.shutdown()
        # The first machine reads each job in order to pass it on; if it cannot, it hangs up.
        missing = MISSING_MODULE.search(str(lost))
        if missing:
            raise _setup_error(missing.group()) from lost
        raise WorkerError(
            f"the Ray cluster {address!r} was lost: start it again and run the same command, "
            "which computes only what is not yet stored"
        ) from lost


def run_job_remotely(setup: MachineSetup, job: Job, *bundles: Arrays) -> Arrays:
    """Run a job on a machine of the cluster that has this setup."""
    setup.check_here()
    # Copy: torch warns about Ray's read-only memory, and tensors of torch are aligned.
    tensors = {
        name: torch.tensor(array) for bundle in bundles for name, array in bundle.items()
    }
    return _as_arrays(job.run(tensors))


def _setup_error(detail: str) -> PlanError:
    return PlanError(
        "a machine of the Ray cluster cannot run a task: install the same versions and your "
        "own modules on every machine, where Ray finds them when it starts, and run the same "
        f"command; {escape_unprintable(detail)}"
    )


@final
class _ClusterRun:
    """The tasks of one caller that a cluster still works on."""

    def __init__(self, ray: Any, setup: MachineSetup) -> None:  # a module without types
        self._ray = ray
        self._run_remote = ray.remote(num_cpus=1, max_retries=RETRIES)(run_job_remotely)
        self._setup = ray.put(setup)
        self._sent: WeakKeyDictionary[TensorBundle, Any] = (
            WeakKeyDictionary()
        )  # of references that Ray made
        self._pending: dict[Any, tuple[int, WorkerTask]] = {}

    def run(self, tasks: Iterable[tuple[int, WorkerTask]]) -> Generator[TaskResult, None, None]:
        """Run these tasks, and cancel those that are left when the caller stops early.

        Raises:
            ConnectionError: if the cluster is lost.

        """
        try:
            for number, task in tasks:
                # Machines come and go, so count anew.
                yield from self._finish_all_but(TASKS_PER_CORE * max(1, self._cores()) - 1)
                self._submit(number, task)
            yield from self._finish_all_but(0)
        except ConnectionError:
            self._pending.clear()  # which nobody works on any more
            raise
        finally:
            for reference in self._pending:
                self._ray.cancel(reference, force=True)

    def _cores(self) -> int:
        """Return the number of cores of all machines that the cluster has now."""
        return int(self._ray.cluster_resources().get("CPU", 0))

    def _submit(self, number: int, task: WorkerTask) -> None:
        for bundle in task.bundles:
            if bundle not in self._sent:
                self._sent[bundle] = self._ray.put(_as_arrays(bundle.tensors))
        bundles = (self._sent[bundle] for bundle in task.bundles)
        self._pending[self._run_remote.remote(self._setup, task.job, *bundles)] = (number, task)

    def _finish_all_but(self, count: int) -> Generator[TaskResult, None, None]:
        """Yield results until at most this number of tasks is left."""
        while len(self._pending) > count:
            reference = self._wait_for_one()
            number, task = self._pending.pop(reference)
            yield TaskResult(number, self._fetch_result(reference, task))

    def _wait_for_one(self) -> Any:  # a reference that Ray made
        while True:
            ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=PATIENCE)
            if ready:
                return ready[0]
            if not self._cores():
                raise WorkerError(
                    "no machine of the Ray cluster has a core for tasks: let a machine join it "
                    "and run the same command, which computes only what is not yet stored"
                )

    def _fetch_result(self, reference: Any, task: WorkerTask) -> Mapping[str, Tensor]:
        errors = self._ray.exceptions
        try:
            arrays: Arrays = self._ray.get(reference)
        except errors.RayTaskError as error:
            # The first: the machine could not read the job. The second: it runs, but elsewhere
            # the result would be another.
            if isinstance(error.cause, (errors.RaySystemError, OtherSetupError)):
                raise _setup_error(str(error.cause).splitlines()[0]) from error
            return task.run()
        except errors.RayError as crash:
            raise WorkerError(
                f"the Ray workers of a task died {RETRIES + 1} times: if machines ran out of "
                "memory, start Ray there with fewer cpus"
            ) from crash
        return {name: torch.tensor(array) for name, array in arrays.items()}


def _as_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
