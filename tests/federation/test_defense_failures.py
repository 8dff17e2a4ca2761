"""An error in a defense of another package is one message."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.simulate import simulate
from overheard.core.defense import Defense, DefenseContext, LocalTraining
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Aggregate, Update
from overheard.plans.plan import ArmPlan
from tests.auditing.plans import TINY, replace_tables


@final
@dataclass(frozen=True, slots=True)
class FailingDefense(Defense):
    """A defense that fails in one of its methods."""

    method: str = "on_data"

    name: ClassVar[str] = "failing"
    source: ClassVar[str] = "a test"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "nobody"

    def _fail(self, method: str) -> None:
        if method == self.method:
            raise LookupError("no table")

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        self._fail("on_data")
        return data

    def on_training(self, training: LocalTraining) -> LocalTraining:
        self._fail("on_training")
        return training

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        self._fail("on_update")
        return update

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        self._fail("on_aggregate")
        return aggregate


@pytest.mark.parametrize("method", ["on_data", "on_training", "on_update", "on_aggregate"])
def test_names_the_method_its_contract_and_the_cause(method: str, tmp_path: Path):
    arm = ArmPlan(name="failing", defenses=(FailingDefense(method),))
    plan = replace_tables(TINY, arms=(arm,))
    with pytest.raises(PlanError) as raised:
        simulate(
            plan, arm="failing", folder=tmp_path, resources=Resources(device="cpu", workers=1)
        )
    said = str(raised.value)
    assert f"defense failing: {method} failed, LookupError: no table" in said
    assert "(test_defense_failures.py, line " in said
    assert " returns " in said
