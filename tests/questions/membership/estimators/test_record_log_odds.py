import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.messages import Broadcast, Message, Update, Weights
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.view import View
from overheard.questions.membership.checks import simulate_membership
from overheard.questions.membership.estimators.record_log_odds import compute_log_odds
from overheard.questions.membership.estimators.shadow_logits import compute_shadow_logits
from overheard.testing.trial import PlantedRun

BOTH = (client(0), client(1))


def build() -> nn.Module:
    return nn.Linear(1, 2, bias=False)


def weights(steepness: float) -> Weights:
    """Return weights of a model with log-odds `steepness` times x for label 1."""
    return {"weight": torch.tensor([[0.0], [steepness]])}


def two_round_view() -> View:
    """Client 0 replies in both rounds, client 1 in the second."""
    everyone, server = frozenset(BOTH), frozenset({SERVER})
    return View(
        server,
        (
            Message(0, SERVER, everyone, Broadcast(weights(1.0))),
            Message(0, client(0), server, Update(weights(3.0))),
            Message(1, SERVER, everyone, Broadcast(weights(4.0))),
            Message(1, client(0), server, Update(weights(-5.0))),
            Message(1, client(1), server, Update(weights(1.0))),
        ),
    )


@pytest.fixture
def knowledge() -> Knowledge:
    """Shadow models hardly move from their start, so their logits are known."""
    records = Examples(torch.tensor([[1.0], [3.0], [10.0]]), torch.tensor([1, 0, 1]))
    auxiliary = Examples(torch.linspace(-1, 1, 12)[:, None], torch.arange(12) % 2)
    return Knowledge(
        2,
        build,
        auxiliary,
        Recipe(rate=1e-9, epochs=1, batch=4),
        compute=ComputeSettings(cache=MemoryTensorCache(), workers=1),
        facts=Facts(CandidateRecords(records)),
    )


def rows(tensor: Tensor) -> list[list[float]]:
    """Return the rows of shadow models with equal logits, rounded."""
    return [pytest.approx(row, abs=1e-4) for row in tensor.tolist()]


def test_averages_over_rounds_after_clamping_each(
    knowledge: Knowledge,
) -> None:
    read = compute_log_odds(
        two_round_view(), BOTH, knowledge, models=3, most_rounds=6, include_candidates=True
    )
    # Steepness 1 + 3 = 4 at x = 1, 3, 10 of labels 1, 0, 1: 4, -12, 40, clamped to 30;
    # 4 - 5 = -1: -1, 3, -10. Means: 1.5, -4.5, 10 (15 if clamped last).
    assert read.targets[client(0)].target.tolist() == pytest.approx([1.5, -4.5, 10.0])
    # 4 + 1 = 5: 5, -15, 50, clamped to 30.
    assert read.targets[client(1)].target.tolist() == pytest.approx([5.0, -15.0, 30.0])
    # Shadow models have steepness 1 and 4; in the second round alone, 4:
    # 1, -3, 10 and 4, -12, 30.
    assert rows(read.targets[client(0)].shadows) == [[2.5, -7.5, 20.0]] * 3
    assert rows(read.targets[client(1)].shadows) == [[4.0, -12.0, 30.0]] * 3


def test_reads_the_last_round_of_targets_and_shadow_models(knowledge: Knowledge) -> None:
    read = compute_log_odds(
        two_round_view(), BOTH, knowledge, models=2, most_rounds=1, include_candidates=True
    )
    assert read.targets[client(0)].target.tolist() == pytest.approx([-1.0, 3.0, -10.0])
    for target in BOTH:
        assert rows(read.targets[target].shadows) == [[4.0, -12.0, 30.0]] * 2


@pytest.mark.parametrize("asked", [True, False])
def test_models_train_on_candidates_only_if_included(knowledge: Knowledge, asked: bool) -> None:
    read = compute_log_odds(
        two_round_view(), BOTH, knowledge, models=8, most_rounds=6, include_candidates=asked
    )
    assert read.is_member.shape == (8, 3)
    assert bool(read.is_member.any()) == asked
    assert not read.is_member.all()


@pytest.fixture(scope="module")
def run() -> PlantedRun:
    return simulate_membership(memorised=True)


def log_odds(logits: Tensor, labels: Tensor) -> list[list[float]]:
    """Return the log-odds of each label in each row, computed with Python floats."""
    result = []
    for row in logits.tolist():
        result.append([])
        for levels, label in zip(row, labels.tolist(), strict=True):
            others = math.log(sum(math.exp(v) for n, v in enumerate(levels) if n != label))
            result[-1].append(min(max(levels[label] - others, -30.0), 30.0))
    return result


def test_matches_the_logits_of_trained_shadow_models_by_round(run: PlantedRun) -> None:
    known = replace(
        run.knowledge, compute=ComputeSettings(cache=MemoryTensorCache(), workers=1)
    )
    view, records = run.transcript.seen_by(SERVER), candidate_records(run.knowledge)
    read = compute_log_odds(
        view, (client(0),), known, models=4, most_rounds=6, include_candidates=True
    )
    shadow_logits = compute_shadow_logits(view, known, (0, 1), 4, include_candidates=True)
    first, second = (
        log_odds(shadow_logits.rounds[number], records.labels) for number in (0, 1)
    )
    mean = (torch.tensor(first, dtype=torch.float64) + torch.tensor(second)) / 2
    beside = read.targets[client(0)]
    assert beside.shadows.dtype == torch.float64
    assert torch.allclose(beside.shadows, mean, atol=1e-5)
    assert read.is_member.equal(shadow_logits.is_member)
    # Shadow models and the target are more confident about their members training records.
    members = list(run.truth.facts.need(RecordOwners).members_of(client(0)))
    others = torch.ones(len(records), dtype=torch.bool)
    others[members] = False
    assert float(beside.target[members].mean()) > float(beside.target[others].mean()) + 2
    assert float(mean[read.is_member].mean()) > float(mean[~read.is_member].mean()) + 2
