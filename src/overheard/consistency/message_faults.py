"""What single replies cannot be: zero, equal, codes, the model itself, or said before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.consistency.proof import MessageFault
from overheard.consistency.readings import CODES_MEND, DIFFERENCES_MEND, WEIGHTS_MEND
from overheard.core.messages import Aggregate, Update
from overheard.core.parties import Party

NEARLY = 0.2
"""Largest relative distance of an update that is nearly the model, or nearly minus it."""

SAME = 1e-5
"""Largest relative distance of numbers that are the same but for rounding."""

WHOLE = 1e-3
"""Largest distance from a whole number of a code, after a subtraction in 32 bits."""

LARGEST_CODE = 2**20
"""Largest code; larger numbers of 32 bits have no or hardly any digits after the point."""

SAME_BITS = 2.0**-18
"""Largest relative distance from a number of 16 bits, after a subtraction in 32 bits."""

COARSE_SHARE = 0.05
"""Size of the rounding of a reply, relative to the update, of which users are told."""

SHARE_WHOLE = 0.9
"""Share of the numbers that must be whole; biases may be sent as they are."""

KEPT_NUMBERS = 2**24
"""Most numbers of last replies that are kept: 64 MB, for 4,096 clients or more."""

FEWEST_NUMBERS = 8
"""Fewest numbers of a model that are the same, or whole, by more than chance."""

HUGE = 1e4
"""How many times an update is larger than the model and than 1 if no training made it."""

COUNT_NAMES = frozenset(
    {"examples", "num_examples", "samples", "num_samples", "n_samples", "dataset_size"}
)
"""Names of metrics that state a number of examples."""

ZERO = "the update is zero in every number"
EQUAL = "all replies are the same, number for number"
TWIN = "the reply is the same as that of another client, number for number"
REPEATED_ROUND = (
    "the broadcast and all replies are those of the round before, number for number"
)
MINUS = "the update is nearly minus the broadcast, so that the model would be nearly zero"
PLUS = "the update is nearly the broadcast itself, so that the model would be twice as large"
CODES = "the update consists of whole numbers, or does so with the broadcast added"
TOO_LARGE = "the update is more than 10,000 times as large as the model"
NOT_FINITE = "the update has NaN or infinite numbers"
COARSE = "the reply has numbers of 16 bits, whose rounding is more than 5 % of the update"
REPEATED = "the update is that of the sender's round before, number for number"
STALE = "the model is that which the sender sent in its round before"
RETURNED = "the model is the broadcast of the round before, untrained"
ONE_EXAMPLE = "the reply reports one example, as if its number were a weight"
MISCOUNTED = "the metrics state another number of examples than the reply"

MENDS = {
    ZERO: "check which object was saved: it did not change in training",
    EQUAL: (
        "check that each reply is that of its own client: a mean under secure aggregation is "
        "an aggregate, and no reply of a single client"
    ),
    TWIN: "check that each client's reply is its own, and no copy of another's",
    REPEATED_ROUND: "check that no round is recorded twice",
    MINUS: DIFFERENCES_MEND,
    PLUS: WEIGHTS_MEND,
    CODES: CODES_MEND,
    TOO_LARGE: "check what the replies hold, and that scales were undone",
    NOT_FINITE: "leave the reply out, or check the training of this client",
    COARSE: "save or send replies in the 32 bits in which they were aggregated",
    REPEATED: "check that each round has the reply of its own round",
    STALE: "check that each round has the reply of its own round",
    RETURNED: "check that the client's model was saved after its training",
    ONE_EXAMPLE: ("report the number of training examples: attacks use it"),
    MISCOUNTED: (
        "check that the numbers of examples are no numbers of steps or batches: attacks use "
        "them"
    ),
}
"""What to do about each."""

OF_ROUNDS = frozenset({EQUAL, REPEATED_ROUND})
"""What all replies of a round have together."""

ONLY_IF_UNEXPLAINED = frozenset({MINUS, PLUS, TOO_LARGE})
"""What is no fault if the replies lead to the next broadcasts as they are stored."""

WARNED_IF_EXPLAINED = frozenset({REPEATED})
"""What is only a warning in that case."""

REFUSED_IN_PART = frozenset({MINUS, PLUS, CODES, REPEATED, STALE})
"""What refuses attacks if some replies have it and no step of a server leads on."""

REFUSED = frozenset({ZERO, EQUAL, MINUS, PLUS, CODES, TOO_LARGE, NOT_FINITE, REPEATED})
"""What refuses attacks if all replies of a recording have it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SampledReply:
    """A sampled reply, or the aggregate in place of all replies.

    Args:
        sender: who sent it.
        body: the message.
        numbers: a small sample of its numbers.

    """

    sender: Party
    body: Update | Aggregate
    numbers: Float[Tensor, " numbers"]


