"""What follows from stored claims: verdicts, scores, epsilons, outcomes of policies, the page.

This is the one place that knows where the product keeps these results. Numbers are rounded to
six digits, so that the last bits of a processor's sums change nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

from matplotlib.figure import Figure

from overheard.auditing.judging.judge import judge
from overheard.cli.checking import EXIT_CODES
from overheard.core.errors import AuditError
from overheard.drawing import svg
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.audit import Audit
from overheard.findings.document import FindingsDocument
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.gate.judged_findings import CheckResult, judge_findings
from overheard.gate.policy import Policy, read_policy
from overheard.gate.reference_policy import policy_like
from overheard.gate.verdict import RuleVerdict
from overheard.report.exports import epsilon_row, findings_document
from overheard.report.page import render_page
from overheard.statistics.estimate import Estimate
from overheard.statistics.judgement import VERDICT_LEVEL
from tests.golden.rounding import Json, Table, rounded, table
from tests.golden.stored_audits import AttackedAudit

POLICIES = Path(__file__).parent / "policies"

TODAY = date(2026, 1, 15)
"""The day of all audits, and on which exceptions of policies must hold."""

LIKE_ITSELF = "like itself"
"""The policy that the audit makes as a reference, which it must keep."""

ROOM = 1.5
"""A p-value differs from the level of verdicts by this factor at least. Then a p-value that
changes by a few pairings changes no verdict, and a changed verdict has another cause."""

ADJUSTED = re.compile(r"p = ([\d.e+-]+) among")
"""A p-value that the gate adjusted for the number of tests, in its reason."""

UNASKED = "Questions not asked: "
"""Begins the line of a page that a new question would change in all audits without it. Golden
files leave it out; `tests/report/first_page` holds it."""

EMPTY_DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'


@dataclass(frozen=True)
class Judgement:
    """What follows from an audit: `values` by section, and the text of its page."""

    values: Mapping[str, Table]
    page: str


def judged_audit(attacked: AttackedAudit) -> Audit:
    """Return the audit that follows from claims and truths, of a fixed day and no versions."""
    return replace(
        judge(attacked.subject, attacked.runs), made_on=TODAY.isoformat(), versions={}
    )


def judgement_of(audit: Audit) -> Judgement:
    """Return what golden files hold of an audit."""
    arms, document = audit.arm_results, findings_document(audit)
    values = {
        "verdicts": table(_verdicts(arms)),
        "scores": table(_scores(arms)),
        "epsilons": table(_epsilons(audit)),
        "policies": table(_policies(document)),
    }
    with _without_drawings():
        page = render_page(audit)
    text = "".join(
        line for line in text_of(page).splitlines(True) if not line.startswith(UNASKED)
    )
    return Judgement({name: rows for name, rows in values.items() if rows}, text)


def near_levels(judgement: Judgement) -> list[str]:
    """Return the p-values that are too near to the level of verdicts, with their places."""
    places = list[tuple[str, float]]()
    for name, row in judgement.values.get("verdicts", {}).items():
        assert isinstance(row, dict)
        for kind in ("p-value", "smallest p-value"):
            value = row[kind]
            if isinstance(value, float):
                places.append((f"{name}: {kind} {value:g}", value))
    for name, row in judgement.values.get("policies", {}).items():
        assert isinstance(row, dict)
        for adjusted in ADJUSTED.findall(str(row.get("why", ""))):
            places.append((f"{name}: adjusted p-value {adjusted}", float(adjusted)))
    return [
        place
        for place, value in places
        if VERDICT_LEVEL / ROOM <= value <= VERDICT_LEVEL * ROOM
    ]


def _verdicts(arms: Iterable[ArmResult]) -> Iterator[tuple[str, Json]]:
    for result in (one for arm in arms for one in arm.threat_results):
        judged = result.judgement
        yield (
            _threat(result),
            {
                "verdict": judged.verdict,
                "attack": judged.attack,
                "p-value": rounded(judged.p_value),
                "smallest p-value": rounded(judged.smallest_p_value),
                "gain": _interval(judged.gain),
                "margins": rounded(judged.margins),
                "below margin": judged.is_below_margin,
                "why": judged.why,
                "shared gains": rounded(judged.shared_gains),
                "attacks": [one.attack for one in result.attack_results],
                "unchecked claims": len(result.unchecked_claims),
                "refusals": len(result.refusals),
            },
        )


def _scores(arms: Iterable[ArmResult]) -> Iterator[tuple[str, Json]]:
    for result in (one for arm in arms for one in arm.threat_results):
        for row in result.rows:
            yield (
                f"{_threat(result)} | {_row(row)}",
                {
                    "value": _interval(row.value),
                    "gain": _interval(row.gain),
                    "guesses": rounded(row.uninformed),
                    "references": rounded(row.references),
                    "better": row.better,
                    "targets": row.targets,
                    "runs": row.seeds,
                },
            )


def _epsilons(audit: Audit) -> Iterator[tuple[str, Json]]:
    for result in epsilon_results(audit):
        entry = epsilon_row(result).model_dump(mode="json")
        observers = " and ".join(result.observers) or "models only"
        name = f"{entry.pop('arm')} | {entry.pop('defense')} | {observers}"
        del entry["observers"]
        yield name, rounded(entry)


def _policies(document: FindingsDocument) -> Iterator[tuple[str, Json]]:
    """Yield the exit code of each policy, and the outcome of each rule."""
    for path in sorted(POLICIES.glob("*.toml")):
        policy = _relevant(read_policy(path), document)
        if policy is not None:
            before = document if policy.needs_earlier_findings else None
            checked = judge_findings(policy, document, before, TODAY)
            yield from _outcomes(path.stem.replace("_", " "), checked)
    try:
        policy = policy_like(document, Path("findings.json")).policy
    except AuditError as error:
        yield LIKE_ITSELF, {"no policy": str(error)}
        return
    yield from _outcomes(LIKE_ITSELF, judge_findings(policy, document, None, TODAY))


def _relevant(policy: Policy, document: FindingsDocument) -> Policy | None:
    """Return a policy without rules on what the audit does not ask; None = no rule."""
    asked = {row.question for row in document.verdicts or ()}
    parts: dict[str, tuple[object, ...]] = {
        "verdicts": tuple(one for one in policy.verdicts if one.question in {None, *asked}),
        "leaks": tuple(one for one in policy.leaks if one.question in asked),
        "epsilons": policy.epsilons if document.epsilon else (),
        "costs": policy.costs,
    }
    names = {one.name for rules in parts.values() for one in rules}  # type: ignore[attr-defined]
    parts["exceptions"] = tuple(one for one in policy.exceptions if one.rule in names)
    return policy.model_copy(update=parts) if names else None


def _outcomes(policy: str, checked: CheckResult) -> Iterator[tuple[str, Json]]:
    yield (
        policy,
        {
            "exit code": EXIT_CODES[checked.status],
            "summary": checked.summary,
            "notes": list(checked.notes),
        },
    )
    for one in checked.verdicts:
        yield f"{policy} | {one.rule} | {one.subject} | {one.score}", _outcome(one)


def _outcome(one: RuleVerdict) -> Json:
    figure, accepted = one.figure, one.acceptance
    return {
        "status": one.status,
        "value": None if figure is None else rounded((figure.mean, figure.low, figure.high)),
        "limit": one.limit,
        "why": one.why,
        "attack": one.attack,
        "accepted": None if accepted is None else f"{accepted.status}: {accepted.reason}",
    }


def _threat(result: ThreatResult) -> str:
    observers = " and ".join(result.observers)
    return f"{result.arm} | {observers} | {result.question} | {result.target_kind}"


def _row(row: ScoreRow) -> str:
    return f"{row.attack} | rounds {' '.join(map(str, row.rounds))} | {row.score}"


def _interval(estimate: Estimate | None) -> Json:
    if estimate is None:
        return None
    return [
        *map(rounded, (estimate.mean, estimate.low, estimate.high)),
        estimate.basis,
        rounded(estimate.degrees),
    ]


@contextmanager
def _without_drawings() -> Iterator[None]:
    """Leave charts empty: each has a table of its values, and drawing takes long."""

    def save(figure: Figure, target: object, **options: object) -> None:
        target.write(EMPTY_DRAWING)  # type: ignore[attr-defined]

    with (
        patch.object(svg, "_draw", lambda draw, size: Figure()),
        patch.object(Figure, "savefig", save),
    ):
        yield


def text_of(page: str) -> str:
    """Return the text of a page, a line for each paragraph, heading and row of a table.

    >>> text_of("<h1>One</h1><table><tr><td>a</td><td>b</td></tr></table><style>x</style>")
    'One\\na | b\\n'
    """
    parser = _Text()
    parser.feed(page)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).split("\n"))
    return "".join(f"{line.removesuffix(' |')}\n" for line in lines if line)


class _Text(HTMLParser):
    """Collects the text of a page, with line ends where an element begins or ends a line."""

    LINES = frozenset(
        {"br", "caption", "dd", "div", "dt", "footer", "h1", "h2", "h3", "h4", "li", "p", "pre"}
        | {"summary", "title", "tr"}
    )
    CELLS = frozenset({"td", "th"})
    SKIPPED = frozenset({"style", "script", "svg", "form", "nav"})

    def __init__(self) -> None:
        super().__init__()
        self.parts = list[str]()
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._skipped += tag in self.SKIPPED
        if tag in self.LINES:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in self.SKIPPED
        if tag in self.CELLS:
            self.parts.append(" | ")
        if tag in self.LINES:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.parts.append(data)
