"""Runs of a client: started anew, asked to train in some rounds, and watched."""

import os
import random
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, final
from unittest import mock

import numpy as np
import torch
from torch.utils.data import DataLoader

from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import import_reference
from overheard.core.errors import AuditError, PlanError
from overheard.doctor.replay.clients import (
    Code,
    PlainClient,
    TestedClient,
    Value,
    claim_of_modules,
    flatten_reply,
    new_modules,
)
from overheard.doctor.replay.noise_arrays import watch_numpy
from overheard.doctor.replay.records import RecordReplacer, Replacement
from overheard.doctor.replay.stated_claim import StatedClaim
from overheard.doctor.replay.trace import Intervention, TorchRecorder, Trace

ROUNDS = 2
"""Rounds in which each client is asked to train."""

Rows = Mapping[int, Sequence[int]]
"""By the number of a model's pass, the rows of the record."""


@final
@dataclass(frozen=True, slots=True)
class RunPlan:
    """How a client is run.

    Args:
        replacement: the record, and what is put in its place.
        client: number of the client.
        entropy: what all unseeded generators begin with.
        changes: by message, how else the run is changed; () = not at all.

    """

    replacement: Replacement
    client: int = 0
    entropy: int = 1
    changes: tuple[Intervention, ...] = ()

    def masked(self, rows: Sequence[Rows], factor: float) -> "RunPlan":
        """Return the same plan, with gradients of the record's rows multiplied."""
        return replace(self, changes=tuple(Intervention(one, factor) for one in rows))


@final
@dataclass(slots=True, eq=False)
class Run:
    """What a client did.

    Args:
        plan: how it was run.
        records: number of records of its data; 0 = none were seen that could be replaced.
        replies: values of its reply to each message.
        traces: what happened when it was started, and with each message.
        failure: the error that ended the run; "" = none.
        claim: clip and noise multiplier that its code states.
        seconds: how long it took.

    """

    plan: RunPlan
    records: int = 0
    replies: list[dict[str, Value]] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    failure: str = ""
    claim: StatedClaim = field(default_factory=StatedClaim)
    seconds: float = 0.0


def run_client(code: Code, plan: RunPlan, past: Run | None = None) -> Run:
    """Start a client anew and let it train, as a replay of the past if there is one.

    An error of its code ends the run and is noted. Errors of Overheard are raised.
    """
    begun = time.process_time()
    run = Run(plan)
    records = RecordReplacer(plan.replacement)
    recorder = TorchRecorder(frozenset(), 0)
    with _surroundings(code, plan, recorder), recorder.watching():
        try:
            _start(code, run, records, recorder, past)
        except AuditError:
            raise
        # The user's own code may fail in any way.
        except Exception as error:
            run.failure = describe_failure(error)
    run.records, run.claim = records.records, recorder.claim.filled(run.claim)
    run.seconds = time.process_time() - begun
    return run


def _start(
    code: Code, run: Run, records: RecordReplacer, recorder: TorchRecorder, past: Run | None
) -> None:
    changes = run.plan.changes or (Intervention(),) * ROUNDS
    for message in range(ROUNDS + 1):
        run.traces.append(Trace())
        before = None if past is None or message >= len(past.traces) else past.traces[message]
        change = changes[max(message - 1, 0)]
        if message == 0:
            # There are no passes of the model yet that could be scaled.
            change = Intervention(
                absent=change.absent, replays_released=change.replays_released
            )
        recorder.begin(run.traces[-1], before, change)
        if message == 0:
            client = _open_client(code)
            client.start(run.plan.client, records)
            run.claim = claim_of_modules(code.folder)
            weights = client.start_weights()
            counts = [one.numel() for one in weights]
            trained = [one.numel() for one in weights if one.requires_grad] or counts
            recorder.total = sum(trained)
            recorder.sizes = frozenset({*counts, sum(counts), sum(trained)})
        else:
            run.replies.append(flatten_reply(client.train(message)))


def _open_client(code: Code) -> TestedClient:
    """Return the client of some code, which is imported to see of which kind it is."""
    found = import_reference(code.client, "the client", PlanError)
    if type(found).__name__ == "ClientApp":
        from overheard.doctor.replay.flower_client import FlowerClient

        return FlowerClient(code)
    if not callable(found):
        raise PlanError(
            f"{code.client} is neither a ClientApp of Flower nor a function that trains: name "
            "one of these"
        )
    return PlainClient(code)


@contextmanager
def _surroundings(code: Code, plan: RunPlan, recorder: TorchRecorder) -> Iterator[None]:
    """Let code run with given entropy, with new modules, and in this process only."""
    stream = random.Random(plan.entropy)

    def entropy(size: int) -> bytes:
        return stream.randbytes(size)

    make_loader = DataLoader.__init__

    # Any: arguments of a data loader.
    def loader(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("prefetch_factor", "multiprocessing_context"):
            kwargs.pop(name, None)
        if kwargs.get("persistent_workers"):
            kwargs["persistent_workers"] = False
        make_loader(self, *args[:5], **{**kwargs, "num_workers": 0})

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002 - what code of users draws from
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(new_modules(code.folder))
        stack.enter_context(watch_numpy(recorder))
        for owner, name, value in (
            (random, "_urandom", entropy),
            (os, "urandom", entropy),
            (DataLoader, "__init__", loader),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        random.seed(plan.entropy)
        np.random.seed(plan.entropy)  # noqa: NPY002 - what code of users draws from
        torch.manual_seed(plan.entropy)
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002 - what code of users draws from
            torch.set_rng_state(states[2])
