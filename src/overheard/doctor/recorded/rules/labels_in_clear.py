"""Exact histograms of private labels beside a claim that covers these data."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule
from overheard.doctor.recorded.rules.training_metrics_in_clear import hiding_mechanisms
from overheard.findings.metadata import find_label_histograms


@final
class LabelsInClear(RunRule):
    """Replies carry histograms of labels, and noise at the client should hide its data."""

    name = "labels-in-clear"
    severity = "critical"
    title = "histograms of private labels travel in clear"
    mend = "Send no counts by label, or add noise and count it in epsilon."
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), public and private metadata'
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Look for numbers in clear text that add up to a client's examples."""
        local = hiding_mechanisms(run)
        if not local or not run.is_recorded:
            return None
        return tuple(
            Fault(
                f"{len(one.messages)} messages of {len(one.senders)} clients carry a histogram "
                f"of {one.classes} labels, which {local[0].name} should hide.",
                f"metrics {one.name!r}",
                f"first in round {one.messages[0].round}, of {one.messages[0].sender}",
            )
            for one in find_label_histograms(run.messages)
        )
