"""The plans of the shift paper: one federation in which some clients' labels shift."""

from collections.abc import Sequence

from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift
from overheard_studies.shift.measure import LeakageMeasure
from overheard_studies.shift.scenarios import (
    BATCH_SIZE,
    SHIFTING_CLIENTS,
    ShiftScenario,
    ShiftSize,
)

OBSERVER = client(0)
"""The client that is the attacker."""

LOCAL_EPOCHS = 2


def build_federated_plan(
    scenario: ShiftScenario,
    size: ShiftSize,
    clients: int,
    even_share: float,
    measures: Sequence[LeakageMeasure],
) -> Plan:
    """Build the plan of an audit of a federation with one of its clients as the observer.

    Args:
        scenario: data set and federation.
        size: data, model and rounds of the run.
        clients: number of clients, including the attacker; the last of them shift.
        even_share: share of even labels after the shift, if even and odd labels were equally
            frequent before.
        measures: what the attacker measures in each round, each with its own attack.

    """
    shifting = range(clients - SHIFTING_CLIENTS.get(clients, 1), clients)
    return Plan(
        title=f"A shift to {format_ratio(even_share)} on {scenario.name} "
        f"among {clients} clients",
        seeds=size.seeds,
        data=_data(
            size,
            clients,
            size.examples[clients],
            build_shifts(scenario, size, shifting, even_share),
        ),
        training=_training(size, LOCAL_EPOCHS),
        threats=(
            ThreatPlan(
                observers=(OBSERVER,),
                about="cohort",
                attacks=attacks_of_measures(measures),
                by_round=False,
            ),
            *_tracking_threats(size),
        ),
    )


def build_centralized_plan(
    scenario: ShiftScenario,
    size: ShiftSize,
    even_share: float,
    measures: Sequence[LeakageMeasure],
) -> Plan:
    """Build the plan of a centralized model: one client with one epoch per round.

    The client has as many examples as one of two clients in a federation.
    """
    return Plan(
        title=f"A shift to {format_ratio(even_share)} on {scenario.name} without a federation",
        seeds=size.seeds,
        data=_data(
            size, 1, size.examples[2], build_shifts(scenario, size, range(1), even_share)
        ),
        training=_training(size, 1),
        threats=(ThreatPlan(attacks=attacks_of_measures(measures), by_round=False),),
    )


def plan_target(plan: Plan) -> Party:
    """Return the target of the plan's first threat."""
    return client(0) if plan.threats[0].observer_parties == (SERVER,) else COHORT


def build_shifts(
    scenario: ShiftScenario, size: ShiftSize, clients: Sequence[int], even_share: float
) -> tuple[DataShift, ...]:
    """Make the shifts of these clients.

    Even labels get weight `even_share`, odd labels 1 - `even_share`.
    """
    weights = tuple(
        even_share if label % 2 == 0 else 1 - even_share for label in range(scenario.labels)
    )
    return tuple(
        DataShift(client=index, round=size.shift_round, weights=weights) for index in clients
    )


def attacks_of_measures(
    measures: Sequence[LeakageMeasure],
) -> tuple[ShiftTrend | ValidationShift, ...]:
    """Return the attacks of these measures."""
    return tuple(one.attack for one in measures)


def format_ratio(even_share: float) -> str:
    """Format the ratio of even to odd labels, such as "70-30"."""
    return f"{100 * even_share:.0f}-{100 - 100 * even_share:.0f}"


def _data(
    size: ShiftSize, clients: int, examples: int, data_shifts: tuple[DataShift, ...]
) -> DataPlan:
    return DataPlan(
        source=size.source,
        split=Iid(),
        clients=clients,
        examples=examples,
        auxiliary=size.auxiliary,
        test=size.test,
        shifts=data_shifts,
        # The paper's federations exchange examples with the same label counts.
        exchanges="exact",
    )


def _training(size: ShiftSize, epochs: int) -> TrainingPlan:
    return TrainingPlan(
        model=size.model,
        rounds=size.rounds,
        rate=size.rate,
        epochs=epochs,
        batch=BATCH_SIZE,
        optimizer="adam",
    )


def _tracking_threats(size: ShiftSize) -> tuple[ThreatPlan, ...]:
    """Return the threat with Overheard's detector; none if the size has no virtual clients."""
    if size.virtual is None:
        return ()
    return (
        ThreatPlan(
            observers=(OBSERVER,),
            about="cohort",
            attacks=(ShiftTracking(),),
            by_round=False,
            virtual=VirtualPlan(clients=size.virtual),
        ),
    )
