"""The report's table of estimates of a client's epsilon, by canary clients."""

from collections.abc import Sequence
from math import isfinite

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.epsilon.client_estimate import ClientEpsilonEstimate
from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.findings.names import make_printable, name_observers
from overheard.statistics.estimate import Estimate

NOTE = (
    "Some clients were canaries: they sent a random direction of the norm of the clip in place "
    "of an update. How far these directions show in what observers read, compared with "
    "directions that nobody sent, gives an estimate of the epsilon of all data of a client. It "
    "is no bound, and refutes no claim. It is what an observer learns who knows only the "
    "direction and the other clients; a claim covers every other way to look, too. The lower "
    "bound by thresholds holds with 95 % for each threshold; the best of them is chosen, so it "
    "is an estimate as well."
)


def client_estimate_blocks(lines: Sequence[EpsilonResult]) -> tuple[SectionBlock, ...]:
    """Return the table with its introduction; nothing without canary clients."""
    rows = tuple(_cells(line, one) for line in lines for one in line.estimates)
    if not rows:
        return ()
    table = ReportTable(
        "Epsilon of a client, estimated by canary clients",
        (
            "Arm",
            "Mechanism",
            "Observers",
            "What is read",
            "Estimate (95 % interval)",
            "Lower bound by thresholds",
            "Canaries",
            "Deviation of scores (1 = as assumed)",
        ),
        rows,
        4,
    )
    return (SectionBlock("Epsilon of a client, estimated", (NOTE,), (table,)),)


def estimate_text(epsilon: Estimate) -> str:
    """Return an estimate with its interval, such as "1.02 (0.48 to 1.64)"."""
    return (
        f"{_number(epsilon.mean)} ({_number(epsilon.low or 0.0)} to "
        f"{_number(epsilon.high or 0.0)})"
    )


def _cells(line: EpsilonResult, one: ClientEpsilonEstimate) -> tuple[str, ...]:
    mechanism, (low, high) = line.accounted.mechanism, one.deviation_range
    doubt = f": doubtful, outside of {low:.2f} to {high:.2f}" if one.is_doubted else ""
    return (
        make_printable(line.arm),
        f"{make_printable(line.defense.settings.partition('(')[0])}; a client "
        f"{mechanism.relation_words}, {one.rounds:,} rounds, delta {mechanism.delta:g}",
        name_observers(line.observers) if line.observers else "readers of the global models",
        f"{one.evidence}, {one.dimension:,} weights",
        estimate_text(one.epsilon),
        _number(one.lower),
        f"{one.canaries:,}",
        f"{one.deviation:.2f}{doubt}",
    )


def _number(epsilon: float) -> str:
    return f"{epsilon:.2f}" if isfinite(epsilon) else "above 1000"
