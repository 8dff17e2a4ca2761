"""Contract tests for defenses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor, nn

from overheard.core.custom_code.defense_results import check_returned_update
from overheard.core.defense import (
    HOOKS,
    Defense,
    DefenseContext,
    LocalTraining,
    PreviousData,
    RunParameters,
    TrainingPart,
)
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.sent_tensors import sent_shapes
from overheard.testing.require import are_weights_equal, require, require_part

PARTIES = ("client/1", "prior/a user/3", "virtual/0", "shadow/2")
"""Parties whose data a defense may change: clients, and those that an attacker simulates."""


def check_defense(defense: Defense) -> None:
    """Check that a defense satisfies the contract of defenses.

    Raises:
        AssertionError: naming the violated rule.

    """
    for check in DEFENSE_CHECKS:
        try:
            check(defense)
        except PlanError as error:
            raise AssertionError(str(error)) from error


def declares_source_and_enforcement(defense: Defense) -> None:
    """Check that it is a frozen dataclass with a source, and declares where it is enforced."""
    require_part(defense)
    name = defense.name
    require(
        str(getattr(defense, "switched_off_by", "")).strip(),
        f"{name}: `switched_off_by` must say who could switch it off",
    )
    site = getattr(defense, "enforced_at", None)
    require(
        site in get_args(Site),
        f"{name}: enforced_at is {site!r}, choose one of {get_args(Site)}",
    )
    try:
        defense.name = "other"  # type: ignore[misc]
    except (AttributeError, TypeError):
        return
    raise AssertionError(f"{name} can be changed: write @dataclass(frozen=True, slots=True)")


def overrides_a_hook(defense: Defense) -> None:
    """Check that it overrides at least one hook."""
    acts = any(_overrides(defense, hook) for hook in HOOKS)
    require(acts or defense.masks_updates, f"{defense.name} does nothing: override a hook")


def declares_its_training_changes(defense: Defense) -> None:
    """Check that `changes_training` names exactly what `on_training` changes."""
    before = LocalTraining(build_model, Recipe(rate=0.1, epochs=1, batch=2))
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
        f"{defense.name} changes {sorted(found)} of the training but declares "
        f"{sorted(defense.changes_training)}: correct `changes_training`",
    )


def returns_its_input_from_unused_hooks(defense: Defense) -> None:
    """Check that hooks which are not overridden return the same object."""
    data = Examples(torch.zeros(2, 4), torch.tensor([0, 1]))
    training = LocalTraining(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    update = Update(make_delta(), examples=2)
    aggregate = Aggregate(make_delta(), frozenset({client(0), client(1)}), examples=4)
    are_same_objects = (
        _overrides(defense, "on_data") or defense.on_data(data, make_context(0)) is data,
        _overrides(defense, "on_training") or defense.on_training(training) is training,
        _overrides(defense, "on_update")
        or defense.on_update(update, make_context(0)) is update,
        _overrides(defense, "on_aggregate")
        or defense.on_aggregate(aggregate, DefenseContext(3, SERVER, Seed(0))) is aggregate,
    )
    for hook, is_same_object in zip(HOOKS, are_same_objects, strict=True):
        require(is_same_object, f"{defense.name}.{hook} copies what it does not change")


def repeats_updates_for_the_same_seed(defense: Defense) -> None:
    """Check that updates depend on the context's seed alone."""
    message = f"{defense.name}: the same seed gives a different"
    update = defense.on_update(Update(make_delta()), make_context(1))
    check_returned_update(defense, Update(make_delta()), update, "on_update")
    updates = [update.delta, defense.on_update(Update(make_delta()), make_context(1)).delta]
    require(
        are_weights_equal(*updates), f"{message} update: draw from the context's seed alone"
    )
    aggregate = Aggregate(make_delta(), frozenset({client(0)}))
    aggregates = [defense.on_aggregate(aggregate, make_context(1)).delta for _ in range(2)]
    require(
        are_weights_equal(*aggregates),
        f"{message} aggregate: draw from the context's seed alone",
    )


