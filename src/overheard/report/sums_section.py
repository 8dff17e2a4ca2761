"""What sums over varying cohorts reveal of single clients, on the page."""

from collections.abc import Sequence

from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.findings.finding import ArmRun
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER
from overheard.participation.sums_reading import NOT_EXACT, SumsReading

READING = (
    "Behind secure aggregation the server reads sums over cohorts. Where cohorts vary, sums "
    "are equations about single clients. This table needs no attack: it follows from who took "
    "part in which round. Resolution is the share of a client's variance that the sums reveal, "
    "from 0 to 1, if the noise of a sum is as large as the spread of clients. The smallest "
    "group is the fewest clients of which a weighted sum can be had. No smaller one than the "
    f"lower bound can be separated. {NOT_EXACT}"
)


def sums_blocks(runs: Sequence[ArmRun]) -> tuple[SectionBlock, ...]:
    """Return a table with a row for each run with sums; () if there is none."""
    rows = tuple(
        (make_printable(run.arm), str(run.seed), *_cells(run.sums))
        for run in runs
        if run.sums is not None
    )
    if not rows:
        return ()
    table = ReportTable(
        "What the sums reveal of single clients",
        (
            "Arm",
            "Seed",
            "Sums",
            "Cohort",
            "Clients",
            "Resolution, mean",
            "Resolution, largest",
            "Median amplification",
            "Smallest group",
            "Example counts that follow",
        ),
        rows,
        2,
    )
    return (SectionBlock("Behind secure aggregation: what sums reveal", (READING,), (table,)),)


def _cells(sums: SumsReading) -> tuple[str, ...]:
    error = sums.amplification.get(sums.rounds)
    low, high = sums.group_at_least, sums.group_at_most
    return (
        f"{sums.rounds:,}",
        _range(sums.smallest_cohort, sums.largest_cohort),
        f"{sums.clients:,}",
        f"{sums.resolution:.2f}",
        f"{sums.largest_resolution:.2f}",
        NO_NUMBER if error is None else f"{error:.2g}",
        _range(low, high),
        NO_NUMBER if sums.counts_known is None else f"{sums.counts_known:,}",
    )


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
