"""The algorithm and the defenses that a recording states, if a plan can name them."""

from overheard.algorithms.fed_prox import FedProx
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.defense import Defense
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.recorded_plugins import parse_plugin
from overheard.plans.registries import ALGORITHMS, DEFENSES


def recorded_defenses(recording: RecordedFacts) -> tuple[Defense, ...]:
    """Return the recorded defenses if a plan can name all of them, else none."""
    stated = recording.manifest.defenses
    found = [parse_plugin(one.settings, DEFENSES) for one in stated]
    known = tuple(one for one in found if one is not None)
    return known if [repr(one) for one in known] == [one.settings for one in stated] else ()


def recorded_algorithm(
    recording: RecordedFacts, defenses: tuple[Defense, ...]
) -> Algorithm | None:
    """Return the recorded algorithm if the plan can name it, with the recipe and defenses."""
    found = parse_plugin(recording.manifest.algorithm, ALGORITHMS)
    recipe = recording.manifest.recipe
    if found is None and recipe is not None and recipe.proximal:
        return FedProx(recipe.proximal)
    if found is None or (recipe is not None and found.conflict(recipe, defenses)):
        return None
    return found
