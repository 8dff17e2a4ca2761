"""The accountants of the clients of a run, by its messages."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from overheard.core.accounting.accountant import (
    AccountedMechanism,
    RecomputedEpsilon,
    is_accountant_installed,
)
from overheard.core.accounting.client_accounts import (
    ClientAccounts,
    ClientSteps,
    account_clients,
    equal_clients,
    largest_message,
    lower_epsilon,
    stated_clients,
)
from overheard.core.accounting.composed_steps import NoisySteps, steps_epsilon
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Message
from overheard.core.parties import Party
from overheard.findings.finding import ArmDefense

DELTA = 1e-5
"""Delta of the accounts if the recording states none."""

STATED_NAME = "DP-SGD as clients state it"
"""How a report names DP-SGD that the messages of clients state."""


def with_equal_accounts(
    defenses: Iterable[ArmDefense],
    messages: Sequence[Message],
    clients: Sequence[Party],
    share_of_steps: Callable[[int, Party], float] = lambda _round, _client: 1.0,
) -> tuple[ArmDefense, ...]:
    """Return defenses with the account of each client, if all clients use the same settings.

    Args:
        defenses: the defenses of a run.
        messages: its messages.
        clients: its clients, also those that sent nothing.
        share_of_steps: returns the share of the most steps of a round that a client made.

    """

    def add_accounts(defense: ArmDefense) -> ArmDefense:
        mechanism = None if defense.accounted is None else defense.accounted.mechanism
        if mechanism is None or not _is_for_records(mechanism):
            return defense

        def steps_of(number: int, client: Party) -> NoisySteps:
            sampling = mechanism.record_sampling
            assert sampling is not None
            assert sampling != "fixed"
            return NoisySteps(
                mechanism.noise_multiplier / mechanism.moves,
                sampling,
                1.0 if mechanism.record_rate is None else mechanism.record_rate,
                max(round(mechanism.steps * share_of_steps(number, client)), 1),
            )

        spent = equal_clients(messages, clients, steps_of)
        return replace(defense, clients=account_clients(spent, mechanism.delta))

    return tuple(map(add_accounts, defenses))


def with_stated_accounts(
    defenses: tuple[ArmDefense, ...],
    run: RunParameters,
    messages: Sequence[Message],
    clients: Sequence[Party],
) -> tuple[ArmDefense, ...]:
    """Return the defenses of a recording with the accounts of its clients.

    If clients state their own steps (`stated_steps`), these count, and a mechanism of single
    records that the recording states has only its delta, its claim and its name. Otherwise
    that mechanism is the one of all clients.

    Args:
        defenses: the defenses that the recording states.
        run: the recorded run.
        messages: its messages.
        clients: its clients, also those that sent nothing.

    """
    spent = stated_clients(messages, clients) if is_accountant_installed() else ()
    if not spent:
        return with_equal_accounts(defenses, messages, clients)
    base = next((one for one in defenses if _is_base(one)), None)
    stated = _stated_defense(spent, run, base)
    if base is None:
        return (*defenses, stated)
    return tuple(stated if one is base else one for one in defenses)


def _is_for_records(mechanism: Mechanism) -> bool:
    """Return whether accounts of clients are computed for the mechanism."""
    return (
        mechanism.unit == "record"
        and mechanism.noised_at == "client"
        and mechanism.relation == "add-or-remove"
        and mechanism.record_sampling in ("none", "poisson", "shuffled")
        and not mechanism.unproven
        and is_accountant_installed()
    )


def _is_base(defense: ArmDefense) -> bool:
    if defense.accounted is None:
        return False
    mechanism = defense.accounted.mechanism
    is_removed = mechanism.relation == "add-or-remove"
    return mechanism.unit == "record" and mechanism.noised_at == "client" and is_removed


def _stated_defense(
    spent: Sequence[ClientSteps], run: RunParameters, base: ArmDefense | None
) -> ArmDefense:
    """Return DP-SGD with the steps that clients state."""
    known = None if base is None or base.accounted is None else base.accounted.mechanism
    delta = DELTA if known is None else known.delta
    accounts = account_clients(spent, delta)
    worst = largest_message(spent, delta)
    assert accounts is not None
    defense = ArmDefense(
        f"{STATED_NAME}({_settings(spent)})",
        "client",
        "each client, which may state other steps than it made",
        "as recorded: not verified",
        clients=accounts,
    )
    if base is not None:
        defense = replace(defense, settings=base.settings, switched_off_by=base.switched_off_by)
    if not worst:
        return replace(defense, promise=f"no formal promise: {_gap(accounts)}")
    first = next(one for one in spent if one.client == accounts.largest.client)
    mechanism = _mechanism(first.steps or worst, spent, worst, delta)
    if known is not None:
        mechanism = replace(mechanism, stated=known.stated, stated_for=known.stated_for)
    lower, of_round = 0.0, 0.0
    if mechanism.stated is not None:
        lower, of_round = (lower_epsilon(one, delta) for one in (first.steps, worst))
    recomputed = RecomputedEpsilon(
        _planned_epsilon(spent, worst, run, accounts, delta),
        None,
        None,
        math.inf if _gap(accounts) else steps_epsilon(worst, delta),
        lower,
        of_round,
    )
    accounted = AccountedMechanism(mechanism, run, recomputed, _gap(accounts))
    return replace(defense, accounted=accounted)


def _planned_epsilon(
    spent: Sequence[ClientSteps],
    worst: tuple[NoisySteps, ...],
    run: RunParameters,
    accounts: ClientAccounts,
    delta: float,
) -> float:
    """Return the largest epsilon, if every client takes part in all rounds to come.

    Their messages are supposed to be like the one with the largest epsilon so far.
    """
    remaining = 0 if run.recorded is None else run.rounds - run.recorded
    if not remaining:
        return accounts.largest.epsilon
    more = [replace(one, messages=(*one.messages, *[worst] * remaining)) for one in spent]
    planned = account_clients(more, delta)
    assert planned is not None
    return planned.largest.epsilon


def _gap(accounts: ClientAccounts) -> str:
    """Return which client has messages without steps that accounting covers; "" = none has."""
    with_problem = [one for one in accounts.accounts if one.problem]
    if not with_problem:
        return ""
    more = f" (and {len(with_problem) - 1:,} more clients)" if len(with_problem) > 1 else ""
    return f"{with_problem[0].client}: {with_problem[0].problem}{more}"


def _mechanism(
    steps: Sequence[NoisySteps],
    spent: Sequence[ClientSteps],
    worst: Sequence[NoisySteps],
    delta: float,
) -> Mechanism:
    """Return the mechanism of the client with the largest epsilon, by its worst settings."""
    least = min(steps, key=lambda one: (one.noise_multiplier, -one.rate))
    is_sampled = least.sampling != "none"
    return Mechanism(
        least.noise_multiplier,
        max((clip for one in spent for clip in one.clips), default=1.0),
        delta,
        "client",
        "client",
        moves=1.0,
        unit="record",
        steps=max(sum(one.steps for one in worst), 1),
        record_sampling=least.sampling,
        record_rate=max(one.rate for one in steps) if is_sampled else None,
    )


def _settings(spent: Sequence[ClientSteps]) -> str:
    """Describe the smallest and the largest setting of all clients."""
    steps = [steps for one in spent for steps in one.steps]
    clips = [clip for one in spent for clip in one.clips]
    values = {
        "noise_multiplier": [one.noise_multiplier for one in steps],
        "max_grad_norm": clips,
        "sample_rate": [one.rate for one in steps],
    }
    ranges = [f"{name}={_range(found)}" for name, found in values.items() if found]
    samplings = sorted({one.sampling for one in steps})
    return ", ".join([*ranges, *([f"sampling={' or '.join(samplings)}"] if samplings else [])])


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
