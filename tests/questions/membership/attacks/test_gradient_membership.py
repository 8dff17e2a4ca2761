from dataclasses import replace

import pytest
import torch

from overheard.core.defense import DefenseContext
from overheard.core.messages import Update
from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.defenses.local_dp import LocalDp
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira, LiraPooled
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.testing.trial import PlantedRun
from tests.questions.membership.attacks.test_lira import figure
from tests.runs.changed_updates import change_updates

QUICK = GradientMembership(models=64, trainings=0)
NOISE = LocalDp(clip=10.0, noise_multiplier=0.03)


def mean_auc(run: PlantedRun, attack) -> float:
    return sum(figure(run, attack, "membership_auc", who) for who in run.targets) / 4


def noisy(run: PlantedRun) -> PlantedRun:
    """Return the run with noise on every update; broadcasts stay, so nothing else changes."""
    messages = run.transcript.messages
    for place, one in enumerate(messages):
        if isinstance(one.body, Update):
            context = DefenseContext(one.round, one.sender, Seed(5).child(one.sender))
            noised = replace(one, body=NOISE.on_update(one.body, context))
            messages = (*messages[:place], noised, *messages[place + 1 :])
    return replace(run, transcript=Transcript(messages))


def test_ranks_members_first_and_claims_them_above_0(by_heart) -> None:
    assert mean_auc(by_heart, QUICK) > 0.9
    assert figure(by_heart, QUICK, "membership_accuracy") > 0.8


@pytest.mark.slow
def test_training_on_each_record_finds_members_too(by_heart) -> None:
    assert mean_auc(by_heart, GradientMembership(models=64, trainings=1)) > 0.9


@pytest.mark.parametrize("attack", [QUICK, FedMia("cosine"), FedMia("confidence")])
def test_is_at_chance_if_no_record_was_trained_on(never_seen, attack) -> None:
    # 80 members and 100 non-members: one standard error is about 0.04.
    assert mean_auc(never_seen, attack) == pytest.approx(0.5, abs=0.13)


@pytest.mark.slow
def test_sees_through_noise_that_hides_members_from_confidence(by_heart) -> None:
    run = noisy(by_heart)
    ours = mean_auc(run, QUICK)
    assert ours > mean_auc(run, LossMembership()) + 0.03
    assert ours > mean_auc(run, LiraPooled(models=64)) + 0.03


@pytest.mark.parametrize("attack", [QUICK, Lira(models=32)])
def test_finds_the_members_of_all_clients_together(by_heart, attack) -> None:
    assert figure(by_heart, attack, "membership_auc", COHORT) > 0.7


def test_an_update_of_zeros_gives_finite_scores(by_heart) -> None:
    zeros = change_updates(
        by_heart.transcript.messages,
        lambda update: {"delta": {n: torch.zeros_like(w) for n, w in update.delta.items()}},
        [client(0)],
    )
    run = replace(by_heart, transcript=Transcript(zeros))
    assert 0 <= figure(run, QUICK, "membership_auc") <= 1
