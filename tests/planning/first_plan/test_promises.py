"""Nothing that a first plan promises is refused by the audit, whatever was recorded."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from overheard.algorithms.fed_avg import FedAvg
from overheard.archive.layout import truth_path
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.algorithm.deduced_view import UNRECORDED_COHORTS
from overheard.core.errors import PlanError
from overheard.core.messages import Aggregate, Broadcast, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.writing import FirstPlan, write_first_plan
from overheard.planning.plan_check import check_plan
from overheard.planning.recorded_facts import read_recorded_facts
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.attacks.sum_shares import SumShares
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo

HERE = Resources(device="cpu", workers=1)
ROUNDS = 3
TO_SERVER = frozenset({SERVER})

Weights = dict[str, Tensor]


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))


def batch_normed() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))


class Adapted(nn.Module):
    """A frozen base with an adapter; only the adapter and the last layer are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 5)
        self.base.requires_grad_(False)
        self.adapter = nn.Linear(4, 5, bias=False)
        self.last = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.base(x) + self.adapter(x))


def adapted() -> nn.Module:
    torch.manual_seed(0)
    return Adapted()


class Recording:
    """A recording of made-up changes of a network's tensors."""

    def __init__(self, folder: Path, tensors: Mapping[str, Tensor], info: RunInfo) -> None:
        self.folder = folder
        self._tensors = {name: one.detach().float() for name, one in tensors.items()}
        self._generator = Seed(0).generator()
        self._writer = AsyncWriter(folder, info)

    def draw(self) -> Weights:
        return {
            name: 0.1 * torch.randn(one.shape, generator=self._generator)
            for name, one in self._tensors.items()
        }

    def model(self, number: int) -> Weights:
        generator = Seed(number).generator()
        return {
            name: one + 0.1 * torch.randn(one.shape, generator=generator)
            for name, one in self._tensors.items()
        }

    def write(
        self,
        clients: int,
        *,
        are_updates_kept: bool = True,
        are_clients_named: bool = True,
        is_masked: bool = False,
        rounds: int = ROUNDS,
    ) -> Path:
        parties = [client(number) for number in range(clients)]
        writer = self._writer
        for number in range(rounds + 1):
            weights = self.model(number)
            writer.begin_round([SERVER, *(parties if are_clients_named else [])])
            readers = frozenset(parties if are_clients_named else ())
            writer.write(SERVER, readers, lambda weights=weights: Broadcast(weights))
            if number < rounds and are_updates_kept:
                for one in [] if is_masked else parties:
                    writer.write(one, TO_SERVER, lambda: Update(self.draw(), 20))
                if is_masked:
                    mean = Aggregate(self.draw(), frozenset(parties), 60)
                    writer.write(COHORT, TO_SERVER, lambda mean=mean: mean)
            writer.commit()
        writer.close()
        return self.folder


FLOWER = RunInfo("flower")


def positions(network: nn.Module) -> dict[str, Tensor]:
    return {str(place): one for place, one in enumerate(network.state_dict().values())}


def floating(network: nn.Module) -> dict[str, Tensor]:
    return {name: one for name, one in network.state_dict().items() if one.is_floating_point()}


def parameters(network: nn.Module) -> dict[str, Tensor]:
    return {name: one for name, one in network.named_parameters() if one.requires_grad}


def case(
    build: Callable[[], nn.Module] = plain,
    tensors: Callable[[nn.Module], Mapping[str, Tensor]] = nn.Module.state_dict,
    parties: int = 3,
    recipe: Recipe | None = None,
    **how: Any,
) -> tuple[str, Callable[[Path], Path]]:
    """Return the name of a network, and what records a run of its tensors."""
    info = RunInfo("flower", recipe=recipe)
    record = lambda at: Recording(at, tensors(build()), info).write(parties, **how)  # noqa: E731
    return build.__name__, record


CASES = {
    "weights": case(),
    "no names": case(tensors=positions),
    "batch norm": case(batch_normed, floating),
    "batch norm, parameters alone": case(batch_normed, parameters),
    "adapters": case(adapted, parameters),
    "only global models": case(are_updates_kept=False, are_clients_named=False),
    "only global models, with their readers": case(are_updates_kept=False),
    "two global models": case(are_updates_kept=False, are_clients_named=False, rounds=1),
    "one client": case(parties=1),
    "one round": case(rounds=1),
    "aggregates": case(is_masked=True),
    "a recipe with an optimizer": case(recipe=Recipe(0.01, 2, 5, "adamw", weight_decay=0.01)),
    "a recipe with label smoothing": case(recipe=Recipe(0.01, 2, 5, label_smoothing=0.1)),
    "a proximal recipe": case(recipe=Recipe(0.01, 2, 5, proximal=0.1)),
}


