"""Tells what was measured of a case, in Markdown."""

from collections.abc import Iterable, Sequence

from _identity.bars import PRECISION, Check, fall
from _identity.calibration import calibration, calibration_error
from _identity.measured import Measured, Place
from overheard.findings.row import CONTROL, Row
from overheard.papers.deanonymization.frontier import Point, best_arms
from overheard.plans.plan import UNDEFENDED
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.same_sender.claim import SameSender
from overheard.statistics.estimate import Estimate

NO_FIGURE = "–"

LEGEND = (
    "Average precision of each attack, in brackets its change. Bold: no other arm beats these "
    "both ways, by the strongest attack upon each."
)

VERDICTS = {True: "reached", False: "MISSED"}


def page(measured: Measured, labels: Estimate | None, seconds: float) -> str:
    """All tables of a case.

    Args:
        measured: the case.
        labels: what label counts alone tell; None = of words nothing is said.
        seconds: that it took, as far as it was not there before.

    """
    plan = measured.plan
    parts = [
        f"### {plan.title}",
        f"{plan.data.clients} clients, {plan.training.rounds} rounds, seeds "
        f"{', '.join(map(str, plan.seeds))}; {seconds:.0f} s. Accuracy of the model without "
        f"defenses {measured.worth(UNDEFENDED):.3f}.",
        *([f"By true label counts alone: top-1 {told(labels)}."] if labels else []),
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
    lacks = {
        f"{refusal.cell.attack}: {'; '.join(refusal.missing)}"
        for refusal in measured.audit.refusals
    }
    parts += [f"Not measured: {one}" for one in sorted(lacks)]
    return "\n\n".join(part for part in parts if part)


def checks_table(checks: Sequence[tuple[str, Check]]) -> str:
    """All bars, case by case."""
    return _table(
        ("case", "figure", "measured", "bar", ""),
        [
            (
                case,
                one.figure,
                told(one.value),
                one.bar,
                "reached" if one.is_reached else "MISSED",
            )
            for case, one in checks
        ],
    )


def told(value: Estimate) -> str:
    """A figure with its interval."""
    if value.mean != value.mean:
        return NO_FIGURE
    if value.low is None or value.high is None:
        return f"{value.mean:.3f}"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _identities(measured: Measured) -> str:
    scores = ("top1", "top5", "equal_error_rate", "gain_over_published")
    lines = []
    for place in _places(measured, Identity):
        row = measured.row(place, PRECISION)
        if row is not None:
            lines.append(
                (
                    place.told,
                    told(row.value),
                    _number(row.blind),
                    _number(row.references.get(CONTROL)),
                    _null(measured.row(place, "control_excess")),
                    *(_told(measured.row(place, score)) for score in scores),
                )
            )
    heads = ("attack", "average precision", "chance", "IID control", "its null", *scores)
    return _table(heads, lines)


def _open_world(measured: Measured) -> str:
    lines = []
    for place in _places(measured, Identity):
        row = measured.row(place, "dir_at_1_percent")
        if row is not None:
            bins = calibration(measured.findings(place))
            lines.append(
                (
                    place.told,
                    told(row.value),
                    _number(row.references.get(CONTROL)),
                    _told(measured.row(place, "unseen")),
                    f"{calibration_error(bins):.3f}" if bins else NO_FIGURE,
                    "; ".join(f"{b.stated:.2f} → {b.true:.2f} ({b.targets})" for b in bins),
                )
            )
    return _table(
        (
            "attack",
            "known and named right at 1 % false alarms",
            "IID control",
            "Brier score of `unseen`",
            "calibration error",
            "stated → true share of strangers (targets)",
        ),
        lines,
    )


def _links(measured: Measured) -> str:
    lines = [
        (place.told, told(row.value), _number(row.references.get(CONTROL)), _told(error))
        for place in _places(measured, SameSender)
        if (row := measured.row(place, "matching_auc")) is not None
        for error in (measured.row(place, "equal_error_rate"),)
    ]
    heads = ("attack", "AUC of pairs of updates", "IID control", "equal error rate")
    return _table(heads, lines)


def _attributes(measured: Measured) -> str:
    scores = ("accuracy", "balanced_accuracy")
    lines = [
        (
            place.told,
            *(
                cell
                for row in (measured.row(place, score) for score in scores)
                if row is not None
                for cell in (
                    told(row.value),
                    _number(row.blind),
                    _number(row.references.get(CONTROL)),
                )
            ),
        )
        for place in _places(measured, Attribute)
        if measured.row(place, scores[0]) is not None
    ]
    heads = [f"{score}{what}" for score in scores for what in ("", ", blind", ", IID control")]
    return _table(("attack", *heads), lines)


def _frontier(measured: Measured) -> str:
    places = _places(measured, Identity)
    points, lines = [], []
    for arm in (one.name for one in measured.plan.arms):
        kept, cells = measured.utility(arm), []
        for place in (one.behind(arm) for one in places):
            row, gone = measured.row(place, PRECISION), fall(measured, place)
            if row is not None and gone is not None:
                points.append(Point(arm, row.value.mean, kept))
                cells.append(f"{row.value.mean:.3f} ({0.0 - 100 * gone:+.0f} %)")
            else:
                cells.append(NO_FIGURE)
        lines.append((arm, f"{kept:.3f}", *cells))
    best = best_arms(points)
    marked = [(f"**{line[0]}**" if line[0] in best else line[0], *line[1:]) for line in lines]
    table = _table(("arm", "utility", *(place.told for place in places)), marked)
    return f"{table}\n\n{LEGEND}"


def _places(
    measured: Measured, question: type[Identity] | type[SameSender] | type[Attribute]
) -> list[Place]:
    return [
        Place(threat, attack)
        for threat in measured.plan.threats
        for attack in threat.attacks
        if attack.answers is question
    ]


def _told(row: Row | None) -> str:
    return NO_FIGURE if row is None else told(row.value)


def _number(value: float | None) -> str:
    return NO_FIGURE if value is None else f"{value:.3f}"


def _null(row: Row | None) -> str:
    if row is None:
        return NO_FIGURE
    low, high = (row.references[f"null {end} %"] for end in ("2.5", "97.5"))
    verdict = "inside" if low <= row.value.mean <= high else "outside"
    return f"{low:.3f} to {high:.3f}: {verdict}"


def _table(heads: Iterable[str], lines: Sequence[Iterable[str]]) -> str:
    """A table; nothing where it has no lines."""
    if not lines:
        return ""
    names = tuple(heads)
    body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([f"| {' | '.join(names)} |", "|" + "---|" * len(names), *body])
