from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.estimators.shadow_count import (
    MAX_SHADOW_MODELS,
    shadow_model_count,
    shadow_size,
)
from tests.simulation.small_run import CountingCache


def count(run, models: int | None = None, in_models: int = 16, online: bool = True) -> int:
    view = run.transcript.seen_by(SERVER)
    return shadow_model_count(view, run.knowledge, models, in_models, include_candidates=online)


def test_the_number_of_models_follows_from_the_expected_in_models(by_heart) -> None:
    # Clients report 20 examples. There are 120 auxiliary examples and 180 records, so a model
    # trains on a record with probability 20 / 300 = 1 / 15.
    view = by_heart.transcript.seen_by(SERVER)
    assert shadow_size(view, by_heart.knowledge, include_candidates=True) == 20
    assert count(by_heart) == 15 * 16
    assert count(by_heart, in_models=3) == 15 * 3
    assert count(by_heart, in_models=100) == MAX_SHADOW_MODELS


def test_a_stated_number_is_used_and_offline_models_need_no_in_models(by_heart) -> None:
    assert count(by_heart, models=7) == 7
    assert count(by_heart, online=False) == 32


def test_lira_trains_sixteen_in_models_a_record_on_average(by_heart) -> None:
    cache = CountingCache()
    known = replace(
        by_heart.knowledge, compute=replace(by_heart.knowledge.compute, cache=cache)
    )
    view = by_heart.transcript.seen_by(SERVER).during((1,))
    Lira().infer(view, (client(0),), known, Seed(0))
    is_member = torch.cat([entry["inside"] for entry in cache.entries.values()])
    assert is_member.shape == (240, 180)
    # The mean over 180 records of a count with mean 16 has a standard error of 0.3 or less.
    assert float(is_member.sum(0).double().mean()) == pytest.approx(16, abs=1)


def test_refuses_a_single_example(by_heart) -> None:
    one = by_heart.knowledge.auxiliary.take(torch.tensor([0]))
    with pytest.raises(NeedsError, match="two or more examples"):
        shadow_size(
            by_heart.transcript.seen_by(SERVER),
            replace(by_heart.knowledge, auxiliary=one),
            include_candidates=False,
        )
