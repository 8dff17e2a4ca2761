"""The audits of the paper's experiments: a federation of users, heard by the server."""

from typing import Any

from overheard.core.attack import Attack
from overheard.data.partition.people import People, PriorKind
from overheard.data.splits.by_user import ByUser
from overheard.papers.deanonymization.world import IdentityScenario
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan

PRIORS: dict[PriorKind, str] = {
    "random": "random prior",
    "chronological": "chronological prior",
    "chronological_within_labels": "prior chronological within labels",
}


def plan(
    world: IdentityScenario,
    people: People,
    threats: tuple[ThreatPlan, ...],
    *,
    arms: tuple[ArmPlan, ...] = (),
    clients: int | None = None,
    background: int | None = None,
) -> Plan:
    """Audit one federation of a world's users.

    Args:
        world: whose data, and how they are trained on.
        people: what the server has of users beforehand.
        threats: what it tries.
        arms: with defenses, beside the one without.
        clients: users who take part, where they are not all of the world's.
        background: public examples that everyone has; None = those of the data.

    """
    return Plan(
        title=f"Who sent an update: {world.name}",
        seeds=world.seeds,
        data=DataPlan(
            source=world.source,
            split=ByUser(),
            clients=clients or world.clients,
            examples=world.examples,
            test=world.test,
            people=people,
            background=background,
        ),
        training=TrainingPlan(
            model=world.model,
            rounds=world.rounds,
            participation=world.participation,
            rate=world.rate,
            batch=world.batch,
            loss=world.loss,
        ),
        arms=arms,
        threats=threats,
    )


def people(prior: PriorKind, *, unseen: int = 0, holdout: int = 0) -> People:
    """Half of each user's records are prior, and take part on shadow devices, as published."""
    return People(prior=prior, unseen=unseen, holdout=holdout, shadow_devices=True)


def every_update(
    # Any: an attack answers a question of its own.
    attacks: tuple[Attack[Any], ...],
    *,
    adapts: bool = False,
) -> ThreatPlan:
    """Each update is told apart by itself, under a pseudonym of its own, as published.

    Args:
        attacks: that the server tries.
        adapts: whether it knows the defenses in force, and trains known users behind them.

    """
    return _threat(attacks, is_round=True, adapts=adapts)


def every_sender(attacks: tuple[Attack[Any], ...]) -> ThreatPlan:
    """Updates of a sender bear one pseudonym, so that evidence of rounds is summed."""
    return _threat(attacks, is_round=False, adapts=False)


def setting(world: IdentityScenario, run: Plan, full: Plan | None = None) -> str:
    """What a figure was measured on, in words; of a reduced run also what was cut.

    Args:
        world: of both.
        run: that was run.
        full: the one that is run unless there is hurry; None = as `run`.

    """
    data, training, who = run.data, run.training, run.data.people
    told = [f"{world.name}, {data.clients} users"]
    if who is not None:
        told.append(PRIORS.get(who.prior, who.prior))
        if who.records is not None:
            told.append(f"{who.records} prior records a user")
        if who.unseen:
            told.append(f"{who.unseen} of them unseen")
        if who.holdout:
            told.append(f"{who.holdout} holdout users")
    told += [
        f"{training.rounds} rounds",
        f"participation {training.participation:g}",
        f"seeds {', '.join(str(seed) for seed in run.seeds)}",
    ]
    return ", ".join(told) + _cuts(run, run if full is None else full)


def _cuts(run: Plan, full: Plan) -> str:
    cuts = [
        f"{here} of {whole} {what}"
        for what, here, whole in (
            ("seeds", len(run.seeds), len(full.seeds)),
            ("rounds", run.training.rounds, full.training.rounds),
        )
        if here != whole
    ]
    return f" (quick: {', '.join(cuts)})" if cuts else ""


def _threat(attacks: tuple[Attack[Any], ...], *, is_round: bool, adapts: bool) -> ThreatPlan:
    return ThreatPlan(
        attacks=attacks,
        pseudonyms="round" if is_round else "run",
        knows=("auxiliary", "model", "recipe", *(("defenses",) if adapts else ())),
        by_round=False,
    )
