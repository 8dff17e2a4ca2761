"""Public examples replace a share of the examples, the same ones in every round."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.defense import DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses.bkg_repl import BkgRepl


def chunk(size: int, label: int) -> Examples:
    """Examples of one label, whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def moment(lasting: int = 0, background: int = 30) -> DefenseContext:
    return DefenseContext(
        2, client(1), Seed(5), background=chunk(background, 1), persistent_seed=Seed(lasting)
    )


@pytest.mark.parametrize(
    ("alpha", "replaced"), [(0.0, 0), (0.25, 3), (0.5, 6), (0.75, 9), (1.0, 12), (0.01, 1)]
)
def test_replaces_the_share_and_keeps_the_size(alpha: float, replaced: int) -> None:
    mixed = BkgRepl(alpha).on_data(chunk(12, 0), moment())
    assert mixed.label_counts(2).tolist() == [12 - replaced, replaced]


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0, 1))
def test_draws_no_example_twice_before_all_were_drawn(
    size: int, background: int, alpha: float
) -> None:
    mixed = BkgRepl(alpha).on_data(chunk(size, 0), moment(background=background))
    own, public = (mixed.inputs[mixed.labels == label].flatten() for label in (0, 1))
    assert len(own) + len(public) == size
    assert len(own.unique()) == len(own)
    assert len(public.unique()) == min(len(public), background)


def test_draws_the_same_mixture_in_every_round_and_a_different_one_per_client() -> None:
    data, defense = chunk(12, 0), BkgRepl(0.5)
    first = defense.on_data(data, moment(1)).inputs
    later = replace(moment(1), round=7, seed=Seed(6))
    assert torch.equal(first, defense.on_data(data, later).inputs)
    other = defense.on_data(data, moment(2)).inputs
    assert set(first[:6].flatten().tolist()) != set(other[:6].flatten().tolist())
    assert set(first[6:].flatten().tolist()) != set(other[6:].flatten().tolist())


def test_refuses_to_act_without_a_background() -> None:
    with pytest.raises(PlanError, match=r"bkg_repl: it mixes .*set data.background"):
        BkgRepl().on_data(chunk(3, 0), DefenseContext(0, client(0), Seed(0)))
