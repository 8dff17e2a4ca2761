"""Attacks on the runs of an audit by worker processes, while later runs are trained."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from math import inf
from pathlib import Path
from time import perf_counter
from typing import cast, final

from torch import Tensor

from overheard.archive.value_codec import Json, ValueDecoder, ValueEncoder
from overheard.auditing.attack_runner import run_attacks
from overheard.auditing.audited_run import AuditedRun, open_simulated_run, simulate_runs
from overheard.auditing.cells.claim_store import FolderClaimStore
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import AttackerData, AttackerInputs, AuditInputs, Resources
from overheard.auditing.program import AuditProgram, resolve_plan
from overheard.auditing.progress import Progress
from overheard.core.errors import PlanError
from overheard.core.facts import Facts
from overheard.core.seeds import Seed
from overheard.learning.devices.choice import Host, current_host, know_machine, use_host
from overheard.learning.devices.training_work import TrainingWork
from overheard.learning.initialization import fresh_model
from overheard.learning.threads import available_cores, single_thread
from overheard.learning.train import describe_training
from overheard.learning.workers import processes
from overheard.learning.workers.job import Job, TensorBundle, WorkerTask
from overheard.plans.plan import parse_plan

MIN_SECONDS_SAVED = 8.0
"""Least time in seconds that workers must save before they attack runs. Each of them needs
four seconds to open the audit."""

MAX_WORKER_BYTES = 2**30
"""Most bytes of memory that a worker may need for the data and for the models of an attack."""

MANY_MODELS = 256
"""Most models that an attack holds at once: the shadow models of a round."""


def attack_ahead(
    program: AuditProgram, audit_inputs: AuditInputs, home: AuditFolder, progress: Progress
) -> Generator[AuditedRun, None, None]:
    """Yield the runs of a program in order; the caller attacks each before it takes the next.

    If a run took the caller long, workers attack all later runs side by side, while this
    process trains further runs. If attacks train virtual clients, each run takes long, so
    workers attack the first run too. The caller then finds the claims of workers in the folder.
    They equal its own, bit for bit. Within a single run, workers share only the training of
    virtual clients, and most of an attack is not divided.

    Args:
        program: the program of a plan whose runs are simulated.
        audit_inputs: the plan's data, and the compute resources.
        home: the folder of the audit.
        progress: where to report finished runs.

    """
    seconds_saved = inf if _trains_virtual_clients(program) and not _has_claims(home) else 0.0
    runs_left, workers = len(program.runs), _available_workers(audit_inputs.resources)
    runs = simulate_runs(program, audit_inputs, home, progress.report_rounds)
    # With fewer than two runs per worker, many workers would wait for the last runs.
    while runs_left >= 2 * workers > 2:
        if seconds_saved > MIN_SECONDS_SAVED:
            if not _can_workers_attack(audit_inputs):
                break
            _know_machine(program, audit_inputs)
            numbered_runs = enumerate(runs, len(program.runs) - runs_left)
            yield from _attack_in_workers(
                numbered_runs, runs_left, workers, audit_inputs, home, progress
            )
            return
        start = perf_counter()
        yield next(runs)
        runs_left -= 1
        seconds_saved = (perf_counter() - start) * runs_left * (1 - 1 / workers)
    yield from runs


def _trains_virtual_clients(program: AuditProgram) -> bool:
    """Return whether an attack of the program trains virtual clients, which takes long."""
    attacks = (one.attack for run in program.runs for one in run.attacks)
    return any(attack.training_source() == "virtual clients" for attack in attacks)


def _know_machine(program: AuditProgram, audit_inputs: AuditInputs) -> None:
    """Find out what a GPU saves, if attacks may need one: workers decide by it too."""
    plan, resources = program.plan, audit_inputs.resources
    rows = audit_inputs.partition(plan.seeds[0]).rows[0]

    def describe() -> TrainingWork | None:
        clients = (
            one.threat.virtual.clients
            if one.attack.training_source() == "virtual clients"
            else MANY_MODELS
            for run in program.runs
            for one in run.attacks
            if one.attack.training_source() != "none"
        )
        recipe, examples = plan.training.recipe, max(map(len, rows))
        return describe_training(
            partial(plan.training.model.build, audit_inputs.dataset.task),
            audit_inputs.dataset.train.inputs,
            recipe,
            clients=max(clients, default=0),
            examples=examples * recipe.epochs,
            steps=recipe.steps(examples, None),
            are_jobs=True,
            times=plan.training.rounds * len(program.runs),
        )

    if resources.device == "auto" and resources.cluster is None:
        know_machine(describe)


def _has_claims(home: AuditFolder) -> bool:
    """Return whether claims are stored already; a resumed audit may have little left to do."""
    return home.cells_path.exists() and any(home.cells_path.iterdir())


def _attack_in_workers(
    runs: Iterator[tuple[int, AuditedRun]],
    count: int,
    workers: int,
    audit_inputs: AuditInputs,
    home: AuditFolder,
    progress: Progress,
) -> Iterator[AuditedRun]:
    """Yield the last `count` runs of an audit in order, each after workers attacked it."""
    trained, resources = dict[int, AuditedRun](), replace(audit_inputs.resources, workers=1)
    known = cache(partial(_encode_data, audit_inputs))

    def tasks() -> Iterator[tuple[int, WorkerTask]]:
        for number, run in runs:
            trained[number] = run
            progress.keep_rounds()
            data, bundle = known(run.observed.spec.seed)
            job = AttackRun(home.path.absolute(), number, resources, data, current_host())
            yield number, WorkerTask(job, (bundle,))

    finished = set[int]()
    with closing(_run_tasks(tasks(), workers)) as numbers:
        for done, number in enumerate(numbers, 1):
            progress.report_subtask("attacks on the other runs", "run", done, count)
            # Runs are trained in order, so the first one in `trained` comes next.
            finished.add(number)
            while trained and (following := next(iter(trained))) in finished:
                yield trained.pop(following)


def _encode_data(audit_inputs: AuditInputs, seed: int) -> tuple[Json, TensorBundle]:
    """Encode what attackers on the runs of a seed may hold, to send it to each worker once."""
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
        folder: the folder of the audit, which has the plan.
        number: the number of the run in the program of the plan.
        resources: the compute resources; one worker.
        data: what attackers may hold, see `_encode_data`; its tensors are passed to `run`.
        host: what the main process knows of the machine; None = what this process knows.

    """

    folder: Path
    number: int
    resources: Resources
    data: Json
    host: Host | None = None

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Attack the run, but for attacks that need a GPU; return no tensor."""
        if self.host is not None:
            use_host(self.host)
        home = AuditFolder(self.folder)
        (known, *facts), texts = cast(tuple[list[Json], list[list[str]]], self.data)
        decoder = ValueDecoder([tensors[str(place)] for place in range(len(tensors))], texts)
        data = decoder.decode(known, AttackerData)
        program = _resolve_once(home.plan_text() or "", tuple(data.digests.items()))
        run, plan = program.runs[self.number], program.plan
        held = (
            decoder.decode(fact, kind)
            for fact, kind in zip(facts, plan.known_kinds(), strict=True)
            if fact is not None
        )
        cache = home.tensor_cache(self.resources.simulation_cache)
        inputs = AttackerInputs(plan, run.seed, data, Facts(*held), self.resources, cache)
        observed = open_simulated_run(run, inputs, home)
        store = FolderClaimStore(home.cells_path, home.path)
        with single_thread():
            for attacks in run.by_threat():
                for _ in run_attacks(observed, attacks, store, Progress(None)):
                    pass  # Claims are stored as soon as they are made.
        return {}


@lru_cache(1)
def _resolve_once(plan: str, data: tuple[tuple[str, str], ...]) -> AuditProgram:
    """Resolve the plan once in a worker, which attacks several runs."""
    return resolve_plan(parse_plan(plan, "the plan of the audit"), dict(data))


def _available_workers(resources: Resources) -> int:
    """Return how many worker processes may attack runs; 1 = none."""
    if resources.cluster is not None or not processes.are_supported():
        return 1
    return available_cores() if resources.workers is None else resources.workers


def _can_workers_attack(audit_inputs: AuditInputs) -> bool:
    """Return whether each worker has room for the audit, and can build its plan from text."""
    plan = audit_inputs.plan
    _, bundle = _encode_data(audit_inputs, plan.seeds[0])
    model = fresh_model(partial(plan.training.model.build, audit_inputs.dataset.task), Seed(0))
    data_bytes = sum(tensor.nbytes for tensor in bundle.tensors.values())
    model_bytes = sum(weight.nbytes for weight in model.parameters())
    if data_bytes + MANY_MODELS * model_bytes > MAX_WORKER_BYTES:
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
        # Workers still hold what the attackers of this audit know.
        processes.stop_idle(workers)
