"""Tasks on a Ray cluster, or on a Ray that is started on this machine.

Ray pickles what it sends, by cloudpickle: whoever holds a machine of the cluster can run
programs on the others and here.
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
from overheard.core.spelled import spelled_out
from overheard.learning.threads import cores
from overheard.learning.workers.job import Bundle, Done, Job, WorkerTask

LOCAL = "local"
"""The address that stands for this machine."""

RETRIES = 3
"""Times that Ray tries a task again whose worker died."""

PATIENCE = 5.0
"""Seconds within which a cluster has to answer."""

AHEAD = 2
"""Tasks under way for each core of the cluster, so that none waits for the caller."""

Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]
"""Named tensors as Ray sends them: arrays of any numbers, read in place on each machine."""


def on_cluster(
    tasks: Iterable[tuple[int, WorkerTask]], address: str
) -> Generator[Done, None, None]:
    """Do numbered tasks on a Ray cluster, and give them as they are done, in any order.

    Every machine of it needs this package in the same version, and whatever module builds the
    model. Each bundle of tensors is sent once. Ray does a task again whose worker died. A task
    that fails is done here, so that its error is raised as itself.

    Args:
        tasks: what to do.
        address: "ray://host:port" of a running cluster; "local" starts one here, with a worker
            a core, which stays until Python exits. A cluster that this process has joined
            already is used whatever the address says.

    Raises:
        PlanError: if Ray is not installed, or the cluster does not answer or cannot be joined.
        WorkerError: if workers die of one task again and again.

    """
    _check(address)
    try:
        import ray
    except ImportError as missing:
        raise PlanError(
            f"the cluster {address!r} needs Ray: pip install overheard[ray], or leave "
            "`cluster` out"
        ) from missing
    _join(ray, address)
    do = ray.remote(num_cpus=1, max_retries=RETRIES)(run_remotely)
    most = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    sent: WeakKeyDictionary[Bundle, Any] = WeakKeyDictionary()  # of references that Ray made
    flying: dict[Any, tuple[int, WorkerTask]] = {}

    def landed(until: int) -> Generator[Done, None, None]:
        while len(flying) > until:
            (reference,), _ = ray.wait(list(flying), num_returns=1)
            number, task = flying.pop(reference)
            yield Done(number, _taken(ray, reference, task))

    try:
        for number, task in tasks:
            yield from landed(most - 1)
            for bundle in task.bundles:
                if bundle not in sent:
                    sent[bundle] = ray.put(_arrays(bundle.tensors))
            flying[do.remote(task.job, *(sent[bundle] for bundle in task.bundles))] = (
                number,
                task,
            )
        yield from landed(0)
    finally:
        for reference in flying:
            ray.cancel(reference, force=True)


def run_remotely(job: Job, *bundles: Arrays) -> Arrays:
    """Do a job on a machine of the cluster."""
    # Copied: torch would warn that Ray's memory must not be written to, and its own is aligned.
    tensors = {name: torch.tensor(array) for own in bundles for name, array in own.items()}
    return _arrays(job.run(tensors))


def _check(address: str) -> None:
    """Refuse an address where nobody answers: Ray itself would try for minutes."""
    if address == LOCAL:
        return
    told = f"the Ray cluster {address!r} does not answer: give 'local', or 'ray://host:port' of"
    try:
        place = urlsplit(address)
        if place.scheme != "ray" or place.hostname is None or place.port is None:
            raise PlanError(f"{told} the Ray Client server of a cluster")
        socket.create_connection((place.hostname, place.port), timeout=PATIENCE).close()
    except (OSError, ValueError) as error:
        raise PlanError(f"{told} one that runs; {error}") from error


def _join(ray: Any, address: str) -> None:  # a module without types
    if ray.is_initialized():
        return
    # Ray warns of its own future at every start.
    with _sigterm_kept(), catch_warnings():
        simplefilter("ignore", FutureWarning)
        if address == LOCAL:
            ray.init(
                address=LOCAL,
                num_cpus=cores(),
                include_dashboard=False,
                configure_logging=False,
                log_to_driver=False,
            )
            return
        try:
            ray.init(address=address, configure_logging=False, log_to_driver=False)
        # In this order: without ray[client]; not Ray on that port; other versions there.
        except (ValueError, ConnectionError, RuntimeError) as error:
            raise PlanError(
                f"the Ray cluster {address!r} cannot be joined: give the port of its Ray "
                "Client server, and have ray[client] here in its version of Ray and of Python; "
                f"{spelled_out(str(error))}"
            ) from error


@contextmanager
def _sigterm_kept() -> Generator[None, None, None]:
    """Leave SIGTERM to whoever answered it before: Ray takes it over, prints and aborts."""
    answer = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(answer) and current_thread() is main_thread():
            signal.signal(signal.SIGTERM, answer)


def _taken(ray: Any, reference: Any, task: WorkerTask) -> Mapping[str, Tensor]:  # without types
    try:
        arrays: Arrays = ray.get(reference)
    except ray.exceptions.WorkerCrashedError as crash:
        raise WorkerError(
            f"the Ray workers that were given a task died {RETRIES + 1} times: if machines ran "
            "out of memory, start Ray there with fewer cpus"
        ) from crash
    except ray.exceptions.RayTaskError:
        return task.run()
    return {name: torch.tensor(array) for name, array in arrays.items()}


def _arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
