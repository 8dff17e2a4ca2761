"""Attack P compares the confidence in a record with that in the attacker's own examples."""

import pytest
import torch

from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.membership.attacks.attack_p import AttackP
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.questions.membership.attacks.test_lira import figure

FIRST = client(0)


def claimed(view: View, knowledge, attack) -> torch.Tensor:
    return attack.infer(view, (FIRST,), knowledge, Seed(0))[FIRST].scores


def test_the_threshold_is_a_quantile_of_the_population() -> None:
    # One of five values is above 3.2, linearly between 3 and 4.
    values = torch.tensor([4.0, 0.0, 3.0, 1.0, 2.0], dtype=torch.float64)
    assert float(AttackP(0.2).threshold(values)) == pytest.approx(3.2)


def test_only_the_threshold_differs_from_that_of_the_loss(by_heart) -> None:
    view, known = by_heart.transcript.seen_by(SERVER), by_heart.knowledge
    strict, loose = (claimed(view, known, AttackP(rate)) for rate in (0.01, 0.5))
    by_loss = claimed(view, known, LossMembership())
    for scores in (strict, loose):
        gaps = scores - by_loss
        assert torch.allclose(gaps, gaps[0], atol=1e-4)
    assert int((strict > 0).sum()) < int((loose > 0).sum())


def test_few_outsiders_are_claimed_and_many_members(by_heart) -> None:
    assert figure(by_heart, AttackP(), "membership_accuracy") > 0.8
