"""The report pages on label shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from overheard.drawing.claim_tables import MAX_TARGETS, UNCHECKED
from overheard.drawing.coverage import (
    LEVEL_TEXT,
    coverage_sentences,
    doubt_sentences,
    learning_curve_sentences,
)
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_sentences, bracketed_interval
from overheard.drawing.shares_chart import shares_chart, shares_legend
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.names import (
    make_printable,
    name_other_clients,
    name_targets,
    shorten_attack_names,
)
from overheard.findings.number_format import NO_NUMBER, SPACE, format_number, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    group_by_threat,
)
from overheard.findings.unchecked_claims import attacks_with_claims, select_claims, select_guess
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.pages.shares_figures import (
    shares_figures,
    stated_interval,
)

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
        whose = name_targets(one.targets, threat_result.observers)
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
    if row is None or row.best_uninformed is None:
        return ()
    measure = MEASURES[WORST_CLASS_ERROR]
    return (
        f"On the label with the largest error it is off by {measure.format(row.value.mean)}; "
        f"a guess is off by {measure.format(row.best_uninformed)}.",
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


def claims_figures(
    arm_results: Sequence[ArmResult], class_names: Sequence[str]
) -> tuple[ReportFigure, ...]:
    """Draw each client's claimed shares beside a guess, one figure per attack."""
    return tuple(
        _claims_figure(threat_result, attack, class_names)
        for arm in arm_results
        for threat_result in arm.threat_results
        for attack in attacks_with_claims(threat_result)
    )


def _claims_figure(
    threat_result: ThreatResult, attack: str, class_names: Sequence[str]
) -> ReportFigure:
    findings = select_claims(threat_result, attack)
    shown_findings = _furthest_from_guess(findings)
    guess = select_guess(findings[0])
    bars = (0.0,) * len(class_names) if guess is None else guess[1]
    top = max(
        max(*bars, *one.claimed.numbers, *(one.claimed.high or ())) for one in shown_findings
    )
    label = make_printable(threat_result.labels[attack])
    where = f"{make_printable(threat_result.arm)} · {threat_result.title} · {label}"
    names = {
        one.target: name_targets(one.targets, threat_result.observers) for one in shown_findings
    }
    return ReportFigure(
        where,
        _caption(findings, len(shown_findings)),
        shares_legend(
            "" if guess is None else "uninformed guess",
            f"{LEVEL_TEXT} interval of the claim"
            if any(one.claimed.low is not None for one in shown_findings)
            else "",
            f"Legend: {where}",
        ),
        tuple(
            Panel(
                names[one.target],
                shares_chart(
                    class_names,
                    bars,
                    one.claimed.numbers,
                    stated_interval(one),
                    top,
                    f"Guessed and inferred shares of {names[one.target]}: {where}",
                ),
            )
            for one in shown_findings
        ),
        ReportTable(
            f"Inferred share of each class in % (with {LEVEL_TEXT} interval): {where}",
            ("Client", *map(make_printable, class_names)),
            (
                *(
                    (
                        f"Uninformed guess: {make_printable(name)}",
                        *(format_number(100 * one) for one in shares),
                    )
                    for name, shares in findings[0].guesses.items()
                ),
                *((names[one.target], *_cells(one)) for one in shown_findings),
            ),
            1,
        ),
        True,
    )


def _caption(findings: Sequence[Finding], shown: int) -> str:
    guess = select_guess(findings[0])
    bar = "" if guess is None else f"Bar: uninformed guess ({make_printable(guess[0])}). "
    has_intervals = any(one.claimed.low is not None for one in findings)
    line = f" Line: its {LEVEL_TEXT} interval." if has_intervals else ""
    omission = (
        f" Shown: the {shown} of {len(findings)} clients whose inferred shares differ most "
        "from the guess. findings.csv has all clients."
        if shown < len(findings)
        else ""
    )
    main = f"{UNCHECKED}. {bar}Dot: inferred share.{line}{omission}"
    return " ".join((main, *doubt_sentences(findings), *learning_curve_sentences(findings)))


def _cells(finding: Finding) -> list[str]:
    bounds = stated_interval(finding)
    if bounds is None:
        return [format_number(100 * share) for share in finding.claimed.numbers]
    return [
        f"{format_number(100 * share)} ({format_number(100 * low)} to "
        f"{format_number(100 * high)})"
        for share, low, high in zip(
            finding.claimed.numbers, bounds.low, bounds.high, strict=True
        )
    ]


