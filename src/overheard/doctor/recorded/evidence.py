"""What rules on recordings and plans may look at, and the contract of such a rule."""

import ast
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import final

from overheard.core.accounting.accountant import AccountedMechanism
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Message
from overheard.core.recipe import Recipe
from overheard.disk.reading import parse_expression, parse_literal
from overheard.doctor.criticism import DescribedRule


@final
@dataclass(frozen=True, slots=True, eq=False)
class StatedMechanism:
    """A noise mechanism that a plan or a recording states.

    Args:
        settings_text: the repr of the defense that has it.
        accounted: the mechanism with its recomputed epsilon.

    """

    settings_text: str
    accounted: AccountedMechanism

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism as stated."""
        return self.accounted.mechanism

    @property
    def name(self) -> str:
        """The name of the defense."""
        return self.settings_text.partition("(")[0]

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings in its repr that are literals, by name; empty if it is no repr."""
        try:
            called = parse_expression(self.settings_text)
        except SyntaxError:
            return {}
        found = dict[str, object]()
        for one in called.keywords if isinstance(called, ast.Call) else ():
            try:
                found[one.arg or ""] = parse_literal(one.value)
            except SyntaxError:
                continue
        return found

    def number(self, name: str) -> float | None:
        """Return a setting that is a number; None = there is none of this name."""
        value = self.settings.get(name)
        return float(value) if isinstance(value, int | float) else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunEvidence:
    """What is known of a run: what it states, and its messages if it was recorded.

    Args:
        place: what was looked at, such as "arm 'local DP'" or "the recording".
        mechanisms: the noise mechanisms that it states.
        run: over which mechanisms are composed.
        clients: number of clients; None = unknown.
        messages: all messages of a recording, in order; () = a plan, which has none.
        recipe: how clients trained; None = unknown.
        algorithm: the algorithm that is stated, with its settings; "" = unknown.
        examples: the smallest number of examples of a client; None = unknown.
        tuning_runs: number of runs on the same private data from which this one was chosen;
            None = not stated.

    """

    place: str
    mechanisms: tuple[StatedMechanism, ...]
    run: RunParameters
    clients: int | None = None
    messages: tuple[Message, ...] = ()
    recipe: Recipe | None = None
    algorithm: str = ""
    examples: int | None = None
    tuning_runs: int | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether there are messages to look at."""
        return bool(self.messages)


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a rule found; see `Criticism`."""

    what: str
    where: str
    evidence: str


@final
@dataclass(frozen=True, slots=True)
class Hidden:
    """A rule could not look.

    Args:
        why: why, and what would let it, in one or two sentences.

    """

    why: str


Examined = tuple[Fault, ...] | Hidden | None
"""What a rule found: its faults, () if it looked and found none; None if the run has nothing
that the rule is about."""


class RunRule(DescribedRule):
    """A rule on what is recorded or planned.

    A concrete rule is a final class in a file of `doctor.recorded.rules`, where it is found by
    itself.
    """

    @abstractmethod
    def examine(self, run: RunEvidence) -> Examined:
        """Look at a run."""


def round_down(epsilon: float) -> str:
    """Format a lower bound of epsilon, rounded down so that it is never overstated."""
    return f"{floor(epsilon * 100) / 100:.2f}"
