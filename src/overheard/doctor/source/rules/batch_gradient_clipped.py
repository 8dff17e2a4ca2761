"""The gradient of a batch is clipped instead of that of each example."""

from typing import ClassVar, final

from overheard.doctor.criticism import Severity
from overheard.doctor.source.clipping import accumulation, clips, is_on_gradient, is_per_example
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class BatchGradientClipped(SourceRule):
    """Clipping the mean gradient of a batch bounds no example's part in it."""

    name: ClassVar[str] = "batch-gradient-clipped"
    severity: ClassVar[Severity] = "critical"
    title: ClassVar[str] = "the gradient of a batch is clipped, not that of each example"
    mend: ClassVar[str] = (
        "Clip the gradient of each example before the sum, as Opacus, TensorFlow Privacy and "
        "JAX Privacy do, and scale the noise to that clip."
    )
    reference: ClassVar[str] = (
        'APPFL/APPFL #349; JAX Privacy, "Sharp edges", sensitivity alignment'
    )

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the app adds noise by itself, and no library clips for it."""
        return bool(app.draws) and not app.has("dp_sgd")

    def examine(self, app: PrivateApp) -> Seen:
        """Look for clipped gradients of batches, and for the noise that relies on them."""
        found = clips(app)
        for clip in found:
            if not is_on_gradient(app, clip) or accumulation(app, clip) is not None:
                continue
            if is_per_example(app, clip.function):
                continue
            noise = [one for one in app.draws if one.function is clip.function]
            noise = [one for one in noise if one.is_on_gradient]
            if not noise and clip.kind == "gradient":
                clipped_elsewhere = {one.function for one in found if one is not clip}
                noise = [one for one in app.draws if one.function not in clipped_elsewhere]
            if noise:
                yield CodeFault(
                    "The gradient of a whole batch is clipped, and noise is added as if each "
                    "example were: one example can move the gradient without a bound on its "
                    "own part.",
                    app.places(clip.call, noise[0].call),
                )
