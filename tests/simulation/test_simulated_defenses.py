from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.defense import Defense, DefenseContext
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Update
from overheard.core.seeds import Seed
from overheard.learning.training_job import ClientResult, ClientTask
from overheard.simulation.simulated_defenses import SimulatedDefenses

DATA = Examples(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1]))


@final
@dataclass(frozen=True)
class Scaling(Defense):
    """Multiplies inputs and updates, and records the contexts of its calls."""

    factor: float
    moments: list[DefenseContext]

    name: ClassVar[str] = "scaling"
    enforced_at: ClassVar[Site] = "client"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        self.moments.append(context)
        return Examples(self.factor * data.inputs + 1, data.labels)

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        self.moments.append(context)
        delta = {name: self.factor * part + 1 for name, part in update.delta.items()}
        return Update(delta, update.examples, update.metrics)


def trained(weight: float) -> ClientResult:
    member = ClientTask("virtual/0", torch.arange(2))
    return ClientResult(member, {"w": torch.tensor([weight])}, 0.5)


def test_defenses_act_in_order() -> None:
    defenses = SimulatedDefenses((Scaling(2, []), Scaling(3, [])), 1, Seed(0))
    # (1 * 2 + 1) * 3 + 1 = 10 and (2 * 2 + 1) * 3 + 1 = 16
    assert defenses.defended_examples(DATA, "virtual/0", None).inputs.flatten().tolist() == [
        10,
        16,
    ]
    assert defenses.defended_update(trained(1)).delta["w"].tolist() == [10]


def test_defended_tasks_hold_the_defended_examples_of_each_client() -> None:
    tasks = [
        ClientTask("virtual/0", torch.tensor([1])),
        ClientTask("virtual/1", torch.arange(2)),
    ]
    plain = SimulatedDefenses((), 1, Seed(0)).defended_tasks(DATA, tasks, None)
    assert plain == (DATA, tasks)
    pool, defended = SimulatedDefenses((Scaling(2, []),), 1, Seed(0)).defended_tasks(
        DATA, tasks, None
    )
    # 2 x + 1 for the inputs 1 and 2, client after client
    assert [pool.inputs[task.rows].flatten().tolist() for task in defended] == [[5], [3, 5]]
    assert [pool.labels[task.rows].tolist() for task in defended] == [[1], [0, 1]]
    assert [task.name for task in defended] == ["virtual/0", "virtual/1"]
