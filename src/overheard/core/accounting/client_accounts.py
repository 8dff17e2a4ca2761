"""Accountants of single clients over the rounds of a run, and their largest epsilon."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.core.accounting.accountant import LEAST_NOISE, MOST_NOISE
from overheard.core.accounting.composed_steps import LEAST_RATE, NoisySteps, steps_epsilon
from overheard.core.accounting.sampled_accountant import PoissonNoise
from overheard.core.accounting.stated_steps import (
    NOTHING_STATED,
    StatedSteps,
    read_stated_steps,
)
from overheard.core.mechanism import MEANINGLESS_EPSILON, AccountUnit
from overheard.core.messages import (
    NO_METRICS,
    Aggregate,
    DistilledSet,
    Message,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import Party, is_client

USER_RECORDS = (2, 10)
"""Numbers of records of one user for which epsilon is printed, as most runs state none."""

MAX_EXACT_CLIENTS = 50
"""Most different clients whose settings are not rounded up, as each takes up to a second."""

ROUNDING = 1.2
"""Factor between two rounded settings."""

MAX_MESSAGE_KINDS = 20
"""Most kinds of steps of a client that are composed apart; more are rounded up together."""


@final
@dataclass(frozen=True, slots=True)
class ClientSteps:
    """All steps of DP-SGD of a client in a run.

    Args:
        client: the client.
        messages: the steps of each message with what it trained; () for one without steps
            that accounting covers.
        problem: why the first of those has none, in words that follow "it"; "" = all have.
        records: its largest number of examples; None = not known.
        clips: the clips that it states, each once.

    """

    client: Party
    messages: tuple[tuple[NoisySteps, ...], ...]
    problem: str = ""
    records: int | None = None
    clips: frozenset[float] = frozenset()

    @property
    def steps(self) -> tuple[NoisySteps, ...]:
        """The steps of all messages."""
        return tuple(steps for one in self.messages for steps in one)


@final
@dataclass(frozen=True, slots=True)
class ClientAccount:
    """The epsilon of one record of a client, over all messages of this client.

    Args:
        client: the client.
        messages: number of messages with what it trained.
        steps: number of its steps.
        epsilon: upper bound; infinite if a message has no noise, or states none.
        problem: why epsilon is unknown, and so infinite; "" = it is known.

    """

    client: Party
    messages: int
    steps: int
    epsilon: float
    problem: str = ""


@final
@dataclass(frozen=True, slots=True)
class UnitEpsilon:
    """The epsilon of a client for records that are added or removed together.

    Args:
        unit: one record, several records of one user, or all records of the client.
        records: how many records that are.
        epsilon: upper bound.

    """

    unit: AccountUnit
    records: int
    epsilon: float


@final
@dataclass(frozen=True, slots=True)
class ClientAccounts:
    """The accountants of all clients of a run.

    Args:
        accounts: by falling epsilon. A client that sent nothing has spent nothing.
        units: epsilon of the first client for one record, a user and the client.
        as_poisson: epsilon of the first client if its batches were Poisson samples of the same
            rate. That is not this run's epsilon: its batches are shuffled. None = they are not.

    """

    accounts: tuple[ClientAccount, ...]
    units: tuple[UnitEpsilon, ...]
    as_poisson: float | None = None

    @property
    def largest(self) -> ClientAccount:
        """The account of the client with the largest epsilon, which is that of the run."""
        return self.accounts[0]

    @property
    def median(self) -> ClientAccount:
        """The account in the middle; of two, the one with the larger epsilon."""
        return self.accounts[(len(self.accounts) - 1) // 2]

    @property
    def smallest(self) -> ClientAccount:
        """The account of the client with the smallest epsilon."""
        return self.accounts[-1]


def account_clients(clients: Sequence[ClientSteps], delta: float) -> ClientAccounts | None:
    """Return the account of each client for a record that is added or removed.

    Equal clients are computed once. Beyond `MAX_EXACT_CLIENTS` different ones, settings are
    rounded so that epsilon only grows, but for the clients with the largest one.

    Args:
        clients: the clients of a run.
        delta: the delta of the guarantee, above 0 and below 1.

    Returns:
        None if there is no client.

    Raises:
        PlanError: if `dp-accounting` is not installed.

    """
    if not clients:
        return None
    spent = {one.client: _merge(one.steps) for one in clients}
    epsilons = _epsilons(frozenset(spent.values()), delta)
    accounts = [
        ClientAccount(
            one.client,
            len(one.messages),
            sum(steps.steps for steps in one.steps),
            math.inf if one.problem else epsilons[spent[one.client]],
            _problem(one),
        )
        for one in clients
    ]
    order = sorted(accounts, key=lambda one: (-one.epsilon, one.client))
    first = next(one for one in clients if one.client == order[0].client)
    return ClientAccounts(
        tuple(order), _units(first, delta, order[0].epsilon), _as_poisson(first, delta)
    )


def largest_message(clients: Sequence[ClientSteps], delta: float) -> tuple[NoisySteps, ...]:
    """Return the steps of the message with the largest epsilon; () = none has steps."""
    of_messages = frozenset(_merge(one) for client in clients for one in client.messages)
    epsilons = _epsilons(of_messages, delta)
    return max(sorted(epsilons, key=repr), key=lambda steps: epsilons[steps], default=())


def lower_epsilon(steps: Iterable[NoisySteps], delta: float) -> float:
    """Return a lower bound of epsilon for a record that is added or removed; 0 = none is known.

    It is that of the kind of steps that reveals most: further steps only reveal more.
    """
    kinds = Counter[tuple[float, float]]()
    for one in steps:
        if one.sampling != "shuffled" and not _is_next_to_nothing(one):
            kinds[one.noise_multiplier, one.rate] += one.steps
    revealed = {
        kind: n * (kind[1] / max(kind[0], LEAST_NOISE)) ** 2 for kind, n in kinds.items()
    }
    if not revealed:
        return 0.0
    noise, rate = max(sorted(revealed), key=lambda kind: revealed[kind])
    if noise == 0:
        return math.inf
    drawn = PoissonNoise(max(noise, LEAST_NOISE), rate, kinds[noise, rate], "add-or-remove")
    return drawn.lower_epsilon(delta)


def _is_next_to_nothing(steps: NoisySteps) -> bool:
    """Return whether steps have so much noise, or so low a rate, that they prove nothing."""
    return steps.noise_multiplier > MOST_NOISE or steps.rate < LEAST_RATE


def stated_clients(
    messages: Iterable[Message], clients: Iterable[Party]
) -> tuple[ClientSteps, ...]:
    """Return the steps that clients state in the messages of a recording; () = none does.

    A client whose message states none, although others state theirs, may have trained without
    noise. A reply that never arrived has spent nothing, as nobody read it.

    Args:
        messages: the messages.
        clients: all clients of the run, also those that sent nothing.

    """
    stated = defaultdict[Party, list[StatedSteps]](list)
    records = dict[Party, int]()
    for one in _trained(messages):
        found = read_stated_steps(one.metrics)
        stated[one.client].append(NOTHING_STATED if found is None else found)
        records[one.client] = max(records.get(one.client, 0), one.examples)
    if all(one is NOTHING_STATED for found in stated.values() for one in found):
        return ()
    return tuple(
        ClientSteps(
            client,
            tuple(one.steps for one in stated[client]),
            next((one.problem for one in stated[client] if one.problem), ""),
            records.get(client) or None,
            frozenset(one.clip for one in stated[client] if one.clip is not None),
        )
        for client in dict.fromkeys((*filter(is_client, clients), *stated))
    )


def equal_clients(
    messages: Iterable[Message],
    clients: Iterable[Party],
    steps_of: Callable[[int, Party], NoisySteps],
) -> tuple[ClientSteps, ...]:
    """Return the steps of clients that all use the same mechanism, by their messages.

    Args:
        messages: the messages of the run.
        clients: all clients of the run, also those that sent nothing.
        steps_of: returns the steps of a client in a round.

    """
    sent, records = defaultdict[Party, list[int]](list), dict[Party, int]()
    for one in _trained(messages):
        sent[one.client].append(one.round)
        records[one.client] = max(records.get(one.client, 0), one.examples)
    return tuple(
        ClientSteps(
            client,
            tuple((steps_of(number, client),) for number in sent[client]),
            records=records.get(client) or None,
        )
        for client in dict.fromkeys((*filter(is_client, clients), *sent))
    )


@final
@dataclass(frozen=True, slots=True)
class _Trained:
    """What a client sent after it trained: round, clear text, and its number of examples."""

    client: Party
    round: int
    metrics: Mapping[str, float]
    examples: int


def _trained(messages: Iterable[Message]) -> Iterator[_Trained]:
    """Yield what clients sent after they trained, also if only their sum can be read."""
    alone, together = set[tuple[int, Party]](), set[tuple[int, Party]]()
    for message in messages:
        sender, number, body = message.sender, message.round, message.body
        if isinstance(body, Aggregate):
            together |= {(number, client) for client in body.cohort}
        elif isinstance(body, Update | UnstoredMessage | DistilledSet) and is_client(sender):
            alone.add((number, sender))
            if isinstance(body, DistilledSet):
                yield _Trained(sender, number, NO_METRICS, 0)
            else:
                yield _Trained(sender, number, body.metrics, body.examples or 0)
    for number, client in sorted(together - alone):
        if is_client(client):
            yield _Trained(client, number, NO_METRICS, 0)


def _merge(steps: Iterable[NoisySteps]) -> tuple[NoisySteps, ...]:
    """Return the same steps with equal Poisson steps as one entry, in a fixed order.

    Steps of different epochs stay apart where a record is in one step an epoch.
    """
    counts, others = defaultdict[tuple[float, float], int](int), list[NoisySteps]()
    for one in steps:
        if one.counts_sampling:
            counts[one.noise_multiplier, one.rate] += one.steps
        else:
            others.append(one)
    kinds = sorted(counts.items())
    if len(kinds) > MAX_MESSAGE_KINDS:
        rest = kinds[MAX_MESSAGE_KINDS - 1 :]
        noise, rate = min(key[0] for key, _ in rest), max(key[1] for key, _ in rest)
        together = ((noise, rate), sum(count for _, count in rest))
        kinds = [*kinds[: MAX_MESSAGE_KINDS - 1], together]
    drawn = [
        NoisySteps(noise, "poisson", rate, part)
        for (noise, rate), count in kinds
        for part in _parts(count)
    ]
    others.sort(key=lambda one: (one.sampling, one.noise_multiplier, one.rate, one.steps))
    return (*drawn, *others)


def _parts(count: int) -> list[int]:
    """Return numbers of steps that a setting has room for, with this sum."""
    most = 2**31 - 1
    return [*[most] * (count // most), *([count % most] if count % most else [])]


def _epsilons(
    spent: Collection[tuple[NoisySteps, ...]], delta: float
) -> Mapping[tuple[NoisySteps, ...], float]:
    """Return an upper bound of epsilon for the steps of each different client."""
    if len(spent) <= MAX_EXACT_CLIENTS:
        return {steps: steps_epsilon(steps, delta) for steps in spent}
    rounded = {steps: _merge(map(_rounded, steps)) for steps in spent}
    of_rounded = {steps: steps_epsilon(steps, delta) for steps in {*rounded.values()}}
    found, exact = {steps: of_rounded[one] for steps, one in rounded.items()}, set()
    for _ in range(MAX_EXACT_CLIENTS):
        largest = max(found, key=lambda steps: found[steps])
        if largest in exact or math.isinf(found[largest]):
            break
        exact.add(largest)
        found[largest] = steps_epsilon(largest, delta)
    return found


def _rounded(steps: NoisySteps) -> NoisySteps:
    """Return steps with powers of `ROUNDING` as settings, by which epsilon only grows."""
    return replace(
        steps,
        noise_multiplier=_power_below(steps.noise_multiplier),
        rate=min(1 / _power_below(1 / steps.believed_rate), 1.0),
        steps=math.ceil(1 / _power_below(1 / steps.steps)),
    )


def _power_below(value: float) -> float:
    """Return the largest power of `ROUNDING` below a number; 0 for next to nothing."""
    return 0.0 if value < LEAST_NOISE else ROUNDING ** math.floor(math.log(value, ROUNDING))


def _problem(client: ClientSteps) -> str:
    if not client.problem:
        return ""
    without = sum(not one for one in client.messages)
    return f"it {client.problem} in {without:,} of {len(client.messages):,} messages"


def _units(client: ClientSteps, delta: float, of_record: float) -> tuple[UnitEpsilon, ...]:
    """Return epsilon of a client for one record, a user and the client.

    A unit with more records has a larger epsilon, so that above `MEANINGLESS_EPSILON` nothing
    is computed.
    """
    found = [UnitEpsilon("record", 1, of_record)]
    asked: list[tuple[AccountUnit, int]] = [
        ("user", count)
        for count in USER_RECORDS
        if client.records is None or count < client.records
    ]
    if client.records:
        asked.append(("client", client.records))
    for unit, records in asked:
        is_lost = found[-1].epsilon > MEANINGLESS_EPSILON
        epsilon = math.inf if is_lost else steps_epsilon(_merge(client.steps), delta, records)
        found.append(UnitEpsilon(unit, records, max(epsilon, found[-1].epsilon)))
    return tuple(found)


def _as_poisson(client: ClientSteps, delta: float) -> float | None:
    if client.problem or all(one.sampling != "shuffled" for one in client.steps):
        return None
    drawn = [
        replace(one, sampling="poisson") if one.sampling == "shuffled" else one
        for one in client.steps
    ]
    return steps_epsilon(_merge(drawn), delta)
