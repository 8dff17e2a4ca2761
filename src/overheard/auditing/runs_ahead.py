"""Attacks on the later runs of an audit, side by side in worker processes."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import cast, final

from torch import Tensor

from overheard.auditing.attack_runner import run_attacks
from overheard.auditing.audited_run import AuditedRun, open_simulated_run
from overheard.auditing.cells.claim_store import FolderClaimStore
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import AttackerData, AttackerInputs, AuditInputs, Resources
from overheard.auditing.progress import Progress
from overheard.auditing.value_codec import Json, ValueDecoder, ValueEncoder
from overheard.auditing.work_items import (
    RunKind,
    name_observers_of_run,
    run_kinds,
    simulated_parties,
)
from overheard.core.errors import PlanError
from overheard.core.facts import Facts
from overheard.core.seeds import Seed
from overheard.learning.device import choose_device
from overheard.learning.initialization import fresh_model
from overheard.learning.threads import available_cores, one_thread
from overheard.learning.workers import processes
from overheard.learning.workers.job import Job, TensorBundle, WorkerTask
from overheard.plans.plan import Plan, parse_plan

FEWEST_SECONDS = 8.0
"""Seconds to be saved before workers attack whole runs: opening the audit takes them four."""

MOST_BYTES = 2**30
"""Most memory that a worker may need for the data and for the models of an attack."""

MODELS_AT_ONCE = 256
"""The models that attacks hold at once: the shadow models of a round."""


def attack_ahead(
    runs: Iterator[AuditedRun], audit_inputs: AuditInputs, home: AuditFolder, progress: Progress
) -> Generator[AuditedRun, None, None]:
    """Yield the runs of an audit in order; the caller attacks each before it takes the next.

    Once the caller took long for a run, workers attack all later ones side by side, while this
    process still trains runs. If attacks train virtual clients, each run takes long, and so
    workers attack the first one too. The caller then finds their claims in the folder. They
    are the same bit for bit. Virtual clients of a single run are trained by several workers
    too, but most of an attack is not divided.

    Args:
        runs: the simulated runs of the plan, arm by arm.
        audit_inputs: the plan's data, and the compute resources.
        home: the folder of the audit.
        progress: where to report finished runs.

    """
    plan, workers = audit_inputs.plan, _available_workers(audit_inputs.resources)
    left = len(plan.seeds) * len(run_kinds(plan)) * len(plan.arms)
    saved = inf if _trains_virtual_clients(plan) and not _is_begun(home) else 0.0
    # With fewer runs than that, workers would wait for the last of them.
    while left >= 2 * workers > 2:
        if saved > FEWEST_SECONDS:
            if not _can_be_shared(audit_inputs):
                break
            yield from _attack_elsewhere(runs, left, workers, audit_inputs, home, progress)
            return
        start = perf_counter()
        yield next(runs)
        left -= 1
        saved = (perf_counter() - start) * left * (1 - 1 / workers)
    yield from runs


def _trains_virtual_clients(plan: Plan) -> bool:
    """Return whether an attack of the plan trains virtual clients, which takes seconds."""
    attacks = (attack for threat in plan.threats for attack in threat.attacks)
    return any(attack.training_source() == "virtual clients" for attack in attacks)


def _is_begun(home: AuditFolder) -> bool:
    """Return whether results are stored already; a resumed audit may have little left to do."""
    return home.cells_path.exists() and any(home.cells_path.iterdir())


def _attack_elsewhere(
    runs: Iterator[AuditedRun],
    count: int,
    workers: int,
    audit_inputs: AuditInputs,
    home: AuditFolder,
    progress: Progress,
) -> Iterator[AuditedRun]:
    """Yield the last `count` runs of an audit in order, each after workers attacked it."""
    plan, trained = audit_inputs.plan.toml(), dict[int, AuditedRun]()
    resources = replace(audit_inputs.resources, workers=1)
    known = cache(partial(_encode_data, audit_inputs))

    def tasks() -> Iterator[tuple[int, WorkerTask]]:
        for number, run in enumerate(runs):
            trained[number] = run
            progress.keep_rounds()
            seen, (data, bundle) = run.observed, known(run.observed.seed)
            job = AttackRun(
                plan, home.path.absolute(), resources, seen.name, seen.seed, seen.kind, data
            )
            yield number, WorkerTask(job, (bundle,))

    finished, following = set[int](), 0
    with closing(_run_tasks(tasks(), workers)) as numbers:
        for number in numbers:
            finished.add(number)
            progress.report_subtask("attacks on the other runs", "run", len(finished), count)
            while following in finished:
                yield trained.pop(following)
                following += 1


def _encode_data(audit_inputs: AuditInputs, seed: int) -> tuple[Json, TensorBundle]:
    """Return what attackers on the runs of a seed may hold, so that it can be sent once."""
    encoder = ValueEncoder()
    inputs = audit_inputs.for_attackers(seed)
    facts = [inputs.facts.get(kind) for kind in inputs.plan.known_kinds()]
    content = encoder.encode((inputs.data, *facts))
    texts: Json = [list(one) for one in encoder.texts]
    tensors = {str(place): tensor for place, tensor in enumerate(encoder.tensors)}
    return [content, texts], TensorBundle(tensors)


@final
@dataclass(frozen=True, slots=True)
class AttackRun(Job):
    """All attacks on one finished run; their claims are stored in the folder of the audit.

    A worker gets the messages of the run, the plan, and what attackers may hold: neither the
    ground truth nor the examples of clients.

    Args:
        plan: the plan, as TOML.
        folder: the folder of the audit.
        resources: the compute resources; one worker.
        arm: the name of the run's arm.
        seed: the seed of the run.
        kind: whether it is the planned run or one of its controls.
        data: what attackers may hold, see `_encode_data`; its tensors are passed to `run`.

    """

    plan: str
    folder: Path
    resources: Resources
    arm: str
    seed: int
    kind: RunKind
    data: Json

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Attack the run; return no tensor."""
        home, plan = AuditFolder(self.folder), _parse_once(self.plan)
        (arm,) = (arm for arm in plan.arms if arm.name == self.arm)
        (known, *facts), texts = cast(tuple[list[Json], list[list[str]]], self.data)
        data = ValueDecoder([tensors[str(place)] for place in range(len(tensors))], texts)
        inputs = AttackerInputs(
            plan,
            data.decode(known, AttackerData),
            Facts(
                tuple(
                    data.decode(fact, kind)
                    for fact, kind in zip(facts, plan.known_kinds(), strict=True)
                    if fact is not None
                )
            ),
            self.resources,
            home.tensor_cache(self.resources.simulation_cache),
        )
        run = open_simulated_run(inputs, home, arm, self.seed, self.kind)
        store = FolderClaimStore(home.cells_path, home.path)
        with one_thread():
            for threat in name_observers_of_run(plan, simulated_parties(plan)).threats:
                for _ in run_attacks(plan, run, threat, store, Progress(None)):
                    pass  # Claims are stored as soon as they are made.
        return {}