def first_plan(recording: Path, network: str, folder: Path) -> FirstPlan:
    """Write the first plan of a recording, with spare examples."""
    generator = np.random.default_rng(0)
    labels = np.arange(150) % 3
    spare = folder / "spare.npz"
    np.savez(spare, x=generator.normal(size=(150, 4)).astype(np.float32), y=labels)
    request = FirstPlanRequest(
        read_recorded_facts(recording), data=str(spare), model=f"{__name__}:{network}"
    )
    return write_first_plan(request, HERE)


@pytest.mark.parametrize("case", CASES)
def test_what_a_first_plan_promises_runs(case: str, tmp_path: Path):
    network, record = CASES[case]
    recording = record(tmp_path / "recording")
    written = first_plan(recording, network, tmp_path)
    checked = check_plan(written.plan, HERE, recording, with_estimate=False)
    assert checked.can_run
    assert all(one.able_count for one in checked.attacks)
    # The last threat trains virtual clients, which takes too long for all cases.
    quick = [one for one in written.plan.threats if not one.virtual.recipes][:1]
    plan = written.plan.model_copy(update={"threats": tuple(quick or written.plan.threats[:1])})
    found = audit(plan, tmp_path / "out", recording=recording, resources=HERE)
    promised = {one.name for threat in plan.threats for one in threat.attacks}
    assert {one.cell.part for one in found.findings} == promised
    assert not [one for one in found.refusals if not one.cell.is_control]


def test_of_only_global_models_the_cohort_is_asked_as_a_late_joiner(tmp_path: Path):
    network, record = CASES["only global models"]
    written = first_plan(record(tmp_path / "recording"), network, tmp_path)
    threat = written.plan.threats[0]
    assert (threat.observers, threat.about) == (("late/0",), "cohort")
    assert "only global models" in written.notes[0]
    assert "decaf" in written.missing
    assert "amortised" not in written.attacks
    _, record_with_clients = CASES["only global models, with their readers"]
    recording = record_with_clients(tmp_path / "named")
    named = first_plan(recording, network, tmp_path)
    assert "amortised" in named.attacks
    # That they know the cohorts is of no use: no message says who they were.
    single = ThreatPlan(
        observers=("late/0",), attacks=(SumShares(),), knows=(*threat.knows, "cohorts")
    )
    plan = named.plan.model_copy(update={"threats": (single,)})
    (outlook,) = check_plan(plan, HERE, recording, with_estimate=False).attacks
    assert outlook.able_count == 0
    assert UNRECORDED_COHORTS in dict(outlook.missing)
    # Where a rate is divided out, the mean is of unnamed readers: nothing is said of them.
    halved = plan.training.model_copy(update={"algorithm": FedAvg(rate=0.5)})
    plan = plan.model_copy(update={"training": halved})
    assert check_plan(plan, HERE, recording, with_estimate=False).sums == ()


def test_of_one_global_model_nothing_can_be_asked(tmp_path: Path):
    recording = Recording(tmp_path / "recording", plain().state_dict(), FLOWER)
    folder = recording.write(3, are_updates_kept=False, rounds=0)
    with pytest.raises(PlanError, match="1 global model and no update of a client"):
        read_recorded_facts(folder)


class Texts(nn.Module):
    """Words of a text, averaged, and two classes; only the last layer is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(6, 3)
        self.words.requires_grad_(False)
        self.last = nn.Linear(3, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.last(self.words(tokens).mean(1))


def frozen_words() -> nn.Module:
    torch.manual_seed(0)
    return Texts()


def test_word_attacks_are_not_promised_of_word_vectors_that_are_never_sent(tmp_path: Path):
    _, record = case(frozen_words, parameters)
    ids = np.random.default_rng(0).integers(1, 6, (60, 4))
    np.savez(tmp_path / "spare.npz", x=ids, y=np.arange(60) % 2)
    request = FirstPlanRequest(
        read_recorded_facts(record(tmp_path / "recording")),
        data=str(tmp_path / "spare.npz"),
        model=f"{__name__}:frozen_words",
        read=("token_ids = 6",),
    )
    written = write_first_plan(request, HERE)
    assert "mean_softmax" in written.attacks
    assert "frozen and never sent" in written.missing["embedding_rows"]
    assert "labels of this task are no words" in written.missing["combined_rows"]


def test_attacks_are_not_promised_whose_claims_the_ground_truth_cannot_judge(tmp_path: Path):
    network, record = CASES["weights"]
    folder = record(tmp_path / "recording")
    truth_path(folder).write_text('{"accuracy": [{"round": 1, "accuracy": 0.5}]}')
    with pytest.raises(PlanError, match=r"mean_softmax.* a ground truth .* no label counts"):
        first_plan(folder, network, tmp_path)