def does_not_use_the_global_generator(defense: Defense) -> None:
    """Check that it neither reads nor advances torch's global generator."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = defense.on_update(Update(make_delta()), make_context(1)).delta
    has_advanced = not torch.equal(torch.get_rng_state(), before)
    require(not has_advanced, f"{defense.name}.on_update advances torch's global generator")
    torch.manual_seed(1)
    other = defense.on_update(Update(make_delta()), make_context(1)).delta
    require(
        are_weights_equal(one, other),
        f"{defense.name}.on_update reads torch's global generator",
    )


def repeats_data_for_the_same_seed(defense: Defense) -> None:
    """Check that changed data depend on the context's seed alone."""
    for context in (make_context(1), make_exchange_context(1)):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        one, other = (defense.on_data(make_client_examples(), context) for _ in range(2))
        has_advanced = not torch.equal(torch.get_rng_state(), before)
        require(not has_advanced, f"{defense.name}.on_data advances torch's global generator")
        require(
            torch.equal(one.inputs, other.inputs) and torch.equal(one.labels, other.labels),
            f"{defense.name}.on_data: the same seed gives different data",
        )


def changes_data_of_simulated_clients(defense: Defense) -> None:
    """Check that an attacker can apply it to the clients that it simulates."""
    for name in PARTIES:
        changed = defense.on_data(
            make_client_examples(), replace(make_context(1), party=Party(name))
        )
        require(
            len(changed) >= len(make_client_examples()),
            f"{defense.name}.on_data removes examples of {name}",
        )


def adds_no_examples_to_an_empty_client(defense: Defense) -> None:
    """Check that a client without examples gets none."""
    nothing = make_client_examples().take(torch.arange(0))
    require(
        len(defense.on_data(nothing, make_context(1))) == 0,
        f"{defense.name}.on_data gives examples to a client that has none",
    )


def keeps_example_shape_and_input_data(defense: Defense) -> None:
    """Check that data keep their shape and type, and that no argument is changed in place."""
    for context in (make_context(1), make_exchange_context(1)):
        data = make_client_examples()
        changed = defense.on_data(data, context)
        message = f"{defense.name}.on_data changes"
        require(
            torch.equal(data.inputs, make_client_examples().inputs),
            f"{message} inputs in place",
        )
        require(
            torch.equal(data.labels, make_client_examples().labels),
            f"{message} labels in place",
        )
        if context.background is not None:
            require(
                torch.equal(context.background.inputs, make_background().inputs)
                and torch.equal(context.background.labels, make_background().labels),
                f"{message} the background in place",
            )
        require(
            changed.inputs.shape[1:] == data.inputs.shape[1:], f"{message} the shape of inputs"
        )
        require(
            (changed.inputs.dtype, changed.labels.dtype) == (torch.float32, torch.int64),
            f"{message} the type of inputs or labels",
        )


def declares_repeated_examples(defense: Defense) -> None:
    """Check that it says so if it returns an example of the client several times.

    DP-SGD beside it then promises nothing.
    """
    given = make_client_examples()
    changed = defense.on_data(given, make_context(1))
    times = (changed.inputs[:, None] == given.inputs).flatten(2).all(2).sum(0)
    require(
        defense.repeats_examples or not bool((times > 1).any()),
        f"{defense.name}.on_data repeats examples: set repeats_examples = True",
    )


def does_not_change_updates_in_place(defense: Defense) -> None:
    """Check that it copies an update before changing it."""
    original = make_delta()
    defense.on_update(Update(original), make_context(1))
    defense.on_aggregate(Aggregate(original, frozenset({client(0)})), make_context(1))
    require(
        are_weights_equal(original, make_delta()), f"{defense.name} changes an update in place"
    )


