"""Whether an attack adapts to defenses as it says."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from overheard.core.defense import Training, TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER
from overheard.core.recipe import Recipe
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.dropout import Dropout
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.defenses.local_dp import LocalDp
from overheard.testing.require import require
from overheard.testing.trial import Trial, claim_anew, claims_of, told

KNOWN = (ClassBalanced(), LocalDp(clip=1.0, noise_multiplier=1.0))
"""They act on data and on updates, so strongly that nothing of small runs stays as it was."""


def learns_behind_known_defenses_as_it_says(trial: Trial) -> None:
    """See that known defenses change its claims if it trains clients, and only then."""
    attack = trial.attack
    changes = _changes(trial, replace(trial.world.knowledge, defenses=KNOWN))
    match attack.rehearsal():
        case "virtual clients" | "known users":
            require(
                changes,
                f"{attack.name} says that it trains {attack.rehearsal()}, and its claims stay "
                "where it knows of defenses that act on data and updates: put the defenses of "
                "`knowledge.defenses` on what it trains, or say another `rehearsal`",
            )
        case "shadow devices" | "none":
            require(
                not changes,
                f"{attack.name} says of its rehearsal {attack.rehearsal()!r}, and its claims "
                "change with `knowledge.defenses`: say 'virtual clients' or 'known users'",
            )


def uses_the_training_as_it_says(trial: Trial) -> None:
    """See that its claims change with the known model and recipe if it uses them.

    One that trains clients puts their training into its claims anyway.
    """
    attack, knowledge = trial.attack, trial.world.knowledge
    if attack.rehearsal() != "none":
        return
    for part, change in _TRAININGS.items():
        changes = _changes(trial, change(knowledge))
        if part in attack.uses_training():
            require(
                changes,
                f"{attack.name} says that it uses the {part} of the training, and its "
                f"claims stay where that is another: leave {part!r} out of `uses_training`",
            )
        else:
            require(
                not changes,
                f"{attack.name} does not say that it uses the {part} of the training, "
                f"and its claims change with that: name {part!r} in `uses_training`",
            )


CHECKS = (learns_behind_known_defenses_as_it_says, uses_the_training_as_it_says)


def _changes(trial: Trial, knowledge: Knowledge) -> bool:
    before, world = claims_of(trial.attack, trial.world), trial.world
    view = world.transcript.seen_by(SERVER)
    after = claim_anew(trial.attack, view, world.targets, knowledge)
    return any(told(before[who]) != told(after[who]) for who in before)


def _with_dropout(knowledge: Knowledge) -> Knowledge:
    if knowledge.build_model is None:
        return knowledge
    recipe = knowledge.recipe or Recipe(rate=0.1, epochs=1, batch=8)
    dropped = Dropout().on_training(Training(knowledge.build_model, recipe))
    return replace(knowledge, build_model=dropped.build_model)


def _with_smoothed_labels(knowledge: Knowledge) -> Knowledge:
    if knowledge.build_model is None or knowledge.recipe is None:
        return knowledge
    smoothed = LabelSmoothing().on_training(Training(knowledge.build_model, knowledge.recipe))
    return replace(knowledge, recipe=smoothed.recipe)


def _with_another_recipe(knowledge: Knowledge) -> Knowledge:
    recipe = knowledge.recipe
    if recipe is None:
        return knowledge
    other = replace(recipe, rate=2 * recipe.rate, epochs=recipe.epochs + 1, batch=4)
    return replace(knowledge, recipe=other)


_TRAININGS: Mapping[TrainingPart, Callable[[Knowledge], Knowledge]] = MappingProxyType(
    {"model": _with_dropout, "loss": _with_smoothed_labels, "steps": _with_another_recipe}
)
