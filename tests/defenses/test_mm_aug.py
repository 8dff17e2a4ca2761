"""Each client adds public examples of one topic, drawn for it."""

import math
from dataclasses import replace

import pytest
import torch

from overheard.core.defense import DefenseContext, RunParameters
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


def test_repeats_no_example_of_a_small_topic_before_all_were_drawn() -> None:
    # 50 of 20: each twice or three times.
    got = added(MmAug(5.0, TOPICS), 0)
    _, often = got.inputs.unique(dim=0, return_counts=True)
    assert len(often) == 20
    assert set(often.tolist()) == {2, 3}


def test_draws_the_same_topic_and_examples_in_every_round_and_others_per_client() -> None:
    data, defense = own(10), MmAug(0.5, TOPICS)
    first = defense.on_data(data, moment(1))
    later = replace(moment(1), round=7, seed=Seed(6))
    assert torch.equal(first.inputs, defense.on_data(data, later).inputs)
    others = [defense.on_data(data, moment(lasting)) for lasting in range(2, 8)]
    assert any(int(other.labels[-1]) != int(first.labels[-1]) for other in others)


def test_labels_of_two_clients_become_more_alike() -> None:
    # One person with two devices of label 0 alone: alike at first. With a topic each, of
    # another label, half of what each trains on is the other's no more: 1/2 + 1/2 apart.
    one, other = (
        MmAug(1.0, TOPICS).on_data(own(10), moment(lasting)) for lasting in _two_topics()
    )
    shares = [data.label_counts(TOPICS + 1).double() / len(data) for data in (one, other)]
    assert float((shares[0] - shares[1]).abs().sum()) == pytest.approx(1.0)


def _two_topics() -> tuple[int, int]:
    """Two lasting seeds that draw different topics."""
    picked = {int(added(MmAug(0.1, TOPICS), n).labels[0]): n for n in range(20)}
    first, second, *_ = picked.values()
    return first, second


def test_two_clients_with_one_topic_become_more_alike() -> None:
    # One holds label 0, the other label 2; 2 apart at first. With one topic, both 1 apart.
    mine = own(10)
    theirs = Examples(mine.inputs, mine.labels + 2)
    shares = [
        MmAug(1.0, TOPICS).on_data(data, moment(4)).label_counts(TOPICS + 1).double() / 20
        for data in (mine, theirs)
    ]
    assert float((shares[0] - shares[1]).abs().sum()) == pytest.approx(1.0)


def test_with_one_mode_any_public_example_can_be_drawn() -> None:
    got = added(MmAug(8.0, 1), 0)
    assert set(got.labels.tolist()) == set(range(1, TOPICS + 1))


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


@pytest.mark.parametrize("alpha", [-0.1, math.inf, math.nan])
def test_refuses_an_alpha_that_is_negative_or_not_finite(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be 0 or more"):
        MmAug(alpha)


def test_refuses_fewer_than_one_mode() -> None:
    with pytest.raises(ValueError, match="modes must be 1 or more, got 0"):
        MmAug(modes=0)


def test_refuses_to_act_without_a_background() -> None:
    with pytest.raises(PlanError, match=r"mm_aug: it mixes .*set data.background"):
        MmAug().on_data(own(3), DefenseContext(0, client(0), Seed(0)))


def test_has_no_formal_promise() -> None:
    assert MmAug().promise(RunParameters(rounds=3, participation=1.0)) == "no formal promise"
