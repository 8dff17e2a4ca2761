"""The audits of the shift paper: one federation in which some clients' labels shift."""

from collections.abc import Sequence

from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.iid import Iid
from overheard.papers.shift.measure import LeakageMeasure
from overheard.papers.shift.world import BATCH, SEVERAL, ShiftScenario, ShiftSize
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan, ThreatPlan, TrainingPlan
from overheard.plans.virtual import VirtualPlan
from overheard.questions.shift.attacks.shift import ShiftTrend
from overheard.questions.shift.attacks.shift_tracking import ShiftTracking
from overheard.questions.shift.attacks.validation_shift import ValidationShift

LISTENER = client(0)
"""The attacker among the clients."""

LOCAL_EPOCHS = 2


def federation(
    world: ShiftScenario,
    size: ShiftSize,
    clients: int,
    even: float,
    measures: Sequence[LeakageMeasure],
) -> Plan:
    """Audit a federation that one of its clients listens to.

    Args:
        world: whose data.
        size: how much is run.
        clients: how many, the attacker among them; the last of them shift.
        even: the share of even labels after the shift, of what is held in equal parts.
        measures: that the attacker follows, each by an attack of its own.

    """
    shifting = range(clients - SEVERAL.get(clients, 1), clients)
    return Plan(
        title=f"A shift to {ratio(even)} on {world.name} among {clients} clients",
        seeds=size.seeds,
        data=_data(size, clients, size.examples[clients], shifts(world, size, shifting, even)),
        training=_training(size, LOCAL_EPOCHS),
        threats=(
            ThreatPlan(
                observers=(LISTENER,),
                about="cohort",
                attacks=attacks_of(measures),
                by_round=False,
            ),
            *_ours(size),
        ),
    )


def centralised(
    world: ShiftScenario, size: ShiftSize, even: float, measures: Sequence[LeakageMeasure]
) -> Plan:
    """Audit a model that is trained without a federation: of one client, an epoch a round."""
    return Plan(
        title=f"A shift to {ratio(even)} on {world.name} without a federation",
        seeds=size.seeds,
        data=_data(size, 1, size.examples[2], shifts(world, size, range(1), even)),
        training=_training(size, 1),
        threats=(ThreatPlan(attacks=attacks_of(measures), by_round=False),),
    )


def target_of(plan: Plan) -> Party:
    """Whom the plan's attacker asks about."""
    return client(0) if plan.threats[0].listeners == (SERVER,) else COHORT


def shifts(
    world: ShiftScenario, size: ShiftSize, clients: Sequence[int], even: float
) -> tuple[DataShift, ...]:
    """Even labels become more, odd ones fewer, by the same factor whatever was held."""
    weights = tuple(even if label % 2 == 0 else 1 - even for label in range(world.labels))
    return tuple(DataShift(client=who, round=size.since, weights=weights) for who in clients)


def attacks_of(measures: Sequence[LeakageMeasure]) -> tuple[ShiftTrend | ValidationShift, ...]:
    """The attacks that follow these."""
    return tuple(one.attack for one in measures)


def ratio(even: float) -> str:
    """The ratio of even to odd labels, such as "70-30"."""
    return f"{100 * even:.0f}-{100 - 100 * even:.0f}"


def _data(
    size: ShiftSize, clients: int, examples: int, changes: tuple[DataShift, ...]
) -> DataPlan:
    return DataPlan(
        source=size.source,
        split=Iid(),
        clients=clients,
        examples=examples,
        auxiliary=size.auxiliary,
        test=size.test,
        shifts=changes,
    )


def _training(size: ShiftSize, epochs: int) -> TrainingPlan:
    return TrainingPlan(
        model=size.model,
        rounds=size.rounds,
        rate=size.rate,
        epochs=epochs,
        batch=BATCH,
        optimizer="adam",
    )


def _ours(size: ShiftSize) -> tuple[ThreatPlan, ...]:
    """Our own detector, in the place of the paper's attacker."""
    if size.virtual is None:
        return ()
    return (
        ThreatPlan(
            observers=(LISTENER,),
            about="cohort",
            attacks=(ShiftTracking(),),
            by_round=False,
            virtual=VirtualPlan(clients=size.virtual),
        ),
    )
