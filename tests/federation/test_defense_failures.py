"""An error in a defense of another package is one message."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

import pytest
import torch

from overheard.auditing.inputs import Resources
from overheard.auditing.simulate import simulate
from overheard.core.defense import Defense, DefenseContext, LocalTraining
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Aggregate, Update
from overheard.plans.plan import ArmPlan
from overheard.testing import check_defense
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


@final
@dataclass(frozen=True, slots=True)
class WrongDefense(Defense):
    """A defense that returns something wrong."""

    result: str = "nothing"

    name: ClassVar[str] = "wrong"
    source: ClassVar[str] = "a test"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "nobody"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return None if self.result == "no examples" else data  # type: ignore[return-value]

    def on_update(self, update: Update, context: DefenseContext) -> Update:
        first, *others = update.delta
        rest = {name: update.delta[name] for name in others}
        results: dict[str, Any] = {
            "nothing": None,
            "fewer tensors": replace(update, delta=rest),
            "another shape": replace(update, delta={first: torch.ones(7), **rest}),
            "not finite": replace(update, delta=rest | {first: update.delta[first] / 0}),
        }
        return results.get(self.result, update)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("no examples", "on_data returned a NoneType; it must return Examples"),
        ("nothing", "on_update returned a NoneType; it must return an Update"),
        ("fewer tensors", "on_update returned other tensors than it was given"),
        ("another shape", r"\(7,\), given \("),
        ("not finite", "on_update returned NaN or infinity in"),
    ],
)
def test_names_the_defense_that_returned_something_wrong(
    result: str, message: str, tmp_path: Path
):
    plan = replace_tables(TINY, arms=(ArmPlan(name="wrong", defenses=(WrongDefense(result),)),))
    with pytest.raises(PlanError, match=f"defense wrong: .*{message}"):
        simulate(
            plan, arm="wrong", folder=tmp_path, resources=Resources(device="cpu", workers=1)
        )


@pytest.mark.parametrize(
    ("result", "message"),
    [("nothing", "returned a NoneType"), ("not finite", "returned NaN or infinity")],
)
def test_the_contract_test_names_the_defense_too(result: str, message: str):
    with pytest.raises(AssertionError, match=f"defense wrong: on_update {message}"):
        check_defense(WrongDefense(result))
