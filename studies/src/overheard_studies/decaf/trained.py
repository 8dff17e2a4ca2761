"""A federation that is trained outside an audit, for measurements inside the attack."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard.auditing.simulate import build_federation
from overheard.core.compute_settings import ComputeSettings
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER
from overheard.core.view import View
from overheard.data.partition.data_partition import DataPartition
from overheard.federation.run import run
from overheard.learning.initialization import model_structure
from overheard.learning.last_layer import find_last_layer
from overheard.learning.threads import single_thread
from overheard.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class TrainedFederation:
    """What the server saw and knows.

    Args:
        view: the messages.
        knowledge: the model, the recipe and the auxiliary examples.
        partition: the examples of users and of the server.

    """

    view: View
    knowledge: Knowledge
    partition: DataPartition

    @property
    def last_layer(self) -> str:
        """Return the name of the last layer's weight."""
        assert self.knowledge.build_model is not None
        structure = model_structure(self.knowledge.build_model)
        return find_last_layer(structure, self.knowledge.classes).weight


@contextmanager
def train(plan: Plan, resources: Resources) -> Iterator[TrainedFederation]:
    """Train the undefended arm of a plan with its first seed; its messages end with the block.

    Args:
        plan: the plan.
        resources: data folder and engine.

    """
    seed, data = plan.seeds[0], load_data(plan, resources)
    partition = partition_for_plan(plan, data, seed)
    federation = build_federation(plan, plan.arms[0], seed, partition, data, resources)
    knowledge = Knowledge(
        classes=data.task.classes,
        build_model=federation.build_model,
        auxiliary=partition.auxiliary,
        recipe=federation.recipe,
        compute=ComputeSettings(workers=1),
    )
    with tempfile.TemporaryDirectory() as folder, single_thread():
        transcript, _ = run(federation, Path(folder) / "run")
        yield TrainedFederation(transcript.seen_by(SERVER), knowledge, partition)
