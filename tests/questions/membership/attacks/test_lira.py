from dataclasses import replace

import pytest
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.checks import CLIENTS, EXAMPLES_PER_CLIENT
from overheard.questions.membership.scorer import MembershipScorer
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


def test_finds_the_members_of_all_clients_together(by_heart) -> None:
    assert figure(by_heart, Lira(models=32), "membership_auc", COHORT) > 0.7


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
