"""Figures of claimed shares without ground truth, compared with an uninformed guess."""

from collections.abc import Sequence

import numpy as np

from overheard.drawing.claim_tables import MAX_TARGETS, UNCHECKED
from overheard.drawing.coverage import (
    LEVEL_TEXT,
    doubt_sentences,
    learning_curve_sentences,
)
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.drawing.shares_chart import shares_chart, shares_legend
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, name_target
from overheard.findings.number_format import format_number
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.findings.unchecked_claims import attacks_with_claims, select_claims, select_guess
from overheard.questions.label_shares.pages.shares_figures import stated_interval


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
        one.target: name_target(one.target, threat_result.observers) for one in shown_findings
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
