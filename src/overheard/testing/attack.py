"""Contract tests for attacks."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from overheard.archive.value_codec import ValueDecoder, ValueEncoder
from overheard.core.attack import Attack, check_needs
from overheard.core.defense import LocalTraining, TrainingPart
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import BROADCASTS, CLASSES, CROSS_ENTROPY, NEEDS, VIRTUAL_CLIENTS
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.view import View
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.dropout import Dropout
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.defenses.local_dp import LocalDp
from overheard.testing.require import require, require_part
from overheard.testing.trial import (
    AttackCheck,
    AttackTrial,
    QuestionChecks,
    asked_targets,
    cached_claims,
    checks_of,
    claim_numbers,
    infer_claims,
)

KNOWN_DEFENSES = (ClassBalanced(), LocalDp(clip=1.0, noise_multiplier=1.0))
"""Defenses of data and of updates, strong enough to change every update of a small run."""


def training_source_matches_use_of_defenses(trial: AttackTrial) -> None:
    """Check that known defenses change the claims if and only if the attack trains clients."""
    attack, knowledge = trial.attack, trial.first_run.knowledge
    # Without classes, none can be balanced.
    defenses = KNOWN_DEFENSES if knowledge.has_classes else KNOWN_DEFENSES[1:]
    changes = _changes(trial, replace(knowledge, defenses=defenses))
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


def check_attack(attack: Attack[Any], checks: QuestionChecks | None = None) -> None:
    """Check that an attack satisfies the contract of attacks.

    It is tried on planted runs that leak the answer to its question, and on runs that do not.

    Args:
        attack: the attack, with its settings.
        checks: the checks of its question; by default those of the installed question.

    Raises:
        AssertionError: naming the violated rule.

    """
    does_not_load_ground_truth(attack)
    trial = AttackTrial(attack, checks or checks_of(attack.claim_type))
    for check in (*GENERAL_CHECKS, *trial.checks.attack_checks):
        try:
            check(trial)
        except ClaimError as error:
            raise AssertionError(f"{attack.name}: {error}") from error


def does_not_load_ground_truth(attack: Attack[Any]) -> None:
    """Check that its module loads neither the ground truth nor the whole transcript."""
    module = type(attack).__module__
    loaded = find_truth_imports(module)
    require(
        not loaded,
        f"{attack.name}: {module} loads {', '.join(loaded)}: neither the module of an attack "
        "nor its package may import the ground truth",
    )


def is_frozen_dataclass_with_source(trial: AttackTrial) -> None:
    """Check that it is a final frozen dataclass with a name and a source."""
    require_part(trial.attack)
    require(
        len(trial.attack.source) > 10,
        f"{trial.attack.name}: `source` must name authors, year and section",
    )


def has_a_scorer_for_its_claims(trial: AttackTrial) -> None:
    """Check that the scorer of its question takes its claims."""
    attack, scored = trial.attack, trial.checks.scorer.claim_type
    require(
        scored is attack.claim_type,
        f"{attack.name} claims {attack.claim_type.__name__}, but the checks are those of a "
        f"question with claims of {scored.__name__}: pass others",
    )


def repeats_claims_for_the_same_seed(trial: AttackTrial) -> None:
    """Check that claims depend on the seed alone, and that the view is not changed."""
    attack, run = trial.attack, trial.first_run
    first = cached_claims(attack, run)
    again = infer_claims(attack, run.transcript.seen_by(SERVER), run.targets, run.knowledge)
    expected = set(asked_targets(attack, run))
    require(
        first.keys() == expected,
        f"{attack.name} returns claims about {sorted(first)}, expected {sorted(expected)}",
    )
    require(
        all(claim_numbers(first[target]) == claim_numbers(again[target]) for target in first),
        f"{attack.name}: the same seed gives different claims: draw from the seed alone",
    )


def claims_can_be_stored(trial: AttackTrial) -> None:
    """Check that an audit can store the claims, and read the same ones again."""
    attack, run = trial.attack, trial.first_run
    claims = cached_claims(attack, run)
    encoder = ValueEncoder()
    content = [encoder.encode(claim) for claim in claims.values()]
    decoder = ValueDecoder(encoder.tensors, encoder.texts)
    for claim, stored in zip(claims.values(), content, strict=True):
        message = f"{attack.name}: its claims change if they are stored and read again"
        try:
            again = decoder.decode(stored, attack.claim_type)
        except ValueError as error:
            raise AssertionError(f"{message}: {error}") from error
        require(
            claim_numbers(again) == claim_numbers(claim)
            and again.candidates() == claim.candidates(),
            message,
        )


def claims_do_not_depend_on_other_targets(trial: AttackTrial) -> None:
    """Check that a claim does not depend on the other targets, unless it is joint."""
    attack, run = trial.attack, trial.first_run
    if attack.is_joint:
        require(
            not attack.has_separate_targets(),
            f"{attack.name} is joint, so it cannot treat targets separately",
        )
        return
    together, target = cached_claims(attack, run), run.targets[2]
    view = run.transcript.seen_by(SERVER)
    alone = infer_claims(attack, view, (target,), run.knowledge)
    gaps = [
        abs(one - other)
        # Also relative, as a statistic may be large.
        for one, other in zip(
            claim_numbers(alone[target]), claim_numbers(together[target]), strict=True
        )
        if one != other and not abs(one - other) <= max(1e-4, 1e-6 * abs(other))
    ]
    require(
        not gaps, f"{attack.name}: its claim about {target} changes if it is the only target"
    )
    require(
        alone[target].candidates() == together[target].candidates(),
        f"{attack.name}: its candidates for {target} change if it is the only target",
    )


def refusal_names_each_missing_need(trial: AttackTrial) -> None:
    """Check that with an empty view the refusal lists all missing needs."""
    attack, empty_view = trial.attack, View(frozenset({client(9)}), ())
    try:
        check_needs(attack, empty_view, trial.first_run.targets[0], Knowledge(4))
    except NeedsError as refusal:
        message = str(refusal)
    else:
        raise AssertionError(f"{attack.name} runs on an empty view: declare what it `needs`")
    # Without any update, broadcasts are not reported as missing. An unknown loss may be the
    # cross-entropy. There are four classes, and many virtual clients. Needs of other packages
    # have their own checks.
    met = {BROADCASTS, CLASSES, CROSS_ENTROPY, VIRTUAL_CLIENTS}
    expected = attack.needs & set(NEEDS) - met
    missing = [need.description for need in expected if need.description not in message]
    require(attack.name in message, f"{attack.name}: the refusal does not name it: {message}")
    require(not missing, f"{attack.name}: the refusal does not name {missing}: {message}")


def runs_when_all_needs_are_met(trial: AttackTrial) -> None:
    """Check that its needs can be met."""
    run = trial.first_run
    view = run.transcript.seen_by(SERVER)
    try:
        check_needs(trial.attack, view, run.targets[0], run.knowledge)
    except NeedsError as refusal:
        raise AssertionError(f"refused although all needs are met: {refusal}") from refusal


GENERAL_CHECKS: tuple[AttackCheck, ...] = (
    is_frozen_dataclass_with_source,
    has_a_scorer_for_its_claims,
    repeats_claims_for_the_same_seed,
    claims_can_be_stored,
    claims_do_not_depend_on_other_targets,
    refusal_names_each_missing_need,
    runs_when_all_needs_are_met,
    *ADAPTATION_CHECKS,
)
"""The checks for every attack, which do not depend on its accuracy."""


FORBIDDEN_MODULES = (
    "overheard.archive",
    "overheard.auditing",
    "overheard.core.scorer",
    "overheard.core.transcript",
    "overheard.core.true_facts",
    "overheard.core.truth",
    "overheard.findings",
)
"""Modules that no attack may load, with all their submodules."""

FORBIDDEN_QUESTION_PARTS = ("checks", "pages", "question", "scorer", "statistics", "true_facts")
"""Parts of Overheard's questions that no attack may load."""

_PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sys.modules, sep="\\n")
"""


def find_truth_imports(*modules: str) -> tuple[str, ...]:
    """List the forbidden modules that importing these modules loads, in a new interpreter.

    Several modules are imported together. It takes seconds, as torch is loaded again.

    Raises:
        AssertionError: if a module cannot be imported.

    """
    path = os.pathsep.join([entry or os.getcwd() for entry in sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM, *modules],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise AssertionError(f"{', '.join(modules)} cannot be imported: {last}")
    return tuple(sorted(name for name in done.stdout.split("\n") if _is_forbidden(name)))


def _is_forbidden(name: str) -> bool:
    parts = name.split(".")
    in_question = parts[:2] == ["overheard", "questions"] and len(parts) > 3
    return (in_question and parts[3] in FORBIDDEN_QUESTION_PARTS) or any(
        name == one or name.startswith(f"{one}.") for one in FORBIDDEN_MODULES
    )
