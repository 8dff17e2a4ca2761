"""Which runs an arm and seed have: the planned one, and its controls."""

from dataclasses import dataclass
from typing import Any, final

from overheard.core.errors import PlanError
from overheard.data.partition.schedule import Draws
from overheard.findings.control_draws import ControlDraws
from overheard.findings.question import Control, Question
from overheard.plans.plan import Plan


def control_kind(plan: Plan) -> Control | None:
    """Return the kind of control that each run of an arm has; None = no control.

    "exchange" if a client shifts and an attack asks which one. In this control the same clients
    replace as many examples in the same rounds, but no distribution shifts; see
    `Schedule.control`. "permutation" if clients represent users and an attack asks
    for their identities. In this control the examples are permuted among the clients.

    Raises:
        PlanError: if attacks need both kinds, since each kind controls one question only.

    """
    found = _wanted_controls(plan)
    if len(found) > 1:
        raise PlanError(
            "threats: some attacks ask for shifts and some for identities, which need "
            "different control runs: split the plan in two"
        )
    return found[0] if found else None


def _wanted_controls(plan: Plan) -> list[Control]:
    """Return the kinds of control that the attacks of a plan ask for."""
    wanted = {question.control for question in plan.questions()}
    shifts = any(not shift.is_refresh for shift in plan.data.shifts)
    found: list[Control] = []
    if shifts and "exchange" in wanted:
        found.append("exchange")
    if plan.data.people is not None and "permutation" in wanted:
        found.append("permutation")
    return found


@final
@dataclass(frozen=True, slots=True)
class RunKind:
    """Which run of an arm and seed it is: the planned one, or one of its controls.

    Args:
        control: the kind of control; None = the planned run.
        draws: how a control by exchange draws its examples; "" for other runs.
        number: the number of the control among those with the same draws, from 0.
        is_first: whether no other control of the run comes before it.

    """

    control: Control | None = None
    draws: ControlDraws = ""
    number: int = 0
    is_first: bool = True

    @property
    def is_control(self) -> bool:
        """Whether it is a control."""
        return self.control is not None

    # Any: a question has claims of its own.
    def allows(self, question: Question[Any]) -> bool:
        """Return whether the question is asked of it: of a control only if it needs them."""
        return not self.is_control or question.control is not None

    @property
    def folder_suffix(self) -> str:
        """What the name of its folder ends in."""
        if self.control is None or self.is_first:
            return "" if self.control is None else "-control"
        return f"-control-{self.draws}-{self.number}"


PLANNED = RunKind()


def run_kinds(plan: Plan) -> tuple[RunKind, ...]:
    """Return the kinds of runs of an arm and seed: the planned run, then its controls.

    Raises:
        PlanError: if attacks need different controls.

    """
    control_kind(plan)
    return kinds_drawn_together(plan)


def kinds_drawn_together(plan: Plan) -> tuple[RunKind, ...]:
    """Return the kinds of runs whose examples are drawn together: see `partitions_of_seed`.

    They are those of `run_kinds`. If attacks need different controls, no audit simulates the
    plan, but a single run can be simulated.
    """
    wanted = _wanted_controls(plan)
    exchanges = _exchange_controls(plan) if "exchange" in wanted else ()
    permutations = (RunKind("permutation"),) if "permutation" in wanted else ()
    return (PLANNED, *exchanges, *permutations)


def first_control(plan: Plan) -> RunKind:
    """Return the first control; one without shifts if no attack asks for a control."""
    controls = run_kinds(plan)[1:] or _exchange_controls(plan)
    return controls[0] if controls else RunKind("exchange", plan.data.exchanges)


def _exchange_controls(plan: Plan) -> tuple[RunKind, ...]:
    """Return the controls of a run with shifts, the natural ones first."""
    data = plan.data
    natural = data.natural_controls if data.exchanges == "natural" else 0
    wanted: list[tuple[Draws, int]] = [("natural", number) for number in range(natural)]
    wanted += [("exact", number) for number in range(data.exact_controls)]
    return tuple(
        RunKind("exchange", draws, number, place == 0)
        for place, (draws, number) in enumerate(wanted)
    )
