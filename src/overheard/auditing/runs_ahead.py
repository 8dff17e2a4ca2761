"""Attacks on the later runs of an audit, side by side in worker processes."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from math import inf
from pathlib import Path
from time import perf_counter
from typing import final

from torch import Tensor

from overheard.archive.tensor_cache import FolderTensorCache
from overheard.auditing.attack_runner import run_attacks
from overheard.auditing.audited_run import AuditedRun, simulate_runs
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import AuditInputs, Resources, load_inputs
from overheard.auditing.progress import Progress
from overheard.auditing.work_items import name_observers_of_run, run_kinds, simulated_parties
from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.data.reading.folder import data_folder
from overheard.findings.result_cache import ResultCache
from overheard.learning.device import choose_device
from overheard.learning.initialization import fresh_model
from overheard.learning.threads import available_cores, one_thread
from overheard.learning.workers import processes
from overheard.learning.workers.job import Job, WorkerTask
from overheard.plans.plan import Plan, parse_plan

FEWEST_SECONDS = 8.0
"""Seconds to be saved before workers attack whole runs: opening the audit takes them four."""

MOST_BYTES = 2**30
"""Most memory that a worker may need for the data and for the models of an attack."""

MODELS_AT_ONCE = 256
"""The models that attacks hold at once: the shadow models of a round."""


def attack_ahead(
    runs: Iterator[AuditedRun], audit_inputs: AuditInputs, home: AuditFolder, progress: Progress
) -> Iterator[AuditedRun]:
    """Yield the runs of an audit in order; the caller attacks each before it takes the next.

    Once the caller took long for a run, workers attack all later ones side by side, while this
    process still trains runs. If attacks train virtual clients, each run takes long, and so
    workers attack the first one too. The caller then finds their results in the folder. They
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
    """Yield the last `count` runs of an audit, after workers attacked them."""
    plan, trained = audit_inputs.plan, list[AuditedRun]()
    kinds = len(plan.seeds) * len(run_kinds(plan))
    resources = _resources_of_workers(audit_inputs.resources)

    def jobs() -> Iterator[AttackRun]:
        for number, run in zip(range(kinds * len(plan.arms))[-count:], runs, strict=True):
            trained.append(run.with_complete_record())
            progress.keep_rounds()
            yield AttackRun(
                plan.toml(), home.path.absolute(), resources, run.record.arm, number % kinds
            )

    _attack_in_workers(jobs(), count, workers, progress)
    yield from trained


def _resources_of_workers(resources: Resources) -> Resources:
    """Return the resources of one worker, whose environment and folder may be older."""
    data = data_folder(resources.data)
    return replace(resources, workers=1, data=None if data is None else data.absolute())


@final
@dataclass(frozen=True, slots=True)
class AttackRun(Job):
    """All attacks on one finished run, whose results are stored in the folder of the audit.

    Args:
        plan: the plan, as TOML.
        folder: the folder of the audit.
        resources: where the data are; one worker.
        arm: the name of the run's arm.
        number: the place of the run among those of its arm.

    """

    plan: str
    folder: Path
    resources: Resources
    arm: str
    number: int

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Attack the run; return no tensor."""
        home = AuditFolder(self.folder)
        with one_thread():
            audit_inputs = _load_once(self.plan, home, self.resources)
            plan = audit_inputs.plan
            arms = tuple(arm for arm in plan.arms if arm.name == self.arm)
            seed, kind = divmod(self.number, len(run_kinds(plan)))
            own = plan.model_copy(update={"arms": arms, "seeds": (plan.seeds[seed],)})
            runs = simulate_runs(own, audit_inputs, home, _ignore_rounds)
            (run,) = islice(runs, kind, kind + 1)
            for threat in name_observers_of_run(plan, simulated_parties(plan)).threats:
                for _ in run_attacks(
                    plan, run, threat, ResultCache(home.cells_path), Progress(None)
                ):
                    pass  # Each result is stored as soon as it is computed.
        return {}


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
    inputs = audit_inputs.dataset.train.inputs
    needed = inputs.numel() * inputs.element_size() + MODELS_AT_ONCE * sum(
        weight.numel() * weight.element_size() for weight in model.parameters()
    )
    if needed > MOST_BYTES:
        return False
    try:
        return parse_plan(plan.toml(), "the plan of a worker") == plan
    except PlanError:
        return False


def _attack_in_workers(
    jobs: Iterable["AttackRun"], count: int, workers: int, progress: Progress
) -> None:
    """Attack runs in workers; jobs are taken one by one, as soon as a worker is nearly free."""
    tasks = enumerate(WorkerTask(job, ()) for job in jobs)
    finished = processes.acquire(workers).run_tasks(tasks)
    try:
        with closing(finished):
            for done, _ in enumerate(finished, start=1):
                progress.report_subtask("attacks on the other runs", "run", done, count)
    finally:
        # They hold the data of this audit. The next one may find other data at the same place.
        processes.stop_idle(workers)
        _load_once.cache_clear()


@lru_cache(1)
def _load_once(plan: str, home: AuditFolder, resources: Resources) -> AuditInputs:
    """Load the inputs of an audit once in a worker, which attacks several of its runs."""
    cache = FolderTensorCache(resources.simulation_cache or home.simulation_path)
    return load_inputs(parse_plan(plan, "the plan of the audit"), resources, cache)


def _ignore_rounds(description: str, done: int) -> None:
    """Ignore the progress of training, which is complete."""
