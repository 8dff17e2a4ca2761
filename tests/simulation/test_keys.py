from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from overheard.core.knowledge import Knowledge
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.defenses.noise import Noise
from overheard.learning.models.mlp import Mlp
from overheard.simulation.answers import Answers
from overheard.simulation.keys import Keys, key_of, text_key
from overheard.simulation.last_layer_change import LastLayerChange
from tests.simulation.world import blobs, broadcast, build, knowledge

KNOWN = knowledge()


def key(known: Knowledge = KNOWN, *, build=build, auxiliary=None, seed=0, start=0) -> str:
    keys = Keys(known, build, auxiliary or blobs(20), Seed(seed))
    return keys.reading(keys.round(4, broadcast(start)), "a chunk", Answers())


def leaky() -> nn.Module:
    """Weights of the same shapes as the others', and another function between."""
    return nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(), nn.Linear(5, 3))


def test_the_same_things_have_the_same_key() -> None:
    assert key() == key()


@pytest.mark.parametrize(
    "other",
    [
        partial(key, build=leaky),
        partial(key, auxiliary=blobs(20, seed=8)),
        partial(key, seed=1),
        partial(key, start=1),
        partial(key, replace(KNOWN, classes=4)),
        partial(key, replace(KNOWN, defenses=(Noise(0.1),))),
        partial(key, replace(KNOWN, recipe=Recipe(rate=0.1, epochs=1, batch=8))),
    ],
    ids=["model", "auxiliary", "seed", "broadcast", "classes", "defenses", "recipe"],
)
def test_whatever_moves_a_number_moves_the_key(other) -> None:
    assert other() != key()


def test_means_move_no_key() -> None:
    means = replace(KNOWN.means, workers=2, cluster="local", virtual_clients=7)
    assert key(replace(KNOWN, means=means)) == key()


def test_to_know_that_no_defense_is_in_force_is_to_know_of_none() -> None:
    assert key(replace(KNOWN, defenses=())) == key(replace(KNOWN, defenses=None))


def test_one_probe_one_chunk_and_one_round_have_one_key() -> None:
    keys = Keys(KNOWN, build, blobs(20), Seed(0))
    first, second = keys.round(0, broadcast(0)), keys.round(1, broadcast(0))
    all_keys = {
        keys.reading(part, chunk, probe)
        for part in (first, second)
        for chunk in ("one", "other")
        for probe in (Answers(), LastLayerChange())
    }
    assert len(all_keys) == 8


def test_a_weight_that_changes_its_name_changes_the_key() -> None:
    keys = Keys(KNOWN, build, blobs(20), Seed(0))
    weight = torch.zeros(2)
    assert keys.round(0, {"a": weight}) != keys.round(0, {"b": weight})


def test_texts_that_differ_have_keys_that_differ() -> None:
    assert text_key("one") == text_key("one") != text_key("other")


def test_settings_of_a_model_move_the_key() -> None:
    task = Task((4,), ("a", "b", "c"))
    wide, narrow = (partial(Mlp(hidden=(units,)).build, task) for units in (6, 5))
    assert key(build=wide) != key(build=narrow)


def test_a_background_counts_where_a_defense_may_mix_it_in() -> None:
    known = replace(KNOWN, defenses=(Noise(0.1),))
    keys = {
        key(replace(known, background=background))
        for background in (None, blobs(5), blobs(5, seed=8))
    }
    assert len(keys) == 3
    assert key(replace(KNOWN, background=blobs(5))) == key()


def test_texts_and_numbers_make_a_key_in_their_order() -> None:
    parts = ("a", torch.zeros(2), torch.ones(2))
    assert key_of(*parts) == key_of("a", torch.zeros(2), torch.ones(2))
    others = [
        ("b", torch.zeros(2), torch.ones(2)),
        ("a", torch.ones(2), torch.zeros(2)),
        ("a", torch.zeros(2, 1), torch.ones(2)),
        ("a", torch.zeros(2).double(), torch.ones(2)),
        ("a", torch.zeros(2)),
    ]
    assert len({key_of(*other) for other in (parts, *others)}) == 6
