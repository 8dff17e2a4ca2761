"""Reads the ground truth of a run with all kinds of facts that questions read."""

from pathlib import Path

from overheard.archive import truth
from overheard.core.truth import GroundTruth
from overheard.plans.registries import true_fact_kinds


def read_truth(folder: Path) -> GroundTruth:
    """Read the ground truth of a run."""
    return truth.read_truth(folder, true_fact_kinds())
