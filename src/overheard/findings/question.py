"""The contract of a question, such as who sent an update."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Generic, Literal, TypeVar, final

from overheard.core.claims import Claim
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.findings.figures import Measure
from overheard.findings.finding import Finding
from overheard.findings.row import Row

C = TypeVar("C", bound=Claim)

Control = Literal["exchange", "permutation"]
"""A run beside the planned one, in which nothing is to be found.

"exchange": the same clients exchange their examples in the same rounds, and nothing shifts.
"permutation": the examples are dealt anew among all clients by chance.
"""


class Question(ABC, Generic[C]):
    """What an attacker may ask about a target: all that an audit must know of it.

    A concrete question is a final frozen dataclass without fields, in the folder of its name.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where its figures of merit come from: authors, year, section or equation."""
    control: ClassVar[Control | None] = None
    """The control that its attacks listen to besides; None = none."""
    is_about_people: ClassVar[bool] = False
    """Whether it is about the person behind a client: a cohort is no person."""
    takes_all_rounds: ClassVar[bool] = False
    """Whether a round alone says nothing: no round is then listened to by itself."""
    measures: ClassVar[Mapping[str, Measure]] = MappingProxyType({})
    """How its scores are told to a reader, by the score's name."""

    @property
    @abstractmethod
    def scorer(self) -> Scorer[C]:
        """What holds claims that answer the question against the truth."""

    @final
    def measure(self, score: str) -> Measure:
        """How to tell a score; one that is not listed is told on its own scale."""
        return self.measures.get(score, Measure(score, "", 1.0))

    def averages(self, finding: Finding) -> bool:
        """Whether the scores of a finding count in the means over targets and runs.

        Those of a control do not, unless the question says so: see `references`.
        """
        return not finding.cell.is_control

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """What stands beside the mean of a score, besides the score's own references.

        Args:
            score: its name.
            planned: the findings that the mean is over, one or more.
            control: those of the control in the same place.

        """
        return {}

    def rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[Row]:
        """What only many findings together tell, a row for each place and figure.

        Args:
            findings: that answer the question, controls among them.
            seed: of the draws behind the intervals.

        """
        return ()


def plain_question(scorer: Scorer[C]) -> Question[C]:
    """Return the question of a scorer that comes without one: no control, no rows, no page."""
    held = scorer

    @final
    @dataclass(frozen=True)
    class PlainQuestion(Question[C]):
        """A question that is all in its scorer."""

        name = held.name
        source = held.source

        @property
        def scorer(self) -> Scorer[C]:
            """What holds claims that answer the question against the truth."""
            return held

    return PlainQuestion()
