"""The results of a case as Markdown."""

from collections.abc import Iterable, Sequence

from _identity.bars import PRECISION, Check, reduction
from _identity.calibration import calibration, calibration_error
from _identity.measured import AttackedArm, CaseAudit
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.plans.plan import UNDEFENDED
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.same_sender.claim import SameSender
from overheard.statistics.estimate import Estimate
from overheard_studies.deanonymization.frontier import TradeOffPoint, undominated_arms

NO_FIGURE = "–"

LEGEND = (
    "Average precision of each attack, with its change in brackets. Bold: not dominated, by "
    "the strongest attack on each arm."
)

VERDICTS = {True: "reached", False: "MISSED"}


def page(measured: CaseAudit, labels: Estimate | None, seconds: float) -> str:
    """Return all tables of a case.

    Args:
        measured: the case.
        labels: accuracy by label counts alone; None if labels are words.
        seconds: duration, without reused results.

    """
    plan = measured.plan
    parts = [
        f"### {plan.title}",
        f"{plan.data.clients} clients, {plan.training.rounds} rounds, seeds "
        f"{', '.join(map(str, plan.seeds))}; {seconds:.0f} s. Accuracy of the model without "
        f"defenses: {measured.accuracy(UNDEFENDED):.3f}.",
        *([f"By true label counts alone: top-1 {format_value(labels)}."] if labels else []),
    ]
    if len(plan.arms) > 1:
        parts += [_frontier(measured)]
    else:
        parts += [
            _identities(measured),
            _open_world(measured),
            _links(measured),
            _attributes(measured),
        ]
    refused = {
        f"{refusal.cell.attack}: {'; '.join(refusal.missing)}"
        for refusal in measured.audit.refusals
    }
    parts += [f"Not measured: {one}" for one in sorted(refused)]
    return "\n\n".join(part for part in parts if part)


def checks_table(checks: Sequence[tuple[str, Check]]) -> str:
    """Return a table of all checks by case."""
    return make_table(
        ("case", "figure", "measured", "bar", ""),
        [
            (
                case,
                one.figure,
                format_value(one.value),
                one.bar,
                "reached" if one.is_reached else "MISSED",
            )
            for case, one in checks
        ],
    )


def format_value(value: Estimate) -> str:
    """Format a value with its interval."""
    if value.mean != value.mean:
        return NO_FIGURE
    if value.low is None or value.high is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _identities(measured: CaseAudit) -> str:
    scores = ("top1", "top5", "equal_error_rate", "gain_over_published")
    lines = []
    for place in _places(measured, Identity):
        row = measured.row(place, PRECISION)
        if row is not None:
            lines.append(
                (
                    place.description,
                    format_value(row.value),
                    _number(row.blind),
                    _number(row.references.get(CONTROL_NAME)),
                    _null(measured.row(place, "control_excess")),
                    *(_format_row(measured.row(place, score)) for score in scores),
                )
            )
    heads = ("attack", "average precision", "chance", "IID control", "its null", *scores)
    return make_table(heads, lines)


def _open_world(measured: CaseAudit) -> str:
    lines = []
    for place in _places(measured, Identity):
        row = measured.row(place, "dir_at_1_percent")
        if row is not None:
            bins = calibration(measured.findings(place))
            lines.append(
                (
                    place.description,
                    format_value(row.value),
                    _number(row.references.get(CONTROL_NAME)),
                    _format_row(measured.row(place, "unseen")),
                    f"{calibration_error(bins):.3f}" if bins else NO_FIGURE,
                    "; ".join(f"{b.stated:.2f} → {b.true:.2f} ({b.targets})" for b in bins),
                )
            )
    return make_table(
        (
            "attack",
            "identification rate at 1 % false positives",
            "IID control",
            "Brier score of `unseen`",
            "calibration error",
            "stated → true rate of unknown users (targets)",
        ),
        lines,
    )


def _links(measured: CaseAudit) -> str:
    lines = [
        (
            place.description,
            format_value(row.value),
            _number(row.references.get(CONTROL_NAME)),
            _format_row(error),
        )
        for place in _places(measured, SameSender)
        if (row := measured.row(place, "matching_auc")) is not None
        for error in (measured.row(place, "equal_error_rate"),)
    ]
    heads = ("attack", "AUC of pairs of updates", "IID control", "equal error rate")
    return make_table(heads, lines)


def _attributes(measured: CaseAudit) -> str:
    scores = ("accuracy", "balanced_accuracy")
    lines = [
        (
            place.description,
            *(
                cell
                for row in (measured.row(place, score) for score in scores)
                if row is not None
                for cell in (
                    format_value(row.value),
                    _number(row.blind),
                    _number(row.references.get(CONTROL_NAME)),
                )
            ),
        )
        for place in _places(measured, Attribute)
        if measured.row(place, scores[0]) is not None
    ]
    heads = [f"{score}{what}" for score in scores for what in ("", ", blind", ", IID control")]
    return make_table(("attack", *heads), lines)


def _frontier(measured: CaseAudit) -> str:
    places = _places(measured, Identity)
    points, lines = [], []
    for arm in (one.name for one in measured.plan.arms):
        utility, cells = measured.utility(arm), []
        for place in (one.behind(arm) for one in places):
            row, lost = measured.row(place, PRECISION), reduction(measured, place)
            if row is not None and lost is not None:
                points.append(TradeOffPoint(arm, row.value.mean, utility))
                cells.append(f"{row.value.mean:.3f} ({0.0 - 100 * lost:+.0f} %)")
            else:
                cells.append(NO_FIGURE)
        lines.append((arm, f"{utility:.3f}", *cells))
    best = undominated_arms(points)
    marked = [(f"**{line[0]}**" if line[0] in best else line[0], *line[1:]) for line in lines]
    table = make_table(("arm", "utility", *(place.description for place in places)), marked)
    return f"{table}\n\n{LEGEND}"


def _places(
    measured: CaseAudit, question: type[Identity] | type[SameSender] | type[Attribute]
) -> list[AttackedArm]:
    return [
        AttackedArm(threat, attack)
        for threat in measured.plan.threats
        for attack in threat.attacks
        if attack.claim_type is question
    ]


def _format_row(row: ScoreRow | None) -> str:
    return NO_FIGURE if row is None else format_value(row.value)


def _number(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.3f}"


def _null(row: ScoreRow | None) -> str:
    if row is None:
        return NO_FIGURE
    low, high = (row.references[f"null {end} %"] for end in ("2.5", "97.5"))
    verdict = "inside" if low <= row.value.mean <= high else "outside"
    return f"{low:.3f} to {high:.3f}: {verdict}"


def make_table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown; empty without lines."""
    names, body = tuple(heads), [f"| {' | '.join(line)} |" for line in lines]
    if not body:
        return ""
    return "\n".join([f"| {' | '.join(names)} |", "|" + "---|" * len(names), *body])
