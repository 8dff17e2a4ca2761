"""LiRA, with models for each record or pooled over records."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords, candidate_records
from overheard.core.messages import Broadcast, Message, Update, Weights
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.view import View
from overheard.questions.membership.attacks.lira import Lira, LiraPooled, compute_log_odds
from overheard.questions.membership.checks import (
    CLIENTS,
    EXAMPLES_PER_CLIENT,
    simulate_membership,
)
from overheard.questions.membership.estimators.shadow_logits import compute_shadow_logits
from overheard.questions.membership.scorer import MembershipScorer
from overheard.testing.trial import PlantedRun
from tests.simulation.small_run import CountingCache

SCORER, FIRST = MembershipScorer(), client(0)

# Log-odds of four records under eight shadow models, and which of these trained on them; a row
# per record. Its models deviate by +-0.9 and +-0.3 with it, and by +-0.8 and +-0.2 without it.
TARGET = torch.tensor([1.75, 4.0, 1.5, 2.0]).double()
SHADOWS = torch.tensor(
    [
        [1.1, 2.9, 1.7, 2.3, 1.2, 0.2, 1.8, 0.8],
        [1.3, 2.3, 0.7, 3.6, 4.2, 5.4, 4.8, 1.7],
        [0.05, 0.45, 0.2, -0.55, 0.8, 1.4, -0.4, 1.05],
        [2.7, 3.3, 4.3, 2.1, 3.9, 2.7, 3.7, 3.3],
    ]
).double()  # (records, models)
IS_MEMBER = torch.tensor(
    [
        [1, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 1, 0],
        [0, 0, 1, 0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1, 0, 1],
    ]
).bool()  # (records, models)
OUT_SHADOWS = torch.tensor(
    [
        [2.0, 0.3, 1.7, 0.9, 0.6, 1.4, 1.1, 0.0],
        [0.8, 1.4, 2.5, 1.9, 1.6, 1.1, 0.5, 2.2],
        [-0.45, -0.15, 0.15, 0.65, 0.35, 1.25, -0.75, 0.95],
        [2.5, 3.6, 4.5, 4.2, 3.4, 3.9, 2.8, 3.1],
    ]
).double()  # (records, models)


def test_scores_are_those_of_the_code_of_the_authors_and_of_leakpro() -> None:
    # These are given by `generate_ours` of the authors, negated (tensorflow/privacy 03035d5,
    # research/mi_lira_2021/plot.py), and by `AttackLiRA.run_attack` of LeakPro c47752f with
    # var_calculation="carlini". Both fit a variance to each record, and divide by the number k
    # of its models. So all records have the same deviations here, and those given to the others
    # are longer by sqrt(k / (k - 1)). Means are medians too, which the authors take.
    scores = Lira().log_likelihood_ratio(TARGET, SHADOWS.T, IS_MEMBER.T)
    assert scores.tolist() == pytest.approx(
        [0.4281700959, 6.5448980370, 0.7498612723, 1.5081333311]
    )
    # Offline LeakPro gives the logarithm of the normal distribution at the distance.
    distances = 0.5 + Lira(online=False).log_likelihood_ratio(
        TARGET, OUT_SHADOWS.T, IS_MEMBER.T
    )
    assert torch.special.log_ndtr(distances).tolist() == pytest.approx(
        [-0.1485807022, -0.0001416593392, -0.0353760839, -4.2198721331]
    )


def figure(run, attack, name: str, target=FIRST) -> float:
    claim = attack.infer(run.transcript.seen_by(SERVER), (target,), run.knowledge, Seed(0))[
        target
    ]
    true = SCORER.true_claim(run.truth, target, (0, 1), claim)
    scores: tuple[Score, ...] = SCORER.score(claim, true, SCORER.guesses(true, Knowledge(2)))
    return next(score.value for score in scores if score.name == name)


@pytest.mark.parametrize("online", [True, False])
def test_finds_most_members_at_few_false_positives(by_heart, online: bool) -> None:
    assert figure(by_heart, Lira(models=32, online=online), "tpr_at_1_percent") > 0.3


def test_does_not_claim_the_records_of_another_client(by_heart) -> None:
    target = client(1)
    claims = Lira(models=32).infer(
        by_heart.transcript.seen_by(SERVER), (target,), by_heart.knowledge, Seed(0)
    )
    scores = claims[target].scores
    members = scores[EXAMPLES_PER_CLIENT : 2 * EXAMPLES_PER_CLIENT].mean()
    others = torch.cat(
        [
            scores[:EXAMPLES_PER_CLIENT],
            scores[2 * EXAMPLES_PER_CLIENT : CLIENTS * EXAMPLES_PER_CLIENT],
        ]
    ).mean()
    assert float(members) > float(others) + 1


def test_nearly_diverging_shadow_models_do_not_dominate(by_heart) -> None:
    view, known = by_heart.transcript.seen_by(SERVER), by_heart.knowledge
    shelf = CountingCache()
    known = replace(known, compute=replace(known.compute, cache=shelf))
    Lira(models=32).infer(view, (FIRST,), known, Seed(0))
    # The first four of 32 models have extreme confidence in every prediction.
    for key, kept in shelf.entries.items():
        answers = kept["answers"].clone()
        answers[:4] *= 1e6
        shelf.entries[key] = {**kept, "answers": answers}
    run = replace(by_heart, knowledge=known)
    assert figure(run, Lira(models=32), "membership_auc") > 0.65


def test_works_with_few_models_and_few_members_in_each(by_heart) -> None:
    # Each model trains on 20 of 300 examples, so most records are in at most one of eight.
    assert figure(by_heart, Lira(models=8), "membership_auc") > 0.9


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


@pytest.mark.parametrize("models", [4, 8])
def test_is_better_than_lira_with_few_models(by_heart, models: int) -> None:
    for score in ("membership_auc", "membership_accuracy"):
        pooled = figure(by_heart, LiraPooled(models=models), score)
        assert pooled > figure(by_heart, Lira(models=models), score)


def test_is_at_chance_with_few_models_if_no_record_was_trained_on(never_seen) -> None:
    auc = figure(never_seen, LiraPooled(models=4), "membership_auc")
    assert auc == pytest.approx(0.5, abs=0.15)


def test_reuses_the_shadow_models_of_lira(by_heart) -> None:
    shelf = CountingCache()
    known = replace(
        by_heart.knowledge, compute=replace(by_heart.knowledge.compute, cache=shelf)
    )
    view = by_heart.transcript.seen_by(SERVER)
    Lira(models=32).infer(view, (client(0),), known, Seed(0))
    saved = len(shelf.saved)
    LiraPooled(models=32).infer(view, (client(0),), known, Seed(1))
    assert len(shelf.saved) == saved == 2


def test_refuses_a_single_record(by_heart) -> None:
    one = candidate_records(by_heart.knowledge).take(torch.tensor([0]))
    known = replace(by_heart.knowledge, facts=Facts(CandidateRecords(one)))
    with pytest.raises(NeedsError, match="two or more records"):
        LiraPooled().infer(by_heart.transcript.seen_by(SERVER), (client(0),), known, Seed(0))