@final
class FaultFinder:
    """Looks at each reply as it comes, and tells at the end what is wrong with how many."""

    def __init__(self) -> None:
        self._faults = dict[str, list[tuple[int, Party | None]]]()
        self._replies = dict[Party, int]()
        self._rounds_of_several = 0
        self._compared = 0
        self._last = dict[Party, tuple[Tensor, Tensor]]()
        self._broadcast: Tensor | None = None

    @property
    def are_all_zero(self) -> bool:
        """Whether all replies of the recording are zero."""
        replies = sum(self._replies.values())
        return replies > 0 and len(self._faults.get(ZERO, ())) == replies

    def add(
        self, number: int, replies: Sequence[SampledReply], broadcast: Float[Tensor, " numbers"]
    ) -> None:
        """Look at the replies of a round.

        Args:
            number: the round.
            replies: its replies.
            broadcast: the same numbers of the broadcast.

        """
        start = broadcast.float()
        if len(start) < FEWEST_NUMBERS:
            return
        for reply in replies:
            self._replies[reply.sender] = self._replies.get(reply.sender, 0) + 1
            self._compared += reply.sender in self._last
            for fault in self._faults_of(reply, start):
                self._faults.setdefault(fault, []).append((number, reply.sender))
        if len(replies) > 1:
            self._rounds_of_several += 1
            self._compare(number, replies, start)
        for reply in replies:
            self._last.pop(reply.sender, None)
            self._last[reply.sender] = (reply.numbers, start)
            if len(self._last) * len(start) > KEPT_NUMBERS:
                del self._last[next(iter(self._last))]
        self._broadcast = start

    def _compare(self, number: int, replies: Sequence[SampledReply], start: Tensor) -> None:
        """Compare the replies of a round with each other and with those of the last round."""
        moved = [one for one in replies if bool(one.numbers.any())]
        groups = dict[bytes, list[Party]]()
        for one in moved:
            groups.setdefault(one.numbers.numpy().tobytes(), []).append(one.sender)
        twins = [
            sender for group in groups.values() if len(set(group)) > 1 for sender in set(group)
        ]
        if len(groups) == 1 and len(moved) == len(replies):
            self._faults.setdefault(EQUAL, []).append((number, None))
        elif twins:
            self._faults.setdefault(TWIN, []).extend((number, one) for one in sorted(twins))
        before = [self._last.get(one.sender) for one in replies]
        if len(moved) > 1 and all(
            last is not None
            and torch.equal(last[0], one.numbers)
            and torch.equal(last[1], start)
            for one, last in zip(replies, before, strict=True)
        ):
            self._faults.setdefault(REPEATED_ROUND, []).append((number, None))

    def add_unreadable(self, number: int, sender: Party) -> None:
        """Note a reply with NaN or infinite numbers."""
        self._replies[sender] = self._replies.get(sender, 0) + 1
        self._faults.setdefault(NOT_FINITE, []).append((number, sender))

    def faults(
        self, *, is_sound: bool, is_exact: bool, is_unknown: bool
    ) -> tuple[MessageFault, ...]:
        """Return the faults, one for all replies that have it, or one for each sender.

        Args:
            is_sound: whether the replies lead to the next broadcasts as they are stored.
            is_exact: whether they do so without any number that was fitted.
            is_unknown: whether no step leads from the replies to the next broadcasts.

        """
        found = list[MessageFault]()
        for fault, places in self._faults.items():
            if (is_sound and fault in ONLY_IF_UNEXPLAINED) or (is_exact and fault == CODES):
                continue
            total = self._possible(fault)
            if fault == ONE_EXAMPLE and (len(places) < total or len(self._replies) == 1):
                continue  # some clients may well have one example
            if len(places) == total:
                is_refusal = not (is_sound and fault in WARNED_IF_EXPLAINED)
                found.append(_fault_of_all(fault, places[0][0], total, is_refusal=is_refusal))
            else:
                is_refusal = is_unknown and fault in REFUSED_IN_PART
                found += self._faults_by_sender(fault, places, is_refusal=is_refusal)
        return tuple(sorted(found, key=lambda one: not one.is_refusal))

    def _possible(self, fault: str) -> int:
        """Return in how many places a fault can be at most."""
        if fault in OF_ROUNDS:
            return self._rounds_of_several
        return self._compared if fault in {REPEATED, STALE} else sum(self._replies.values())

    def _faults_by_sender(
        self, fault: str, places: Sequence[tuple[int, Party | None]], *, is_refusal: bool
    ) -> list[MessageFault]:
        rounds = dict[Party | None, list[int]]()
        for number, sender in places:
            rounds.setdefault(sender, []).append(number)
        found = list[MessageFault]()
        for sender, numbers in rounds.items():
            said = f"{fault}, in {list_rounds(numbers)}"
            if sender is not None:
                said = f"{sender}: {said} (of {self._replies[sender]} replies)"
            explained = fault in ONLY_IF_UNEXPLAINED
            found.append(
                MessageFault(numbers[0], sender, said, MENDS[fault], is_refusal, explained)
            )
        return found

    def _faults_of(self, reply: SampledReply, start: Tensor) -> list[str]:
        numbers, body = reply.numbers, reply.body
        if not bool(numbers.any()) and _is_zero(body):
            return [] if body.examples == 0 else [ZERO]
        found = [fault for fault, has in _CHECKS.items() if has(numbers, start)]
        if isinstance(body, Update) and _is_miscounted(body):
            found.append(MISCOUNTED)
        if isinstance(body, Update) and body.examples == 1:
            found.append(ONE_EXAMPLE)
        before = self._last.get(reply.sender)
        if before is not None and len(before[0]) == len(numbers):
            found += _repeats(numbers, start, *before)
        if self._broadcast is not None and len(self._broadcast) == len(start):
            moved = start - self._broadcast
            if bool(moved.any()) and float((numbers + moved).norm()) <= SAME * float(
                moved.norm()
            ):
                found.append(RETURNED)
        return found


