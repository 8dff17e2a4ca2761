"""Inputs shared by all simulated rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.control_variates import corrected_history
from overheard.core.defense import BuildModel
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Weights
from overheard.core.needs import AUXILIARY, MODEL, RECIPES
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.custom_networks.single_output import has_single_logit
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import find_last_layer
from overheard.simulation.auxiliary_split import AuxiliarySplit, split_auxiliary
from overheard.simulation.client_sizes import mean_size, plausible_sizes
from overheard.simulation.probe import ProbeContext, probe_seed
from overheard.simulation.settled_device import settled_device

NO_HISTORY: Mapping[int, Broadcast] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class SimulationContext:
    """Inputs shared by all simulated rounds.

    Args:
        build_model: builds the architecture.
        classes: the number of labels of the task.
        auxiliary: all auxiliary examples.
        auxiliary_split: the rows held out for probes, and the two halves of the others.
        recipe: how clients train; None = unknown.
        broadcasts: the broadcast of each round.
        seed: the seed of the simulation.
        device: where to compute.
        algorithm: corrects the gradients of virtual clients; None = nothing does.
        history: for corrections, the broadcasts of the simulated rounds and of those before.

    """

    build_model: BuildModel
    classes: int
    auxiliary: Examples
    auxiliary_split: AuxiliarySplit
    recipe: Recipe | None
    broadcasts: Mapping[int, Weights]
    seed: Seed
    device: str
    algorithm: Algorithm | None = None
    history: Mapping[int, Broadcast] = field(default_factory=lambda: NO_HISTORY)

    def is_corrected(self, number: int) -> bool:
        """Return whether virtual clients train with corrections in a round."""
        return self.algorithm is not None and {number, number - 1} <= self.history.keys()

    def probe_context(self, number: int) -> ProbeContext:
        """Return the context of probes in a round."""
        return ProbeContext(
            number,
            self.broadcasts[number],
            self.build_model,
            self.classes,
            self.auxiliary.take(self.auxiliary_split.held_out),
            self.auxiliary,
            self.recipe,
            probe_seed(self.seed, number),
            self.device,
        )


def build_context(view: View, knowledge: Knowledge, rounds: Sequence[int]) -> SimulationContext:
    """Build the shared inputs for the simulation of these rounds.

    Raises:
        NeedsError: if knowledge is missing, or there are too few auxiliary examples.
        ValueError: if there are no rounds, or a round is repeated or has no broadcast.

    """
    broadcasts = view.broadcasts()
    available = set(rounds) & broadcasts.keys()
    if not rounds or len(available) < len(rounds):
        raise ValueError(
            f"rounds must be different and have a broadcast each, got {list(rounds)}"
        )
    auxiliary, build_model = knowledge.auxiliary, knowledge.build_model
    if auxiliary is None or build_model is None or not knowledge.candidate_recipes():
        needs = "; ".join(need.description for need in (AUXILIARY, MODEL, RECIPES))
        raise NeedsError(f"virtual clients need {needs}: grant the attacker what is missing")
    seed = knowledge.compute.seed.child("bank")
    model = fresh_model(build_model, seed)
    weight = find_last_layer(model).weight
    outputs = len(broadcasts[rounds[0]][weight])
    outputs = 2 if has_single_logit(model) else outputs
    if knowledge.has_classes and outputs != knowledge.classes:
        raise NeedsError(
            f"the model has {outputs} classes, but the task has {knowledge.classes}: give the "
            "attacker the model and the classes of the same task"
        )
    needed = {*rounds, *(number - 1 for number in rounds)}
    history = {n: one for n, one in corrected_history(view).items() if n in needed}
    split = split_auxiliary(
        auxiliary.labels,
        knowledge.classes,
        seed.child("parting"),
        knowledge.compute.held_out_per_class,
    )
    return SimulationContext(
        build_model,
        knowledge.classes,
        auxiliary,
        split,
        knowledge.recipe,
        {number: broadcasts[number] for number in rounds},
        seed,
        settled_device(
            knowledge,
            auxiliary.inputs,
            knowledge.compute.virtual_clients,
            lambda: mean_size(plausible_sizes(view, knowledge.prior)),
            read=len(split.held_out),
        ),
        knowledge.algorithm if history else None,
        history,
    )