def _furthest_from_guess(findings: Sequence[Finding]) -> Sequence[Finding]:
    guess = select_guess(findings[0])
    if len(findings) <= MAX_TARGETS or guess is None:
        return findings[:MAX_TARGETS]
    distances = np.abs(
        np.array([one.claimed.numbers for one in findings]) - np.array(guess[1])
    ).sum(1)
    furthest = np.sort(np.argsort(-distances, kind="stable")[:MAX_TARGETS])
    return [findings[index] for index in furthest]


COLUMN_TITLES = (
    "Arm",
    "Attack",
    "True shares inside the interval",
    f"95{SPACE}% interval",
    "Mean width",
    "Doubted by the attack",
    "Number of examples wrong by a factor of",
    "True numbers of examples inside the interval",
)


def interval_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Describe the coverage and distrust of all intervals, and the best size estimate."""
    names = shorten_attack_names(
        [attack_result.label for attack_result in threat_result.attack_results]
    )
    sizes = [
        attack_result
        for attack_result in threat_result.attack_results
        if "size_factor" in attack_result.rows_by_score
    ]
    return (
        *coverage_sentences(threat_result, "coverage", MEASURES["coverage"], "share"),
        *(
            sentence
            for attack_result in threat_result.attack_results
            for sentence in _doubt_sentences(attack_result, names[attack_result.label])
        ),
        *(
            _size_sentence(attack_result, names[attack_result.label], threat_result)
            for attack_result in sizes[:1]
        ),
    )


def _doubt_sentences(attack_result: AttackResult, name: str) -> tuple[str, ...]:
    row = attack_result.rows_by_score.get("doubted")
    if row is None or row.value.mean == 0:
        return ()
    return (
        f"Intervals not trusted here: {make_printable(name)} itself doubts "
        f"{format_percent(row.value.mean)} of its claims. The updates differ from those of its "
        "virtual clients: its own examples differ in kind from the clients’, or the updates "
        "carry noise that it does not know.",
    )


def _size_sentence(attack_result: AttackResult, name: str, threat_result: ThreatResult) -> str:
    row, coverage = (
        attack_result.rows_by_score["size_factor"],
        attack_result.rows_by_score.get("size_coverage"),
    )
    cohort = f"{name_other_clients(threat_result.observers)} together"
    target = cohort if threat_result.target_kind == "cohort" else "a client"
    if row.value.mean == 0:
        # Sizes are reported with the updates, so nothing was estimated.
        return (
            f"{make_printable(name)} need not estimate how many examples {target} trained on: "
            "this number is sent with the updates."
        )
    sentence = (
        f"{make_printable(name)} estimates how many examples {target} trained on. It is wrong "
        f"by a factor of {_format_factor(row.value.mean)} on average{_factor_interval(row)}."
    )
    if coverage is None:
        return sentence
    return (
        f"{sentence} Its {LEVEL_TEXT} intervals contain the true number in "
        f"{format_percent(coverage.value.mean)} of cases"
        f"{bracketed_interval(coverage, MEASURES['size_coverage'])}."
    )


def _factor_interval(row: ScoreRow) -> str:
    low, high = row.value.low, row.value.high
    if low is None or high is None:
        return ""
    return f" (95{SPACE}% interval {_format_factor(low)} to {_format_factor(high)})"


def _format_factor(doublings: float) -> str:
    return format_number(2**doublings)


def interval_tables(arm_results: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Tabulate coverage and width of intervals, one table per threat.

    Rows use the most observed rounds. Attacks without intervals are left out.
    """
    tables = []
    for threat, threat_results in group_by_threat(arm_results).items():
        rows = tuple(
            _table_row(threat_result.arm, attack_result)
            for threat_result in threat_results
            for attack_result in threat_result.attack_results
            if attack_result.rows_by_score.keys() & {"coverage", "size_factor"}
        )
        if rows:
            caption = f"How often {LEVEL_TEXT} intervals contain the true value: {threat}"
            tables.append(ReportTable(caption, COLUMN_TITLES, rows, 2))
    return tuple(tables)


def _table_row(arm: str, attack_result: AttackResult) -> tuple[str, ...]:
    coverage, size = (
        attack_result.rows_by_score.get("coverage"),
        attack_result.rows_by_score.get("size_factor"),
    )
    return (
        make_printable(arm),
        make_printable(attack_result.label),
        _format_value(coverage),
        NO_NUMBER if coverage is None else MEASURES["coverage"].format_interval(coverage.value),
        _format_value(attack_result.rows_by_score.get("width")),
        _format_value(attack_result.rows_by_score.get("doubted")),
        NO_NUMBER if size is None else _format_factor(size.value.mean),
        _format_value(attack_result.rows_by_score.get("size_coverage")),
    )


def _format_value(row: ScoreRow | None) -> str:
    return NO_NUMBER if row is None else MEASURES[row.score].format(row.value.mean)