def _fault_of_all(fault: str, number: int, total: int, *, is_refusal: bool) -> MessageFault:
    kind = "round" if fault in OF_ROUNDS else "reply"
    kinds = "rounds" if fault in OF_ROUNDS else "replies"
    where = f"in the only {kind}" if total == 1 else f"in all {total} {kinds}"
    return MessageFault(
        number,
        None,
        f"{where} {fault}",
        MENDS[fault],
        is_refusal and fault in REFUSED,
        fault in ONLY_IF_UNEXPLAINED,
    )


def _is_zero(body: Update | Aggregate) -> bool:
    """Return whether all numbers are zero; reads them all."""
    return not any(bool(body.delta[name].any()) for name in body.delta)


def _repeats(numbers: Tensor, start: Tensor, last: Tensor, last_start: Tensor) -> list[str]:
    """Return whether an update, or the model behind it, is that of the sender's last reply.

    From the same broadcast a client may well train the same model again.
    """
    if torch.equal(start, last_start):
        return []
    if torch.equal(numbers, last):
        return [REPEATED]
    size = float(numbers.norm())
    model_moved = numbers + start - last - last_start
    return [STALE] if float(model_moved.norm()) <= SAME * size else []


def _is_minus(numbers: Tensor, start: Tensor) -> bool:
    size = float(start.norm())
    return size > 0 and float((numbers + start).norm()) <= NEARLY * size


def _is_plus(numbers: Tensor, start: Tensor) -> bool:
    size = float(start.norm())
    return size > 0 and float((numbers - start).norm()) <= NEARLY * size


def _is_too_large(numbers: Tensor, start: Tensor) -> bool:
    ordinary = max(float(start.norm()), len(start) ** 0.5)
    return bool(float(numbers.norm()) > HUGE * ordinary)


def _is_coarse(numbers: Tensor, start: Tensor) -> bool:
    """Return whether a model of 16 bits was taken from a broadcast of more, to much effect."""
    model, size = numbers + start, numbers.abs() + start.abs()
    for kind in (torch.float16, torch.bfloat16):
        if _share_of_bits(model, kind, size) < SHARE_WHOLE:
            continue
        # An error is even between both halves of the distance of neighbouring numbers.
        rounding = torch.finfo(kind).eps * float(model.norm()) / 12**0.5
        is_large = rounding > COARSE_SHARE * float(numbers.norm())
        return is_large and _share_of_bits(start, kind, size) < SHARE_WHOLE
    return False


def _share_of_bits(values: Tensor, kind: torch.dtype, size: Tensor) -> float:
    """Return the share of the numbers that this type holds, but for errors of this size."""
    return float(((values.to(kind).float() - values).abs() <= SAME_BITS * size).float().mean())


def _is_whole(numbers: Tensor, start: Tensor) -> bool:
    """Return whether nearly all numbers, or those of the model, are varied whole numbers."""
    if _are_codes(numbers):
        return True
    return not _are_codes(start) and _are_codes(numbers + start)


def _are_codes(numbers: Tensor) -> bool:
    some = numbers[numbers.abs() > WHOLE]  # a zero is no sign of codes
    if len(some) < FEWEST_NUMBERS:
        return False
    whole = some.round()
    is_whole = (some - whole).abs() <= WHOLE
    return (
        float(is_whole.float().mean()) >= SHARE_WHOLE
        and 2 <= float(whole.abs().max()) <= LARGEST_CODE
        and len(torch.unique(whole)) >= 3
    )


def _is_miscounted(body: Update) -> bool:
    """Return whether a metric named as a number of examples contradicts the reported number."""
    if body.examples is None:
        return False
    stated = [
        value
        for name, value in body.metrics.items()
        if name.rpartition(".")[2].lower().replace("-", "_") in COUNT_NAMES
    ]
    return bool(stated) and body.examples not in stated


_CHECKS: dict[str, Callable[[Tensor, Tensor], bool]] = {
    MINUS: _is_minus,
    PLUS: _is_plus,
    CODES: _is_whole,
    TOO_LARGE: _is_too_large,
    COARSE: _is_coarse,
}
"""By fault, whether an update has it, from its numbers and those of the broadcast."""


def list_rounds(numbers: Sequence[int]) -> str:
    """Return the first rounds of a list, and how many more there are, in words."""
    few = ", ".join(str(one) for one in numbers[:5])
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"round{'s' if len(numbers) > 1 else ''} {few}{more}"
