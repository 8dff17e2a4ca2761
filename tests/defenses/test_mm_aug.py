"""Each client adds public examples of one topic, drawn for it."""

from dataclasses import replace

import pytest
import torch

from overheard.core.defense import DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.mm_aug import MmAug

TOPICS = 6


def public(each: int = 20) -> Examples:
    """Dense clusters far apart; the label is the number of the cluster, from 1 on."""
    labels = torch.arange(TOPICS).repeat_interleave(each)
    noise = torch.randn(len(labels), TOPICS, generator=Seed(3).generator())
    return Examples(9 * torch.eye(TOPICS)[labels] + 0.1 * noise, labels + 1)


def own(size: int) -> Examples:
    return Examples(torch.zeros(size, TOPICS), torch.zeros(size, dtype=torch.int64))


def moment(lasting: int, background: Examples | None = None) -> DefenseContext:
    there = background or public()
    return DefenseContext(
        2, client(1), Seed(5), background=there, persistent_seed=Seed(lasting)
    )


def added(defense: MmAug, lasting: int, size: int = 10) -> Examples:
    """The background examples added to a client of this size."""
    mixed = defense.on_data(own(size), moment(lasting))
    assert mixed.labels[:size].tolist() == [0] * size
    return mixed.take(torch.arange(size, len(mixed)))


@pytest.mark.parametrize(("alpha", "count"), [(0.0, 0), (0.5, 5), (1.0, 10), (2.0, 20)])
def test_adds_alpha_n_examples_of_one_topic(alpha: float, count: int) -> None:
    for lasting in range(5):
        got = added(MmAug(alpha, TOPICS), lasting)
        assert len(got) == count
        assert len(got.labels.unique()) <= 1


def test_draws_every_topic_about_equally_often() -> None:
    defense = MmAug(0.1, TOPICS)
    picked = [int(added(defense, lasting).labels[0]) for lasting in range(300)]
    counts = torch.tensor(picked).bincount(minlength=TOPICS + 1)[1:]
    # 300 draws at 1/6 expect 50, with a deviation of 6.5: five of them.
    assert int(counts.min()) >= 18
    assert int(counts.max()) <= 82


def test_draws_the_same_topic_and_examples_in_every_round_and_others_per_client() -> None:
    data, defense = own(10), MmAug(0.5, TOPICS)
    first = defense.on_data(data, moment(1))
    later = replace(moment(1), round=7, seed=Seed(6))
    assert torch.equal(first.inputs, defense.on_data(data, later).inputs)
    others = [defense.on_data(data, moment(lasting)) for lasting in range(2, 8)]
    assert any(int(other.labels[-1]) != int(first.labels[-1]) for other in others)


def parity(inputs: torch.Tensor) -> torch.Tensor:
    """An extractor that only distinguishes odd and even topics."""
    return (inputs.argmax(1) % 2)[:, None].float()


def test_uses_the_features_of_the_named_extractor() -> None:
    # 20 of each of three topics: all 60 are taken once.
    got = added(MmAug(6.0, 2, f"{__name__}:parity"), 0)
    assert len(set(got.labels.tolist())) == 3
    assert len({label % 2 for label in got.labels.tolist()}) == 1


@pytest.mark.parametrize("extractor", ["no reference", "package", "a:b:c"])
def test_refuses_an_extractor_that_is_no_reference(extractor: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        MmAug(extractor=extractor)


def test_refuses_to_act_without_a_background() -> None:
    with pytest.raises(PlanError, match=r"mm_aug: it mixes .*set data.background"):
        MmAug().on_data(own(3), DefenseContext(0, client(0), Seed(0)))