def keeps_the_update_format(defense: Defense) -> None:
    """Check that names, shapes, types and metrics stay, and that no wrong size is sent."""
    update = Update(make_delta(), examples=5, metrics={"loss": 0.25})
    changed = defense.on_update(update, make_context(1))
    message = f"{defense.name}.on_update changes"
    require(list(changed.delta) == list(update.delta), f"{message} the names of tensors")
    for name, part in update.delta.items():
        require(changed.delta[name].shape == part.shape, f"{message} the shape of {name}")
        require(changed.delta[name].dtype == part.dtype, f"{message} the type of {name}")
    require(
        changed.examples in (5, None),
        f"{message} the number of examples: report the true number, or None",
    )
    require(changed.metrics == {"loss": 0.25}, f"{message} the metrics")


def keeps_model_parameters(defense: Defense) -> None:
    """Check that a defended model sends the same tensors."""
    training = LocalTraining(build_model, Recipe(rate=0.1, epochs=1, batch=2))
    defended = defense.on_training(training).build_model()
    require(
        sent_shapes(defended) == sent_shapes(build_model()),
        f"{defense.name}.on_training changes the names or shapes of the tensors that are sent",
    )


def states_its_promise_in_one_sentence(defense: Defense) -> None:
    """Check that its promise is one line and includes all that its epsilon depends on."""
    promise = defense.promise(RunParameters(rounds=3, participation=0.5))
    require(promise.strip(), f"{defense.name}: its promise is empty: write 'no ...'")
    require("\n" not in promise, f"{defense.name}: its promise has more than one line")
    if "epsilon" in promise and "no formal promise" not in promise:
        for word in (
            *("mechanism", "user", "clip", "noise multiplier", "sampling rate"),
            *("3 rounds", "delta", "accountant"),
        ):
            require(word in promise, f"{defense.name}: its promise does not state the {word}")


DEFENSE_CHECKS: tuple[Callable[[Defense], None], ...] = (
    declares_its_training_changes,
    declares_source_and_enforcement,
    overrides_a_hook,
    returns_its_input_from_unused_hooks,
    repeats_updates_for_the_same_seed,
    does_not_use_the_global_generator,
    repeats_data_for_the_same_seed,
    changes_data_of_simulated_clients,
    adds_no_examples_to_an_empty_client,
    keeps_example_shape_and_input_data,
    declares_repeated_examples,
    does_not_change_updates_in_place,
    keeps_the_update_format,
    keeps_model_parameters,
    states_its_promise_in_one_sentence,
)


def build_model() -> nn.Module:
    """Build a small network."""
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def make_delta() -> dict[str, Tensor]:
    """Return an update with tensors of several shapes and types."""
    generator = Seed(7).generator()
    return {
        "0.weight": torch.randn(3, 4, generator=generator),
        "0.bias": torch.randn(3, generator=generator, dtype=torch.float64),
        "scale": torch.randn((), generator=generator),
    }


def make_background() -> Examples:
    """Return public background examples."""
    generator = Seed(9).generator()
    return Examples(torch.randn(12, 4, generator=generator), torch.arange(12) % 4)


def make_client_examples() -> Examples:
    """Return a client's examples."""
    generator = Seed(8).generator()
    return Examples(
        torch.randn(9, 4, generator=generator), torch.tensor([0, 1, 1, 1, 1, 3, 3, 1, 1])
    )


def make_context(seed: int) -> DefenseContext:
    """Return the context of a client in round 3."""
    return DefenseContext(
        3,
        client(1),
        Seed(seed),
        background=make_background(),
        persistent_seed=Seed(seed).child("l"),
    )


def make_exchange_context(seed: int) -> DefenseContext:
    """Return the context of a client in round 3 whose examples were replaced in round 2."""
    old_examples = Examples(torch.ones(9, 4), torch.full((9,), 2))
    return replace(make_context(seed), previous_data=PreviousData(old_examples, 2))


def _overrides(defense: Defense, hook: str) -> bool:
    # Any: the four hooks differ in what they take.
    method: Any = getattr(type(defense), hook)
    return method is not getattr(Defense, hook)
