"""The plans of the paper's experiments: a federation of users, observed by the server."""

from typing import Any

from overheard.core.attack import Attack
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.splits.by_user import ByUser
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard_studies.deanonymization.scenarios import IdentityScenario

PRIOR_NAMES: dict[PriorKind, str] = {
    "random": "random prior examples",
    "chronological": "chronological prior examples",
    "chronological_within_labels": "prior examples chronological within labels",
}


def build_plan(
    scenario: IdentityScenario,
    known_users: KnownUserSettings,
    threats: tuple[ThreatPlan, ...],
    *,
    arms: tuple[ArmPlan, ...] = (),
    clients: int | None = None,
    background: int | None = None,
) -> Plan:
    """Build the plan of an audit of one federation of a scenario's users.

    Args:
        scenario: data and training.
        known_users: prior data that the server has of users.
        threats: threats that are run.
        arms: arms with defenses, in addition to the undefended one.
        clients: number of participating users; None = all of the scenario.
        background: public examples that everyone has; None = those of the data source.

    """
    return Plan(
        title=f"Who sent an update: {scenario.name}",
        seeds=scenario.seeds,
        data=DataPlan(
            source=scenario.source,
            split=ByUser(),
            clients=clients or scenario.clients,
            examples=scenario.examples,
            test=scenario.test,
            people=known_users,
            background=background,
        ),
        training=TrainingPlan(
            model=scenario.model,
            rounds=scenario.rounds,
            participation=scenario.participation,
            rate=scenario.rate,
            batch=scenario.batch,
            loss=scenario.loss,
        ),
        arms=arms,
        threats=threats,
    )


def build_known_user_settings(
    prior: PriorKind, *, unseen: int = 0, holdout: int = 0
) -> KnownUserSettings:
    """Make half of each user's records prior data, used by shadow devices, as published."""
    return KnownUserSettings(prior=prior, unseen=unseen, holdout=holdout, shadow_devices=True)


def threat_per_update(
    # Any: each attack has its own claim type.
    attacks: tuple[Attack[Any], ...],
    *,
    adapts: bool = False,
) -> ThreatPlan:
    """Build a threat in which every update has its own pseudonym, as published.

    Args:
        attacks: attacks that the server runs.
        adapts: whether the server knows the defenses and trains known users with them.

    """
    return _threat(attacks, is_round=True, adapts=adapts)


def threat_per_sender(attacks: tuple[Attack[Any], ...]) -> ThreatPlan:
    """Build a threat in which a sender's updates share a pseudonym and are scored jointly."""
    return _threat(attacks, is_round=False, adapts=False)


def describe_setting(scenario: IdentityScenario, run: Plan, full: Plan | None = None) -> str:
    """Describe what a value was measured on, and how it differs from the full size.

    Args:
        scenario: scenario of both plans.
        run: plan that was run.
        full: plan of a full run; None = `run`.

    """
    data, training, people = run.data, run.training, run.data.people
    parts = [f"{scenario.name}, {data.clients} users"]
    if people is not None:
        parts.append(PRIOR_NAMES.get(people.prior, people.prior))
        if people.records is not None:
            parts.append(f"{people.records} prior records per user")
        if people.unseen:
            parts.append(f"{people.unseen} of them unseen")
        if people.holdout:
            parts.append(f"{people.holdout} holdout users")
    parts += [
        f"{training.rounds} rounds",
        f"participation {training.participation:g}",
        f"seeds {', '.join(str(seed) for seed in run.seeds)}",
    ]
    return ", ".join(parts) + _reductions(run, run if full is None else full)


def _reductions(run: Plan, full: Plan) -> str:
    reductions = [
        f"{reduced} instead of {whole} {what}"
        for what, reduced, whole in (
            ("seeds", len(run.seeds), len(full.seeds)),
            ("rounds", run.training.rounds, full.training.rounds),
        )
        if reduced != whole
    ]
    return f" (changed from the full size: {', '.join(reductions)})" if reductions else ""


def _threat(attacks: tuple[Attack[Any], ...], *, is_round: bool, adapts: bool) -> ThreatPlan:
    return ThreatPlan(
        attacks=attacks,
        pseudonyms="round" if is_round else "run",
        knows=("auxiliary", "model", "recipe", *(("defenses",) if adapts else ())),
        by_round=False,
    )
