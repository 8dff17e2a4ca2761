"""A share of the examples goes, as many public ones come, and both stay the same."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.defense import Moment, Run
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.bkg_repl import BkgRepl


def chunk(size: int, label: int) -> Examples:
    """Examples of one label whose input is their number."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def moment(lasting: int = 0, background: int = 30) -> Moment:
    return Moment(2, client(1), Seed(5), background=chunk(background, 1), lasting=Seed(lasting))


@pytest.mark.parametrize(
    ("alpha", "replaced"), [(0.0, 0), (0.25, 3), (0.5, 6), (0.75, 9), (1.0, 12), (0.01, 1)]
)
def test_the_share_is_replaced_and_the_size_stays(alpha: float, replaced: int) -> None:
    mixed = BkgRepl(alpha).on_data(chunk(12, 0), moment())
    assert mixed.counts(2).tolist() == [12 - replaced, replaced]


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0, 1))
@settings(deadline=None)
def test_none_is_kept_or_taken_twice_before_all_were(
    size: int, background: int, alpha: float
) -> None:
    mixed = BkgRepl(alpha).on_data(chunk(size, 0), moment(background=background))
    own, public = (mixed.inputs[mixed.labels == label].flatten() for label in (0, 1))
    assert len(own) + len(public) == size
    assert len(own.unique()) == len(own)
    assert len(public.unique()) == min(len(public), background)


def test_nothing_of_a_client_is_left_at_a_share_of_one() -> None:
    one, other = (BkgRepl(1.0).on_data(chunk(12, label), moment(3)) for label in (0, 1))
    assert torch.equal(one.inputs, other.inputs)
    assert torch.equal(one.labels, other.labels)


def test_the_mixture_is_the_same_in_every_round_and_another_for_another_client() -> None:
    data, defense = chunk(12, 0), BkgRepl(0.5)
    first = defense.on_data(data, moment(1)).inputs
    later = replace(moment(1), round=7, seed=Seed(6))
    assert torch.equal(first, defense.on_data(data, later).inputs)
    other = defense.on_data(data, moment(2)).inputs
    assert set(first[:6].flatten().tolist()) != set(other[:6].flatten().tolist())
    assert set(first[6:].flatten().tolist()) != set(other[6:].flatten().tolist())


def test_without_a_background_it_is_refused() -> None:
    with pytest.raises(PlanError, match=r"bkg_repl mixes .*give data.background"):
        BkgRepl().on_data(chunk(3, 0), Moment(0, client(0), Seed(0)))


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"alpha lies in 0\.\.1"):
        BkgRepl(alpha)


def test_nothing_is_formally_promised() -> None:
    assert BkgRepl().promise(Run(rounds=3, participation=1.0)) == "no formal promise"
