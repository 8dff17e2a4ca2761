"""The interface of a question, such as which user sent an update."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Generic, Literal, TypeVar, final

from overheard.core.claims import Claim
from overheard.core.knowledge import KnownFact
from overheard.core.parties import Party
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth, TrueFact
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.names import make_printable
from overheard.findings.number_format import Measure
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_verdict import TargetKind
from overheard.statistics.estimate import Estimate
from overheard.statistics.permutation_test import RePairedFits, no_test

C = TypeVar("C", bound=Claim)

OF_COHORT = "_of_cohort"
"""End of the names of margins for claims about the cohort."""

Control = Literal["exchange", "permutation"]
"""A control run beside the planned one, in which there is nothing to find.

"exchange": the same clients replace as many examples in the same rounds, without a shift.
"permutation": examples are permuted at random among all clients.
"""


class Question(ABC, Generic[C]):
    """A question that an attack answers about a target.

    A concrete question is a final frozen dataclass without fields, in the folder of its name.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Source of its scores: authors, year, section or equation."""
    control: ClassVar[Control | None] = None
    """The control that its attacks are also run on; None = none."""
    is_about_users: ClassVar[bool] = False
    """Whether it is about the user behind a client; a cohort is then no valid target."""
    reads: ClassVar[tuple[type[TrueFact], ...]] = ()
    """The kinds of true facts (`core.true_facts`) that its scorer reads."""
    gives: ClassVar[tuple[type[KnownFact], ...]] = ()
    """The kinds of known facts (`core.known_facts`) that its attackers get."""
    needs_all_rounds: ClassVar[bool] = False
    """Whether the question needs all rounds; attacks are then not run on single rounds."""
    needs_redrawn_partitions: ClassVar[bool] = False
    """Whether its claims are compared with partitions drawn anew, in simulations."""
    needs_classes: ClassVar[bool] = False
    """Whether it is about classes, so that it has no answer for data without classes."""
    margins: ClassVar[Mapping[str, float]] = MappingProxyType({})
    """By score, the smallest gain that matters, unless the plan states another one. The gains
    in all of these scores must be smaller, to show that there is no leak above the margin. A
    name that ends in `_of_cohort` is for claims about the cohort."""
    advice_without_pairings: ClassVar[str] = "no number of clients or seeds is enough"
    """What to do if no number of clients or runs allows a verdict."""
    measures: ClassVar[Mapping[str, Measure]] = MappingProxyType({})
    """How to display its scores, by the score's name."""

    @property
    @abstractmethod
    def scorer(self) -> Scorer[C]:
        """The scorer that compares claims with the ground truth."""

    @property
    def headline(self) -> str:
        """The name of the score that one-sentence summaries state."""
        return self.scorer.headline

    @final
    def measure(self, score: str) -> Measure:
        """Return how to display a score; by default its name, without unit or factor."""
        return self.measures.get(score, Measure(make_printable(score), "", 1.0))

    def make_true_facts(
        self, dataset: Dataset, partition: DataPartition
    ) -> tuple[TrueFact, ...]:
        """Return the true facts that only this question knows how to make of the data.

        They are of the kinds in `reads`. Scorers read them of a simulated run; a recording
        states them in its truth.json. By default there are none: those of `core.true_facts`
        are drawn with the data.

        Args:
            dataset: the audited data set.
            partition: who holds which examples of it, as the plan says.

        """
        return ()

    def make_known_facts(
        self, dataset: Dataset, partition: DataPartition, seed: Seed
    ) -> tuple[KnownFact, ...]:
        """Return the known facts that only this question knows how to make of the data.

        They are of the kinds in `gives`. Attackers know them without having seen the run. By
        default there are none: those of `core.known_facts` are drawn with the data.

        Args:
            dataset: the audited data set.
            partition: who holds which examples of it, as the plan says.
            seed: seed of random draws.

        """
        return ()

    def is_averaged(self, finding: Finding) -> bool:
        """Return whether a finding's scores count in means over targets and runs.

        Scores of a control do not count by default; see `references`.
        """
        return not finding.cell.is_control

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """Return references to show with the mean of a score, besides the score's own.

        Args:
            score: name of the score.
            planned: the findings that the mean is over, one or more.
            control: findings of the control in the same cell.

        """
        return {}

    def interval_over_records(
        self, score: str, value: float, findings: Sequence[Finding]
    ) -> Estimate | None:
        """Return a score's mean `value` with its interval over records; None = there is none.

        The interval of the mean over targets and runs is made at least as wide. So it has a
        width where all targets have the same score. By default there is none.
        """
        return None

    def values_by_target(self, finding: Finding, score: str) -> Mapping[Party, Sequence[float]]:
        """Return the values that a joint claim's score is the mean of, by target.

        The interval of the score is then over targets and runs, as it is where each target has
        a claim of its own. Empty = the score is not divided, as by default.
        """
        return {}

    def redrawn_fits(
        self, claim: C, truth: GroundTruth, target: Party, rounds: Collection[int]
    ) -> tuple[float, ...]:
        """Return how well a claim fits the truth, then what might as well have been the truth.

        That is the truth of each partition drawn anew, or of every client in order. Larger =
        better. Empty if there is none, or the question needs none.
        """
        return ()

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Return how well claims fit their targets, and what might as well have been the truth.

        The test of a verdict compares the two. All attacks share the same pairings. By default
        there is no test.

        Args:
            findings: the findings of all attacks of one threat, each over its most rounds,
                with controls.
            runs: the runs of the arm, with controls.
            seed: seed of random pairings.

        Returns:
            The fits, with a column for each attack in the order of the findings.

        """
        return no_test("the question states no pairings to compare its claims with")

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return how many pairings a verdict can compare with, by what is planned.

        The smallest p-value follows from it before anything is run. By default there is one
        pairing, the true one, so that no verdict is possible.
        """
        return 1

    @final
    def margins_for(
        self, about: TargetKind, stated: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Return the margin of each score; `stated` ones replace those of the question."""
        margins = {**self.margins, **{k: v for k, v in stated.items() if k in self.margins}}
        of_cohort = {
            score.removesuffix(OF_COHORT): margin
            for score, margin in margins.items()
            if score.endswith(OF_COHORT)
        }
        of_clients = {
            score: margin for score, margin in margins.items() if not score.endswith(OF_COHORT)
        }
        return {**of_clients, **of_cohort} if about == "cohort" else of_clients

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return summary rows of scores that are computed from many findings together.

        Args:
            findings: all findings on the question, including controls.
            seed: seed of the bootstrap draws for intervals.

        """
        return ()


def default_question(scorer: Scorer[C]) -> Question[C]:
    """Return a question for a scorer that has none: no control, no extra rows, no page."""
    wrapped = scorer

    @final
    @dataclass(frozen=True)
    class PlainQuestion(Question[C]):
        """A question defined by its scorer alone."""

        name = wrapped.name
        source = wrapped.source

        @property
        def scorer(self) -> Scorer[C]:
            """The scorer that compares claims with the ground truth."""
            return wrapped

    return PlainQuestion()


def unknown_question(label: str) -> Question[Claim]:
    """Return a question by its name alone, to show findings without the package of it."""

    @final
    @dataclass(frozen=True)
    class UnknownQuestion(Question[Claim]):
        """A question of which nothing but the name is known."""

        name = label
        source = ""

        @property
        def scorer(self) -> Scorer[Claim]:
            """Nothing: no claim can be scored."""
            raise LookupError(f"install the package that has the question {label}")

        @property
        def headline(self) -> str:
            """What stands for the name of the main score."""
            return "main score"

    return UnknownQuestion()
