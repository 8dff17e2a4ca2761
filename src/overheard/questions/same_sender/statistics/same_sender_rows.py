"""Summary rows of all compared pairs of targets."""

from collections.abc import Sequence

from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import group_with_controls, pair_rows
from overheard.findings.finding import Finding
from overheard.findings.score_row import ScoreRow
from overheard.questions.same_sender.statistics.sender_pairs import collect_sender_pairs


def same_sender_rows(findings: Sequence[Finding], seed: Seed) -> tuple[ScoreRow, ...]:
    """Return the rows of `findings.controlled_findings.pair_rows` for each attack and arm."""
    return tuple(
        row
        for comparison in group_with_controls(findings)
        for row in pair_rows(
            comparison,
            collect_sender_pairs(comparison.planned),
            collect_sender_pairs(comparison.control),
            comparison.interval_seed(seed),
        )
    )
