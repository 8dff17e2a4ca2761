"""What every defense must keep to."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor, nn

from overheard.core.defense import Defense, Former, Moment, Run, Site, Training, TrainingPart
from overheard.core.examples import Examples
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.testing.require import is_same, require, require_part

HOOKS = ("on_data", "on_training", "on_update", "on_aggregate")

PARTIES = ("client/1", "prior/a user/3", "virtual/0", "shadow/2")
"""Those whose data may be changed: clients, and whom an attacker trains in their place."""


def check_defense(defense: Defense) -> None:
    """Hold a defense to the contract of defenses.

    Raises:
        AssertionError: saying what it does not keep to.

    """
    for check in DEFENSE_CHECKS:
        check(defense)


def says_what_it_does_and_who_could_leave_it_out(defense: Defense) -> None:
    """See that it is a frozen value with a source, and says where it is enforced."""
    require_part(defense)
    name = defense.name
    require(defense.switched_off_by.strip(), f"{name}: say who could leave it out")
    require(
        defense.enforced_at in get_args(Site),
        f"{name}: enforced_at is {defense.enforced_at!r}, choose one of {get_args(Site)}",
    )
    try:
        defense.name = "other"  # type: ignore[misc]
    except (AttributeError, TypeError):
        return
    raise AssertionError(f"{name} can be changed: write @dataclass(frozen=True, slots=True)")


def acts_somewhere(defense: Defense) -> None:
    """See that it changes something."""
    acts = any(_acts(defense, hook) for hook in HOOKS)
    require(acts or defense.masks_updates, f"{defense.name} does nothing: override a hook")


def changes_of_the_training_what_it_says(defense: Defense) -> None:
    """See that `changes_training` names what `on_training` changes, and no more."""
    before = Training(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    after = defense.on_training(before)
    same = replace(
        after.recipe, loss=before.recipe.loss, label_smoothing=before.recipe.label_smoothing
    )
    changed: dict[TrainingPart, bool] = {
        "model": after.build_model is not before.build_model,
        "loss": same != after.recipe,
        "steps": same != before.recipe,
    }
    found = frozenset(part for part, is_changed in changed.items() if is_changed)
    require(
        found == defense.changes_training,
        f"{defense.name} changes {sorted(found)} of the training and says "
        f"{sorted(defense.changes_training)}: mend `changes_training`",
    )


def hands_back_the_same_object_where_it_does_not_act(defense: Defense) -> None:
    """See that a hook which is not its own costs nothing."""
    data = Examples(torch.zeros(2, 4), torch.tensor([0, 1]))
    training = Training(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    update = Update(delta(), examples=2)
    aggregate = Aggregate(delta(), frozenset({client(0), client(1)}), examples=4)
    handed_back = (
        _acts(defense, "on_data") or defense.on_data(data, moment(0)) is data,
        _acts(defense, "on_training") or defense.on_training(training) is training,
        _acts(defense, "on_update") or defense.on_update(update, moment(0)) is update,
        _acts(defense, "on_aggregate")
        or defense.on_aggregate(aggregate, Moment(3, SERVER, Seed(0))) is aggregate,
    )
    for hook, kept in zip(HOOKS, handed_back, strict=True):
        require(kept, f"{defense.name}.{hook} copies what it does not change")


def says_the_same_for_the_same_seed(defense: Defense) -> None:
    """See that it draws by the moment's seed alone."""
    message = f"{defense.name}: the same seed gives another"
    said = [defense.on_update(Update(delta()), moment(1)).delta for _ in range(2)]
    require(is_same(*said), f"{message} update: draw from the moment's seed alone")
    aggregate = Aggregate(delta(), frozenset({client(0)}))
    used = [defense.on_aggregate(aggregate, moment(1)).delta for _ in range(2)]
    require(is_same(*used), f"{message} aggregate: draw from the moment's seed alone")


