"""Random public examples make clients more alike, and are the same in every round."""

from dataclasses import replace

import pytest
import torch

from overheard.core.defense import DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.rand_aug import RandAug


def chunk(size: int, label: int) -> Examples:
    """Examples of one label, whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def moment(lasting: int = 0, background: Examples | None = None) -> DefenseContext:
    public = background or chunk(40, 1)
    return DefenseContext(
        2, client(1), Seed(5), background=public, persistent_seed=Seed(lasting)
    )


@pytest.mark.parametrize(
    ("alpha", "added"), [(0.0, 0), (0.5, 5), (1.0, 10), (2.0, 20), (0.01, 1), (5.0, 50)]
)
def test_adds_alpha_n_examples(alpha: float, added: int) -> None:
    data = chunk(10, 0)
    mixed = RandAug(alpha).on_data(data, moment())
    assert torch.equal(mixed.inputs[:10], data.inputs)
    assert mixed.label_counts(2).tolist() == [10, added]
    # Of 40 public examples, 50 draws take each once and ten of them twice.
    assert len(mixed.inputs[10:].unique()) == min(added, 40)


def test_draws_the_same_mixture_in_every_round_and_a_different_one_per_client() -> None:
    data, defense = chunk(10, 0), RandAug(1.0)
    first = defense.on_data(data, moment(1)).inputs
    later = replace(moment(1), round=7, seed=Seed(6))
    assert torch.equal(first, defense.on_data(data, later).inputs)
    assert not torch.equal(first, defense.on_data(data, moment(2)).inputs)


def test_a_larger_alpha_adds_to_the_same_examples() -> None:
    some, more = (RandAug(alpha).on_data(chunk(10, 0), moment()) for alpha in (0.5, 2.0))
    assert torch.equal(some.inputs, more.inputs[:15])


def shares(data: Examples) -> torch.Tensor:
    return data.label_counts(3).double() / len(data)


def test_label_shares_of_two_clients_approach_by_the_equation() -> None:
    # One holds label 0 alone, the other 2 alone: an L1 distance of 2. The background bears all
    # labels, so each keeps 1 / (1 + alpha) of its own, and the distance falls to twice that.
    # Of 600 draws or more the share of a label has a deviation of 0.02 or less: two clients'
    # three shares together differ by 0.15 or less.
    background = Examples(torch.zeros(3000, 1), torch.arange(3000) % 3)
    for alpha in (0.0, 1.0, 3.0):
        one, other = (
            RandAug(alpha).on_data(chunk(600, label), moment(label, background))
            for label in (0, 2)
        )
        apart = float((shares(one) - shares(other)).abs().sum())
        assert apart == pytest.approx(2 / (1 + alpha), abs=0.15)


def test_refuses_to_act_without_a_background() -> None:
    with pytest.raises(PlanError, match=r"rand_aug: it mixes .*set data.background"):
        RandAug().on_data(chunk(3, 0), DefenseContext(0, client(0), Seed(0)))
