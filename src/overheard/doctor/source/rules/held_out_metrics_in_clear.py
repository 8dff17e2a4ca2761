"""Losses and metrics of held-out private data are sent in clear."""

from typing import final

from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule
from overheard.doctor.source.training import training_data


@final
class HeldOutMetricsInCode(SourceRule):
    """A claim on training records does not cover the records that a model is tested on."""

    name = "held-out-metrics-in-clear"
    severity = "theoretical"
    title = "exact metrics of held-out records leave the client"
    mend = "Test on public records, or state that the claim does not cover the held-out ones."
    reference = 'JAX Privacy, "Sharp edges", public and private metadata'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether clients send anything beside models."""
        return bool(app.sent)

    def examine(self, app: PrivateApp) -> Seen:
        """Look for figures that are computed from a loader of other data."""
        data = training_data(app)
        found = [
            one
            for one in app.sent
            if data.reads_data(one.flow) and data.shown_by(one.flow) is None
        ]
        if found:
            names = ", ".join(dict.fromkeys(f"'{one.key}'" for one in found if one.key))
            yield CodeFault(
                f"Computed from held-out records and sent without noise: {names or 'figures'}.",
                app.places(*(one.node for one in found)),
            )