def leaves_the_global_generator_alone(defense: Defense) -> None:
    """See that it neither reads nor moves torch's global generator."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = defense.on_update(Update(delta()), moment(1)).delta
    moved = not torch.equal(torch.get_rng_state(), before)
    require(not moved, f"{defense.name}.on_update moves torch's global generator")
    torch.manual_seed(1)
    other = defense.on_update(Update(delta()), moment(1)).delta
    require(is_same(one, other), f"{defense.name}.on_update reads torch's global generator")


def changes_data_by_the_seed_of_the_moment_alone(defense: Defense) -> None:
    """See that changed data are the same for the same moment."""
    for when in (moment(1), exchanged(1)):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        one, other = (defense.on_data(held(), when) for _ in range(2))
        moved = not torch.equal(torch.get_rng_state(), before)
        require(not moved, f"{defense.name}.on_data moves torch's global generator")
        require(
            torch.equal(one.inputs, other.inputs) and torch.equal(one.labels, other.labels),
            f"{defense.name}.on_data: the same seed gives other data",
        )


def changes_data_for_whoever_asks(defense: Defense) -> None:
    """See that an attacker who imitates clients can put it on whom it trains."""
    for name in PARTIES:
        changed = defense.on_data(held(), replace(moment(1), party=Party(name)))
        require(
            len(changed) >= len(held()), f"{defense.name}.on_data takes examples from {name}"
        )


def gives_nothing_to_a_client_without_examples(defense: Defense) -> None:
    """See that no examples stay none."""
    nothing = held().take(torch.arange(0))
    require(
        len(defense.on_data(nothing, moment(1))) == 0,
        f"{defense.name}.on_data gives examples to a client that has none",
    )


def keeps_the_shape_of_an_example_and_the_old_ones(defense: Defense) -> None:
    """See that changed data are of the same form, and what it is handed stays."""
    for when in (moment(1), exchanged(1)):
        data = held()
        changed = defense.on_data(data, when)
        message = f"{defense.name}.on_data changes"
        require(torch.equal(data.inputs, held().inputs), f"{message} inputs in place")
        require(torch.equal(data.labels, held().labels), f"{message} labels in place")
        if when.background is not None:
            require(
                torch.equal(when.background.inputs, public().inputs)
                and torch.equal(when.background.labels, public().labels),
                f"{message} the background in place",
            )
        require(
            changed.inputs.shape[1:] == data.inputs.shape[1:], f"{message} the shape of inputs"
        )
        require(
            (changed.inputs.dtype, changed.labels.dtype) == (torch.float32, torch.int64),
            f"{message} the type of inputs or labels",
        )


def leaves_what_it_is_handed_as_it_was(defense: Defense) -> None:
    """See that it copies an update before it changes it."""
    handed = delta()
    defense.on_update(Update(handed), moment(1))
    defense.on_aggregate(Aggregate(handed, frozenset({client(0)})), moment(1))
    require(is_same(handed, delta()), f"{defense.name} changes an update in place")


def keeps_the_form_of_an_update(defense: Defense) -> None:
    """See that an update keeps names, shapes, types and metrics, and tells no false size."""
    update = Update(delta(), examples=5, metrics={"loss": 0.25})
    said = defense.on_update(update, moment(1))
    message = f"{defense.name}.on_update changes"
    require(list(said.delta) == list(update.delta), f"{message} the names of tensors")
    for name, part in update.delta.items():
        require(said.delta[name].shape == part.shape, f"{message} the shape of {name}")
        require(said.delta[name].dtype == part.dtype, f"{message} the type of {name}")
    require(said.examples in (5, None), f"{message} the number of examples: tell it or hide it")
    require(said.metrics == {"loss": 0.25}, f"{message} the metrics")


def keeps_the_parameters_of_a_model(defense: Defense) -> None:
    """See that a defended model has the same parameters, and no buffers."""
    training = Training(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    defended = defense.on_training(training).build_model()
    require(
        _shapes(defended) == _shapes(build_model()),
        f"{defense.name}.on_training changes the names or shapes of parameters",
    )
    require(
        not list(defended.named_buffers()),
        f"{defense.name}.on_training adds buffers, which do not travel",
    )


def promises_in_one_sentence(defense: Defense) -> None:
    """See that it says what it promises, with all that an epsilon depends on."""
    promise = defense.promise(Run(rounds=3, participation=0.5))
    require(promise.strip(), f"{defense.name} promises nothing in words: say 'no ...'")
    require("\n" not in promise, f"{defense.name}: its promise has more than one line")
    if "epsilon" in promise and "no formal promise" not in promise:
        for word in (
            *("mechanism", "user", "clip", "noise multiplier", "sampling rate"),
            *("3 rounds", "delta", "accountant"),
        ):
            require(word in promise, f"{defense.name}: its promise does not tell the {word}")


DEFENSE_CHECKS: tuple[Callable[[Defense], None], ...] = (
    changes_of_the_training_what_it_says,
    says_what_it_does_and_who_could_leave_it_out,
    acts_somewhere,
    hands_back_the_same_object_where_it_does_not_act,
    says_the_same_for_the_same_seed,
    leaves_the_global_generator_alone,
    changes_data_by_the_seed_of_the_moment_alone,
    changes_data_for_whoever_asks,
    gives_nothing_to_a_client_without_examples,
    keeps_the_shape_of_an_example_and_the_old_ones,
    leaves_what_it_is_handed_as_it_was,
    keeps_the_form_of_an_update,
    keeps_the_parameters_of_a_model,
    promises_in_one_sentence,
)


def build_model() -> nn.Module:
    """Give a small net."""
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def delta() -> dict[str, Tensor]:
    """Give an update with tensors of several shapes and types."""
    generator = Seed(7).generator()
    return {
        "0.weight": torch.randn(3, 4, generator=generator),
        "0.bias": torch.randn(3, generator=generator, dtype=torch.float64),
        "scale": torch.randn((), generator=generator),
    }


def public() -> Examples:
    """Give examples that everyone has."""
    generator = Seed(9).generator()
    return Examples(torch.randn(12, 4, generator=generator), torch.arange(12) % 4)


def held() -> Examples:
    """Give what a client holds."""
    generator = Seed(8).generator()
    return Examples(
        torch.randn(9, 4, generator=generator), torch.tensor([0, 1, 1, 1, 1, 3, 3, 1, 1])
    )


def moment(seed: int) -> Moment:
    """Give round 3 of a client."""
    return Moment(3, client(1), Seed(seed), background=public(), lasting=Seed(seed).child("l"))


def exchanged(seed: int) -> Moment:
    """Give round 3 of a client that got what it holds in round 2."""
    former = Examples(torch.ones(9, 4), torch.full((9,), 2))
    return replace(moment(seed), former=Former(former, 2))


def _acts(defense: Defense, hook: str) -> bool:
    # Any: the four hooks differ in what they take.
    own: Any = getattr(type(defense), hook)
    return own is not getattr(Defense, hook)


def _shapes(model: nn.Module) -> Mapping[str, tuple[int, ...]]:
    return {name: tuple(p.shape) for name, p in model.named_parameters()}
