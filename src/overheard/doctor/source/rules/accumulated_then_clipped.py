"""Gradients of several batches are summed before they are clipped."""

from typing import final

from overheard.doctor.source.clipping import accumulation, clips, is_on_gradient
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class AccumulatedThenClipped(SourceRule):
    """Clipping a sum over batches bounds no example's part in it."""

    name = "accumulated-then-clipped"
    severity = "critical"
    title = "gradients are accumulated before they are clipped"
    mend = (
        "Clip the gradient of each example, sum the clipped ones over the batches, and add "
        "noise once to the sum."
    )
    reference = 'JAX Privacy, "Sharp edges", gradient accumulation'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the app adds noise by itself, and no library clips for it."""
        return bool(app.draws) and not app.has("dp_sgd")

    def examine(self, app: PrivateApp) -> Seen:
        """Look for clips that wait for several backward passes."""
        for clip in clips(app):
            waits = accumulation(app, clip) if is_on_gradient(app, clip) else None
            noise = [one for one in app.draws if one.function is clip.function]
            if waits is not None and noise:
                yield CodeFault(
                    "The gradients of several batches are summed, and their sum is clipped: "
                    "the clip bounds no example's part in it.",
                    app.places(clip.call, waits, noise[0].call),
                )
