"""What the attacker of a threat knows before it observes a run."""

from dataclasses import replace
from functools import partial

from torch import nn

from overheard.auditing.inputs import AttackerInputs
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.compute_settings import ComputeSettings
from overheard.core.defense import BuildModel, LocalTraining
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.local_head import LocalHead
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.distortion import distort
from overheard.federation.local_tensors import SharedPartBuilder, local_names
from overheard.learning.initialization import fresh_model
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan

USUAL_ROUNDS = 5
"""Rounds that an attack usually reads, if there are as many."""


def attacker_knowledge(arm: ArmPlan, threat: ThreatPlan, inputs: AttackerInputs) -> Knowledge:
    """Return what a threat's attacker knows before it observes the run of an arm."""
    plan, resources, data = inputs.plan, inputs.resources, inputs.data
    seed, knows, virtual = inputs.seed, threat.knows, threat.virtual
    algorithm = plan.algorithm_of(arm)
    epochs, recipes = plan.training.possible_epochs, virtual.prior.recipes
    recipe = replace(algorithm.local_recipe(plan.training.recipe), epochs=epochs[-1])
    training = _known_training(plan, threat, arm, recipe, data.task)
    is_recipe_known = "recipe" in knows
    if is_recipe_known and len(epochs) > 1:
        # The range is known, but not for how many epochs each client trains.
        recipes = tuple(replace(recipe, epochs=number) for number in epochs)
    # Precision belongs to the computer: it is the same for virtual clients of any recipe.
    recipes = tuple(replace(one, precision=recipe.precision) for one in recipes)
    assumed_recipes = [
        _known_training(plan, threat, arm, recipe, data.task).recipe for recipe in recipes
    ]
    build_model = _shared_builder(algorithm, training.build_model, seed)
    source, shift = threat.auxiliary_from, threat.auxiliary_shift
    auxiliary = data.auxiliary if source is None else data.elsewhere[repr(source)]
    if shift and len(auxiliary):
        auxiliary = distort(auxiliary, data.task, shift, Seed(seed).child("distortion"))
    return Knowledge(
        classes=data.task.classes,
        build_model=build_model if "model" in knows else None,
        auxiliary=auxiliary if "auxiliary" in knows and len(auxiliary) else None,
        recipe=training.recipe if is_recipe_known and len(epochs) == 1 else None,
        defenses=arm.defenses if "defenses" in knows else None,
        prior=replace(virtual.prior, recipes=tuple(assumed_recipes)),
        compute=ComputeSettings(
            seed=Seed(seed).child("bank"),
            virtual_clients=virtual.clients,
            smallest_gain=virtual.smallest_gain,
            held_out_per_class=virtual.held_out,
            cache=inputs.cache,
            device=resources.device,
            repeats=_repeats(plan),
            workers=resources.workers,
            cluster=resources.cluster,
        ),
        background=data.background,
        algorithm=algorithm if is_recipe_known else None,
        kind=data.task.kind,
        facts=inputs.facts
        if build_model is not None or "model" not in knows
        else inputs.facts.having(
            LocalHead(training.build_model, local_names(algorithm, training.build_model))
        ),
    )


def _repeats(plan: Plan) -> int:
    """Return about how often an attack trains the virtual clients of one round."""
    rounds = min(plan.training.rounds, USUAL_ROUNDS)
    return rounds * len(plan.arms) * len(plan.seeds)


def _shared_builder(
    algorithm: Algorithm, build_model: BuildModel, seed: int
) -> BuildModel | None:
    """Return the model that attackers know; None if its last layer stays with each client."""
    names = local_names(algorithm, build_model)
    if not names:
        return build_model
    initial = Seed(seed).child("federation").child("initial")
    linear = [
        name
        for name, module in fresh_model(build_model, initial).named_modules()
        if isinstance(module, nn.Linear)
    ]
    if linear and f"{linear[-1]}.weight" in names:
        return None
    return SharedPartBuilder(build_model, tuple(sorted(names)), initial)


def _known_training(
    plan: Plan, threat: ThreatPlan, arm: ArmPlan, recipe: Recipe, task: Task
) -> LocalTraining:
    """Return model and recipe as the attacker assumes them, with the defenses it knows."""
    training = LocalTraining(partial(plan.training.model.build, task), recipe)
    if "defenses" in threat.knows:
        for defense in arm.defenses:
            training = defense.on_training(training)
    return training
