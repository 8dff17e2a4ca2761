"""Execution of tasks on a Ray cluster, or on a Ray started on this machine.

Ray sends data by cloudpickle, so anyone with access to one machine of the cluster can run
programs on all others, and on this one.
"""

import signal
import socket
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any
from urllib.parse import urlsplit
from warnings import catch_warnings, simplefilter
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from overheard.core.errors import PlanError, WorkerError
from overheard.core.escape import escape_unprintable
from overheard.learning.threads import available_cores
from overheard.learning.workers.job import Job, TaskResult, TensorBundle, WorkerTask

LOCAL = "local"
"""The address that stands for this machine."""

RETRIES = 3
"""How often Ray repeats a task whose worker died."""

CONNECT_TIMEOUT = 5.0
"""Seconds within which a cluster must respond."""

TASKS_PER_CORE = 2
"""Submitted tasks per core of the cluster, so that no core waits for the caller."""

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]
"""Named tensors as Ray sends them: arrays, read in place on each machine."""


def run_on_ray(
    tasks: Iterable[tuple[int, WorkerTask]], address: str
) -> Generator[TaskResult, None, None]:
    """Run numbered tasks on a Ray cluster, and yield results as they finish, in any order.

    Every machine of the cluster needs this package in the same version, and the module that
    builds the model. Each bundle of tensors is sent once. Ray repeats a task whose worker died.
    A task that fails is run again here, so that its own error is raised.

    Args:
        tasks: numbered tasks.
        address: "ray://host:port" of a running cluster. "local" starts one here with one worker
            per core, which runs until Python exits. If this process is already connected to a
            cluster, that one is used.

    Raises:
        PlanError: if Ray is not installed, or the cluster does not respond or cannot be joined.
        WorkerError: if workers die repeatedly on one task.

    """
    _check_address(address)
    try:
        import ray
    except ImportError as missing:
        raise PlanError(
            f"the cluster {address!r} needs Ray: pip install '.[ray]' in a checkout of "
            "Overheard, or leave `cluster` out"
        ) from missing
    _connect(ray, address)
    run_remote = ray.remote(num_cpus=1, max_retries=RETRIES)(run_job_remotely)
    limit = TASKS_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1)))
    sent: WeakKeyDictionary[TensorBundle, Any] = (
        WeakKeyDictionary()
    )  # of references that Ray made
    pending: dict[Any, tuple[int, WorkerTask]] = {}

    def finished(limit_pending: int) -> Generator[TaskResult, None, None]:
        while len(pending) > limit_pending:
            (reference,), _ = ray.wait(list(pending), num_returns=1)
            number, task = pending.pop(reference)
            yield TaskResult(number, _fetch_result(ray, reference, task))

    try:
        for number, task in tasks:
            yield from finished(limit - 1)
            for bundle in task.bundles:
                if bundle not in sent:
                    sent[bundle] = ray.put(_as_arrays(bundle.tensors))
            pending[run_remote.remote(task.job, *(sent[bundle] for bundle in task.bundles))] = (
                number,
                task,
            )
        yield from finished(0)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)


def run_job_remotely(job: Job, *bundles: Arrays) -> Arrays:
    """Run a job on a machine of the cluster."""
    # Copy: torch warns about Ray's read-only memory, and tensors of torch are aligned.
    tensors = {
        name: torch.tensor(array) for bundle in bundles for name, array in bundle.items()
    }
    return _as_arrays(job.run(tensors))


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


def _connect(ray: Any, address: str) -> None:  # a module without types
    if ray.is_initialized():
        return
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


def _fetch_result(
    ray: Any, reference: Any, task: WorkerTask
) -> Mapping[str, Tensor]:  # without types
    try:
        arrays: Arrays = ray.get(reference)
    except ray.exceptions.WorkerCrashedError as crash:
        raise WorkerError(
            f"the Ray workers of a task died {RETRIES + 1} times: if machines ran out of "
            "memory, start Ray there with fewer cpus"
        ) from crash
    except ray.exceptions.RayTaskError:
        return task.run()
    return {name: torch.tensor(array) for name, array in arrays.items()}


def _as_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
