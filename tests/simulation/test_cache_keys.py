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
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.cache_keys import ReadingKeys, combined_key
from overheard.simulation.last_layer_change import LastLayerChange
from tests.simulation.small_run import blobs, broadcast, build, knowledge

KNOWLEDGE = knowledge()


def key(
    attacker: Knowledge = KNOWLEDGE, *, build=build, auxiliary=None, seed=0, start=0
) -> str:
    keys = ReadingKeys(attacker, build, auxiliary or blobs(20), Seed(seed))
    return keys.reading_key(keys.round_key(4, broadcast(start)), "a chunk", AuxiliaryLogits())


def leaky_model() -> nn.Module:
    """Return a model with weights of the same shapes, but another activation."""
    return nn.Sequential(nn.Linear(4, 5), nn.LeakyReLU(), nn.Linear(5, 3))


@pytest.mark.parametrize(
    "other",
    [
        partial(key, build=leaky_model),
        partial(key, auxiliary=blobs(20, seed=8)),
        partial(key, seed=1),
        partial(key, start=1),
        partial(key, replace(KNOWLEDGE, classes=4)),
        partial(key, replace(KNOWLEDGE, defenses=(Noise(0.1),))),
        partial(key, replace(KNOWLEDGE, recipe=Recipe(rate=0.1, epochs=1, batch=8))),
    ],
    ids=["model", "auxiliary", "seed", "broadcast", "classes", "defenses", "recipe"],
)
def test_whatever_affects_a_reading_changes_the_key(other) -> None:
    assert other() != key()


def test_compute_settings_do_not_change_the_key() -> None:
    means = replace(KNOWLEDGE.compute, workers=2, cluster="local", virtual_clients=7)
    assert key(replace(KNOWLEDGE, compute=means)) == key()


def test_the_number_of_held_out_examples_changes_the_key() -> None:
    more = replace(KNOWLEDGE.compute, held_out_per_class=51)
    assert key(replace(KNOWLEDGE, compute=more)) != key()


def test_each_probe_chunk_and_round_has_its_own_key() -> None:
    keys = ReadingKeys(KNOWLEDGE, build, blobs(20), Seed(0))
    first, second = keys.round_key(0, broadcast(0)), keys.round_key(1, broadcast(0))
    all_keys = {
        keys.reading_key(part, chunk, probe)
        for part in (first, second)
        for chunk in ("one", "other")
        for probe in (AuxiliaryLogits(), LastLayerChange())
    }
    assert len(all_keys) == 8


def test_the_name_of_a_weight_changes_the_key() -> None:
    keys = ReadingKeys(KNOWLEDGE, build, blobs(20), Seed(0))
    weight = torch.zeros(2)
    assert keys.round_key(0, {"a": weight}) != keys.round_key(0, {"b": weight})


def test_settings_of_a_model_change_the_key() -> None:
    task = Task((4,), ("a", "b", "c"))
    wide, narrow = (partial(Mlp(hidden=(units,)).build, task) for units in (6, 5))
    assert key(build=wide) != key(build=narrow)


def test_the_background_changes_the_key_if_a_defense_may_use_it() -> None:
    attacker = replace(KNOWLEDGE, defenses=(Noise(0.1),))
    keys = {
        key(replace(attacker, background=background))
        for background in (None, blobs(5), blobs(5, seed=8))
    }
    assert len(keys) == 3
    assert key(replace(KNOWLEDGE, background=blobs(5))) == key()


def test_a_key_depends_on_texts_tensors_and_their_order() -> None:
    parts = ("a", torch.zeros(2), torch.ones(2))
    assert combined_key(*parts) == combined_key("a", torch.zeros(2), torch.ones(2))
    others = [
        ("b", torch.zeros(2), torch.ones(2)),
        ("a", torch.ones(2), torch.zeros(2)),
        ("a", torch.zeros(2, 1), torch.ones(2)),
        ("a", torch.zeros(2).double(), torch.ones(2)),
        ("a", torch.zeros(2)),
    ]
    assert len({combined_key(*other) for other in (parts, *others)}) == 6
