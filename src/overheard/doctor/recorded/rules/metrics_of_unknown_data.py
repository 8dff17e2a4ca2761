"""Exact measures in training replies whose names do not say which data they are of."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, RunEvidence, RunRule
from overheard.doctor.recorded.rules.training_metrics_in_clear import (
    find_measures,
    hiding_mechanisms,
    is_of_unknown_data,
)


@final
class MetricsOfUnknownData(RunRule):
    """Training replies carry measures that may be of training data.

    It is no alarm: the same name is used for held-out data, of which nothing is claimed.
    """

    name = "metrics-of-unknown-data"
    severity = "theoretical"
    title = "measures in training replies may be of private training data"
    mend = "Measure on held-out data and name it so, such as test_accuracy, or send no measure."
    reference = 'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), auxiliary information'

    def examine(self, run: RunEvidence) -> Examined:
        """Look at the metrics of each reply, if noise at the client should hide its data."""
        local = hiding_mechanisms(run)
        if not local or not run.is_recorded:
            return None
        return find_measures(
            run, is_of_unknown_data, "measures whose names do not say of which data they are"
        )
