"""What every defense owes its reader, found by walking the folder."""

from dataclasses import fields, is_dataclass, replace
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from overheard import defenses
from overheard.core.defense import Defense, Former, Moment, Run, Site, Training
from overheard.core.discover import discover
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update, Weights
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed

DEFENSES = discover(defenses, Defense)


@pytest.fixture(params=sorted(DEFENSES))
def defense(request: pytest.FixtureRequest) -> Defense:
    return DEFENSES[request.param]()


def build_model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def delta() -> dict[str, Tensor]:
    generator = Seed(7).generator()
    return {
        "0.weight": torch.randn(3, 4, generator=generator),
        "0.bias": torch.randn(3, generator=generator, dtype=torch.float64),
        "scale": torch.randn((), generator=generator),
    }


def public() -> Examples:
    generator = Seed(9).generator()
    return Examples(torch.randn(12, 4, generator=generator), torch.arange(12) % 4)


def moment(seed: int) -> Moment:
    return Moment(3, client(1), Seed(seed), background=public(), lasting=Seed(seed).child("l"))


def equal(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def test_says_what_it_does_where_from_and_who_could_leave_it_out(defense: Defense) -> None:
    assert (type(defense).__doc__ or "").strip()
    assert defense.source.strip()
    assert defense.switched_off_by.strip()
    assert defense.enforced_at in get_args(Site)


def test_is_a_frozen_value_whose_repr_names_all_its_settings(defense: Defense) -> None:
    assert is_dataclass(defense)
    twin = replace(defense)
    assert twin == defense
    assert hash(twin) == hash(defense)
    settings = ", ".join(
        f"{field.name}={getattr(defense, field.name)!r}" for field in fields(defense)
    )
    assert repr(defense) == f"{type(defense).__name__}({settings})"
    with pytest.raises((AttributeError, TypeError)):
        defense.name = "other"  # type: ignore[misc]


def test_acts_somewhere(defense: Defense) -> None:
    hooks = ("on_data", "on_training", "on_update", "on_aggregate")
    acts = any(getattr(type(defense), hook) is not getattr(Defense, hook) for hook in hooks)
    assert acts or defense.masks_updates


def test_a_step_where_it_does_not_act_hands_back_the_same_object(defense: Defense) -> None:
    data = Examples(torch.zeros(2, 4), torch.tensor([0, 1]))
    training = Training(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    update = Update(delta(), examples=2)
    aggregate = Aggregate(delta(), frozenset({client(0), client(1)}), examples=4)
    at_server = Moment(3, SERVER, Seed(0))
    kind = type(defense)
    if kind.on_data is Defense.on_data:
        assert defense.on_data(data, moment(0)) is data
    if kind.on_training is Defense.on_training:
        assert defense.on_training(training) is training
    if kind.on_update is Defense.on_update:
        assert defense.on_update(update, moment(0)) is update
    if kind.on_aggregate is Defense.on_aggregate:
        assert defense.on_aggregate(aggregate, at_server) is aggregate


def test_the_same_seed_says_the_same_bit_for_bit(defense: Defense) -> None:
    said = [defense.on_update(Update(delta()), moment(1)).delta for _ in range(2)]
    assert equal(*said)
    aggregate = Aggregate(delta(), frozenset({client(0)}))
    used = [defense.on_aggregate(aggregate, moment(1)).delta for _ in range(2)]
    assert equal(*used)


def test_the_global_generator_is_neither_read_nor_moved(defense: Defense) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = defense.on_update(Update(delta()), moment(1)).delta
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert equal(one, defense.on_update(Update(delta()), moment(1)).delta)


def held() -> Examples:
    generator = Seed(8).generator()
    return Examples(
        torch.randn(9, 4, generator=generator), torch.tensor([0, 1, 1, 1, 1, 3, 3, 1, 1])
    )


def exchanged(seed: int) -> Moment:
    """Round 3 of a client that got what it holds in round 2."""
    former = Examples(torch.ones(9, 4), torch.full((9,), 2))
    return replace(moment(seed), former=Former(former, 2))


@pytest.mark.parametrize("when", [moment(1), exchanged(1)], ids=["first", "exchanged"])
def test_changed_data_hang_on_the_moments_seed_alone(defense: Defense, when: Moment) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one, other = (defense.on_data(held(), when) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.inputs, other.inputs)
    assert torch.equal(one.labels, other.labels)


@pytest.mark.parametrize("name", ["client/1", "prior/a user/3", "virtual/0", "shadow/2"])
def test_data_are_changed_for_whoever_asks_be_it_an_attacker(
    defense: Defense, name: str
) -> None:
    changed = defense.on_data(held(), replace(moment(1), party=Party(name)))
    assert len(changed) >= len(held())


def test_a_client_without_examples_gets_none(defense: Defense) -> None:
    nothing = held().take(torch.arange(0))
    assert len(defense.on_data(nothing, moment(1))) == 0


@pytest.mark.parametrize("when", [moment(1), exchanged(1)], ids=["first", "exchanged"])
def test_changed_data_keep_the_shape_and_type_of_an_example_and_leave_the_old_alone(
    defense: Defense, when: Moment
) -> None:
    data = held()
    changed = defense.on_data(data, when)
    assert torch.equal(data.inputs, held().inputs)
    assert torch.equal(data.labels, held().labels)
    if when.background is not None:
        assert torch.equal(when.background.inputs, public().inputs)
        assert torch.equal(when.background.labels, public().labels)
    assert changed.inputs.shape[1:] == data.inputs.shape[1:]
    assert (changed.inputs.dtype, changed.labels.dtype) == (torch.float32, torch.int64)


def test_what_it_is_handed_stays_as_it_was(defense: Defense) -> None:
    handed = delta()
    defense.on_update(Update(handed), moment(1))
    defense.on_aggregate(Aggregate(handed, frozenset({client(0)})), moment(1))
    assert equal(handed, delta())


def test_an_update_keeps_its_names_shapes_types_and_metrics_and_never_lies_about_its_size(
    defense: Defense,
) -> None:
    update = Update(delta(), examples=5, metrics={"loss": 0.25})
    said = defense.on_update(update, moment(1))
    assert list(said.delta) == list(update.delta)
    for name, part in update.delta.items():
        assert said.delta[name].shape == part.shape
        assert said.delta[name].dtype == part.dtype
    assert said.examples in (5, None)
    assert said.metrics == {"loss": 0.25}


def test_a_defended_model_keeps_the_names_and_shapes_of_its_parameters(
    defense: Defense,
) -> None:
    training = Training(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    defended = defense.on_training(training).build_model()
    shapes = {name: p.shape for name, p in defended.named_parameters()}
    assert shapes == {name: p.shape for name, p in build_model().named_parameters()}
    assert not list(defended.named_buffers())


def test_promises_in_one_sentence_even_if_it_is_nothing(defense: Defense) -> None:
    promise = defense.promise(Run(rounds=3, participation=0.5))
    assert promise.strip()
    assert "\n" not in promise
    if "epsilon" in promise and "no formal promise" not in promise:
        for word in ("mechanism", "user", "clip", "noise multiplier", "sampling rate"):
            assert word in promise
        for word in ("3 rounds", "delta", "accountant"):
            assert word in promise
