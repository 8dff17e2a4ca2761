"""Public examples of one topic come on top, and another client gets another topic."""

import math
from dataclasses import replace

import pytest
import torch

from overheard.core.defense import Moment, Run
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.mm_aug import MmAug

TOPICS = 6


def public(each: int = 20) -> Examples:
    """Tight clouds far from each other; what is in a cloud bears its number, from 1 on."""
    labels = torch.arange(TOPICS).repeat_interleave(each)
    noise = torch.randn(len(labels), TOPICS, generator=Seed(3).generator())
    return Examples(9 * torch.eye(TOPICS)[labels] + 0.1 * noise, labels + 1)


def own(size: int) -> Examples:
    return Examples(torch.zeros(size, TOPICS), torch.zeros(size, dtype=torch.int64))


def moment(lasting: int, background: Examples | None = None) -> Moment:
    there = background or public()
    return Moment(2, client(1), Seed(5), background=there, lasting=Seed(lasting))


def added(defense: MmAug, lasting: int, size: int = 10) -> Examples:
    """What a client gets that holds so many examples."""
    mixed = defense.on_data(own(size), moment(lasting))
    assert mixed.labels[:size].tolist() == [0] * size
    return mixed.take(torch.arange(size, len(mixed)))


@pytest.mark.parametrize(("alpha", "count"), [(0.0, 0), (0.5, 5), (1.0, 10), (2.0, 20)])
def test_so_many_of_one_topic_are_added(alpha: float, count: int) -> None:
    for lasting in range(5):
        got = added(MmAug(alpha, TOPICS), lasting)
        assert len(got) == count
        assert len(got.labels.unique()) <= 1


def test_every_topic_is_picked_about_equally_often() -> None:
    defense = MmAug(0.1, TOPICS)
    picked = [int(added(defense, lasting).labels[0]) for lasting in range(300)]
    counts = torch.tensor(picked).bincount(minlength=TOPICS + 1)[1:]
    # 300 draws at 1/6 expect 50, with a deviation of 6.5: five of them.
    assert int(counts.min()) >= 18
    assert int(counts.max()) <= 82


def test_of_a_small_topic_all_are_taken_before_any_is_taken_again() -> None:
    # 50 of 20: each twice or three times.
    got = added(MmAug(5.0, TOPICS), 0)
    _, often = got.inputs.unique(dim=0, return_counts=True)
    assert len(often) == 20
    assert set(often.tolist()) == {2, 3}


def test_topic_and_examples_are_the_same_in_every_round_and_others_for_another_client() -> None:
    data, defense = own(10), MmAug(0.5, TOPICS)
    first = defense.on_data(data, moment(1))
    later = replace(moment(1), round=7, seed=Seed(6))
    assert torch.equal(first.inputs, defense.on_data(data, later).inputs)
    others = [defense.on_data(data, moment(lasting)) for lasting in range(2, 8)]
    assert any(int(other.labels[-1]) != int(first.labels[-1]) for other in others)


def test_what_two_clients_train_on_no_longer_tells_their_labels_apart() -> None:
    # One person with two devices of label 0 alone: alike at first. With a topic each, of
    # another label, half of what each trains on is the other's no more: 1/2 + 1/2 apart.
    one, other = (
        MmAug(1.0, TOPICS).on_data(own(10), moment(lasting)) for lasting in _two_topics()
    )
    shares = [data.counts(TOPICS + 1).double() / len(data) for data in (one, other)]
    assert float((shares[0] - shares[1]).abs().sum()) == pytest.approx(1.0)


def _two_topics() -> tuple[int, int]:
    """Two lasting seeds that pick different topics."""
    picked = {int(added(MmAug(0.1, TOPICS), n).labels[0]): n for n in range(20)}
    first, second, *_ = picked.values()
    return first, second


def test_two_people_who_pick_one_topic_sound_more_alike() -> None:
    # One holds label 0, the other label 2; 2 apart at first. With one topic, both 1 apart.
    mine = own(10)
    theirs = Examples(mine.inputs, mine.labels + 2)
    shares = [
        MmAug(1.0, TOPICS).on_data(data, moment(4)).counts(TOPICS + 1).double() / 20
        for data in (mine, theirs)
    ]
    assert float((shares[0] - shares[1]).abs().sum()) == pytest.approx(1.0)


def test_with_one_mode_any_public_example_may_come() -> None:
    got = added(MmAug(8.0, 1), 0)
    assert set(got.labels.tolist()) == set(range(1, TOPICS + 1))


def parity(inputs: torch.Tensor) -> torch.Tensor:
    """An extractor to which only odd and even topics differ."""
    return (inputs.argmax(1) % 2)[:, None].float()


def test_modes_are_those_of_the_extractor_that_is_named() -> None:
    # 20 of each of three topics: all 60 are taken once.
    got = added(MmAug(6.0, 2, f"{__name__}:parity"), 0)
    assert len(set(got.labels.tolist())) == 3
    assert len({label % 2 for label in got.labels.tolist()}) == 1


@pytest.mark.parametrize("extractor", ["no reference", "package", "a:b:c"])
def test_an_extractor_that_is_no_reference_is_refused(extractor: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        MmAug(extractor=extractor)


@pytest.mark.parametrize("alpha", [-0.1, math.inf, math.nan])
def test_what_cannot_be_added_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be 0 or more"):
        MmAug(alpha)


def test_no_modes_are_refused() -> None:
    with pytest.raises(ValueError, match="1 mode or more, got 0"):
        MmAug(modes=0)


def test_without_a_background_it_is_refused() -> None:
    with pytest.raises(PlanError, match=r"mm_aug mixes .*give data.background"):
        MmAug().on_data(own(3), Moment(0, client(0), Seed(0)))


def test_nothing_is_formally_promised() -> None:
    assert MmAug().promise(Run(rounds=3, participation=1.0)) == "no formal promise"
