"""The report pages on label shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.coverage import LEVEL_TEXT
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.audit import Audit
from overheard.findings.names import make_printable, name_target, shorten_attack_names
from overheard.findings.number_format import SPACE, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult
from overheard.findings.unchecked_claims import select_guess
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.pages.claims_figures import claims_figures
from overheard.questions.label_shares.pages.intervals import interval_sentences, interval_tables
from overheard.questions.label_shares.pages.shares_figures import shares_figures

ABSENCE_SCORES = frozenset({"null_precision", "null_recall", "null_exact"})
"""Scores of attacks that claim which classes a target does not hold."""

DECAF = "decaf"


WORST_CLASS_ERROR = "linf"
"""The largest error of a label share."""

PANEL_WIDTH = 214
"""Width of one client's drawing in pixels."""


@final
@dataclass(frozen=True)
class LabelSharesPages(QuestionPages):
    """Report pages on label shares: inferred against true ones, and interval coverage."""

    name = "label_shares"
    plain_question = (
        "What the data consist of: the share of each class, such as of each diagnosis"
    )

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State how much of the data is assigned to the wrong class."""
        what = f"{whose} label shares"
        value = self.question.measure(row.score).format(row.value.mean)
        return Statement(
            what,
            f"infers {what}, and assigns {value} of the data to the wrong class",
            f"wrong about the class of {value} of the data",
        )

    def guess_statement(self, value: str) -> str:
        """State how much of the data a guess assigns to the wrong class."""
        return f"wrong about {value}"

    def intro(self) -> str:
        """Explain the headline score."""
        return "For label shares: the part of the data that is assigned to the wrong class."

    def unchecked_example(self, threat_result: ThreatResult, classes: Sequence[str]) -> str:
        """State the claimed share that is farthest from a guess."""
        shares = [
            (abs(claimed - guessed), one, label, claimed, guessed)
            for one in threat_result.unchecked_claims
            if (guess := select_guess(one)) and len(guess[1]) == len(one.claimed.numbers)
            for label, (claimed, guessed) in enumerate(
                zip(one.claimed.numbers, guess[1], strict=True)
            )
        ]
        if not shares:
            return ""
        _, one, label, claimed, guessed = max(shares, key=lambda share: share[0])
        attack = make_printable(threat_result.labels[one.cell.attack].partition("(")[0])
        name = make_printable(classes[label]) if label < len(classes) else str(label)
        whose = name_target(one.target, threat_result.observers)
        return (
            f"For example, the attack {attack} states that {format_percent(claimed)} of the "
            f"data of {whose} are of class “{name}”. A guess that never sees the run says "
            f"{format_percent(guessed)}."
        )

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe the worst class, the target read best, absent classes and intervals."""
        attack_result = threat_result.attack_results[0]
        row = attack_result.headline_row
        return (
            *_worst_class_sentences(attack_result),
            *best_target_sentences(threat_result, row, self.question.measure(row.score)),
            *absence_sentences(threat_result),
            *interval_sentences(threat_result),
        )

    def claim_blocks(
        self, audit: Audit, arm_results: Sequence[ArmResult]
    ) -> tuple[SectionBlock, ...]:
        """Show claimed shares without ground truth beside an uninformed guess."""
        figures = claims_figures(arm_results, audit.class_names)
        if not figures:
            return ()
        note = (
            f"An interval contains the true share with a probability of {LEVEL_TEXT}. It was "
            "calibrated on clients that the attacker simulated. It is valid only if the real "
            "clients resemble them."
        )
        return (SectionBlock(paragraphs=(note,), figures=figures, panel_width=PANEL_WIDTH),)

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show true and inferred shares of each client, and the coverage of intervals."""
        figures, tables = (
            shares_figures(arm_results, audit.class_names),
            interval_tables(arm_results),
        )
        has_claims = any(
            threat_result.unchecked_claims
            for arm in arm_results
            for threat_result in arm.threat_results
        )
        restriction = " for clients whose true shares are known" if has_claims else ""
        blocks = [
            SectionBlock(figures=figures, panel_width=PANEL_WIDTH)
            if figures
            else SectionBlock(paragraphs=(f"No label shares were inferred{restriction}.",))
        ]
        if tables:
            blocks.append(SectionBlock(_TRUST_TITLE, (_TRUST_NOTE,), tables))
        title = "True and inferred label shares of each client"
        return (Section("shares", title, "True and inferred", tuple(blocks)),)

    def terms(self) -> tuple[Term, ...]:
        """Define both errors of shares, and intervals."""
        return _TERMS


def _worst_class_sentences(attack_result: AttackResult) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get(WORST_CLASS_ERROR)
    if row is None or row.blind is None:
        return ()
    measure = MEASURES[WORST_CLASS_ERROR]
    return (
        f"On the label with the largest error it is off by {measure.format(row.value.mean)}; "
        f"a guess is off by {measure.format(row.blind)}.",
    )


_TRUST_TITLE = "Reliability of the stated intervals"

_TRUST_NOTE = (
    "Some attacks state an interval for each share. It should contain the true share with a "
    f"probability of {LEVEL_TEXT}. If the intervals contain far fewer true shares, the attack "
    "is overconfident: its assumptions about the clients, their training or its own examples "
    "are wrong. Some attacks notice this without the truth, and doubt their own intervals."
)

_TERMS = (
    Term(
        MEASURES[WORST_CLASS_ERROR].title,
        "An observer estimates the share of each label in a client’s data. The figure is the "
        "largest error of any single share, in percentage points (score linf). No other label "
        "has a larger error.",
    ),
    Term(
        MEASURES["l1"].title,
        "The fraction of a client’s data that would have to change class to make the estimate "
        "correct: half the sum of the absolute errors of all shares (half the score l1, the "
        f"total variation distance). 0{SPACE}% is a perfect estimate.",
    ),
    Term(
        f"{LEVEL_TEXT} interval of an attack",
        f"The interval that should contain a share with a probability of {LEVEL_TEXT}, "
        "according to "
        "the attack. The score coverage is the fraction of true shares inside their intervals. "
        f"It is close to {LEVEL_TEXT} if the attacker’s assumptions about the clients are "
        "correct.",
    ),
)


def absence_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe how well each attack that claims absence does; compare with published claims."""
    claiming = [
        attack_result
        for attack_result in threat_result.attack_results
        if attack_result.rows_by_score.keys() >= ABSENCE_SCORES
    ]
    units = "runs" if threat_result.target_kind == "cohort" else "clients"
    names = shorten_attack_names(
        [attack_result.label for attack_result in threat_result.attack_results]
    )
    return tuple(
        _absence_sentence(attack_result, names[attack_result.label], units)
        for attack_result in claiming
    )


def _absence_sentence(attack_result: AttackResult, name: str, units: str) -> str:
    precision, recall, exact = (
        format_percent(attack_result.rows_by_score[name].value.mean)
        for name in ("null_precision", "null_recall", "null_exact")
    )
    sentences = (
        f"Of the classes that {make_printable(name)} claims to be absent, {precision} are "
        "absent. "
        f"It finds {recall} of all absent classes, and exactly the right set for {exact} of "
        f"{units}."
    )
    # Dai et al. (Decaf, arXiv 2405.15316), abstract: "100% accuracy" on absent classes.
    is_decaf = any(finding.cell.part == DECAF for finding in attack_result.findings)
    if is_decaf and attack_result.rows_by_score["null_exact"].value.mean < 1:
        return f"{sentences} The published accuracy is 100 %; this audit does not reproduce it."
    return sentences
