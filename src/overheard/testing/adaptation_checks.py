"""Checks that an attack adapts to defenses and training as it declares."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from overheard.core.defense import LocalTraining, TrainingPart
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER
from overheard.core.recipe import Recipe
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.dropout import Dropout
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.defenses.local_dp import LocalDp
from overheard.testing.require import require
from overheard.testing.trial import AttackTrial, cached_claims, claim_numbers, infer_claims

KNOWN_DEFENSES = (ClassBalanced(), LocalDp(clip=1.0, noise_multiplier=1.0))
"""Defenses of data and of updates, strong enough to change every update of a small run."""


def training_source_matches_use_of_defenses(trial: AttackTrial) -> None:
    """Check that known defenses change the claims if and only if the attack trains clients."""
    attack = trial.attack
    changes = _changes(trial, replace(trial.first_run.knowledge, defenses=KNOWN_DEFENSES))
    match attack.training_source():
        case "virtual clients" | "known users" | "shadow models":
            require(
                changes,
                f"{attack.name} declares that it trains {attack.training_source()}, but its "
                "claims do not change with known defenses of data and updates: apply "
                "`knowledge.defenses` in its training, or declare another `training_source`",
            )
        case "shadow devices" | "none":
            require(
                not changes,
                f"{attack.name} declares `training_source` {attack.training_source()!r}, but "
                "its claims change with `knowledge.defenses`: declare 'virtual clients', "
                "'known users' or 'shadow models'",
            )


def uses_training_matches_claims(trial: AttackTrial) -> None:
    """Check that the claims change with the known model and recipe if the attack uses them.

    Attacks that train clients always depend on them, and are not checked.
    """
    attack, knowledge = trial.attack, trial.first_run.knowledge
    if attack.training_source() != "none":
        return
    for part, change in _TRAINING_CHANGES.items():
        changes = _changes(trial, change(knowledge))
        if part in attack.used_training_parts():
            require(
                changes,
                f"{attack.name} declares that it uses the {part} of the training, but its "
                f"claims do not depend on it: remove {part!r} from `used_training_parts`",
            )
        else:
            require(
                not changes,
                f"{attack.name} does not declare that it uses the {part} of the training, but "
                f"its claims depend on it: add {part!r} to `used_training_parts`",
            )


ADAPTATION_CHECKS = (training_source_matches_use_of_defenses, uses_training_matches_claims)


def _changes(trial: AttackTrial, knowledge: Knowledge) -> bool:
    before, run = cached_claims(trial.attack, trial.first_run), trial.first_run
    view = run.transcript.seen_by(SERVER)
    after = infer_claims(trial.attack, view, run.targets, knowledge)
    return any(
        claim_numbers(before[target]) != claim_numbers(after[target]) for target in before
    )


def _with_dropout(knowledge: Knowledge) -> Knowledge:
    if knowledge.build_model is None:
        return knowledge
    recipe = knowledge.recipe or Recipe(rate=0.1, epochs=1, batch=8)
    dropped = Dropout().on_training(LocalTraining(knowledge.build_model, recipe))
    return replace(knowledge, build_model=dropped.build_model)


def _with_smoothed_labels(knowledge: Knowledge) -> Knowledge:
    if knowledge.build_model is None or knowledge.recipe is None:
        return knowledge
    smoothed = LabelSmoothing().on_training(
        LocalTraining(knowledge.build_model, knowledge.recipe)
    )
    return replace(knowledge, recipe=smoothed.recipe)


def _with_another_recipe(knowledge: Knowledge) -> Knowledge:
    recipe = knowledge.recipe
    if recipe is None:
        return knowledge
    other = replace(recipe, rate=2 * recipe.rate, epochs=recipe.epochs + 1, batch=4)
    return replace(knowledge, recipe=other)


_TRAINING_CHANGES: Mapping[TrainingPart, Callable[[Knowledge], Knowledge]] = MappingProxyType(
    {"model": _with_dropout, "loss": _with_smoothed_labels, "steps": _with_another_recipe}
)
