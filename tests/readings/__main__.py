"""Prints what the product makes of every wrong reading: `python -m tests.readings [PAIRS]`."""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.readings.federations import SavedRun, federations
from tests.readings.outcomes import ALL_SPOILS, TOLERANCE, is_silent, judge, plain_reading, read
from tests.readings.spoils import Spoil


def pairs(most: int | None = None) -> list[tuple[SavedRun, Spoil]]:
    """Return the possible pairs, in an order that is drawn once and for all."""
    found = [
        (run, spoil) for spoil in ALL_SPOILS for run in federations() if spoil.is_possible(run)
    ]
    random.Random(0).shuffle(found)
    return found[:most]


def mend_restores(run: SavedRun, spoil: Spoil) -> bool:
    """Return whether the options of the mend restore the claims of the run."""
    assert spoil.mend is not None
    outcome = read(run, spoil, spoil.mend(run)).outcome
    return outcome.distance(plain_reading(run.name).outcome) <= TOLERANCE


def main(most: int | None) -> Iterator[str]:
    """Yield the lines of the table, and those of false alarms on runs that nobody spoiled."""
    total, by_spoil = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for run, spoil in pairs(most):
        outcome, _ = judge(run, spoil)
        restored = ""
        if outcome == "contradicts, right mend":
            restored = ", restored" if mend_restores(run, spoil) else ", not restored"
        total[outcome + restored] += 1
        by_spoil[spoil.name][outcome + restored] += 1
        if outcome.startswith("silently"):
            yield f"{outcome}: {spoil.name} ({run.name})"
    for name, counts in by_spoil.items():
        yield f"{name}: " + ", ".join(f"{count} {one}" for one, count in counts.most_common())
    yield f"in all {total.total()}: " + ", ".join(
        f"{count} {one}" for one, count in total.most_common()
    )
    alarms = [
        run.name
        for run in federations()
        if (proof := plain_reading(run.name).proof) is None or not is_silent(proof)
    ]
    yield f"false alarms: {len(alarms)} of {len(federations())} {', '.join(alarms)}"


if __name__ == "__main__":
    for line in main(int(sys.argv[1]) if len(sys.argv) > 1 else None):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
