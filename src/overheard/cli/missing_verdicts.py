"""Prints, before an audit runs, which verdicts it cannot give."""

from pathlib import Path

from rich.console import Console

from overheard.archive.reader import open_transcript
from overheard.archive.truth import has_truth
from overheard.cli.terminal import escaped_text
from overheard.core.parties import SERVER, is_shadow_device
from overheard.plans.plan import Plan
from overheard.plans.planned_verdicts import describe_missing_verdicts

NO_TRUTH = (
    "The recording has no ground truth (truth.json): claims cannot be checked, and no verdict "
    "is possible."
)


def print_missing_verdicts(plan: Plan, recording: Path | None, console: Console) -> None:
    """Print a sentence for each verdict that the plan's clients and seeds are too few for.

    Args:
        plan: the plan to audit.
        recording: folder of the recorded run; None = a simulation.
        console: where to print.

    Raises:
        TranscriptError: if the recording is damaged.

    """
    clients = None
    if recording is not None and not has_truth(recording):
        console.print(NO_TRUTH, soft_wrap=True)
        return
    if recording is not None:
        parties = open_transcript(recording).parties()
        clients = sum(one != SERVER and not is_shadow_device(one) for one in parties)
    for sentence in describe_missing_verdicts(plan, clients):
        console.print(escaped_text(sentence), soft_wrap=True)