@lru_cache(1)
def _parse_once(plan: str) -> Plan:
    """Parse the plan once in a worker, which attacks several runs."""
    return parse_plan(plan, "the plan of the audit")


def _available_workers(resources: Resources) -> int:
    """Return how many worker processes may attack runs; 1 = none."""
    is_cpu = choose_device(resources.device).type == "cpu"
    if not is_cpu or resources.cluster is not None or not processes.are_supported():
        return 1
    return available_cores() if resources.workers is None else resources.workers


def _can_be_shared(audit_inputs: AuditInputs) -> bool:
    """Return whether each worker has room for the audit, and can build its plan from text."""
    plan = audit_inputs.plan
    model = fresh_model(partial(plan.training.model.build, audit_inputs.dataset.task), Seed(0))
    _, bundle = _encode_data(audit_inputs, plan.seeds[0])
    needed = sum(tensor.nbytes for tensor in bundle.tensors.values()) + MODELS_AT_ONCE * sum(
        weight.nbytes for weight in model.parameters()
    )
    if needed > MOST_BYTES:
        return False
    try:
        return parse_plan(plan.toml(), "the plan of a worker") == plan
    except PlanError:
        return False


def _run_tasks(
    tasks: Iterable[tuple[int, WorkerTask]], workers: int
) -> Generator[int, None, None]:
    """Run tasks in workers, and yield their numbers as they finish.

    A task is taken as soon as a worker is nearly free.
    """
    try:
        with closing(processes.acquire(workers).run_tasks(tasks)) as results:
            for result in results:
                yield result.number
    finally:
        # They hold what the attackers of this audit know.
        processes.stop_idle(workers)
