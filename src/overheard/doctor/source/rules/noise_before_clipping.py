"""Noise is added before the clip that it is scaled to."""

from typing import final

from overheard.doctor.source.clipping import Clip, clips, is_on_gradient
from overheard.doctor.source.code import Flow
from overheard.doctor.source.privacy import Draw, PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class NoiseBeforeClipping(SourceRule):
    """Noise on something without a bound hides nothing of known size."""

    name = "noise-before-clipping"
    severity = "critical"
    title = "noise is added before clipping"
    mend = "Clip first, then add noise in proportion to the clip."
    reference = 'JAX Privacy, "Sharp edges", sensitivity alignment'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the app adds noise by itself."""
        return bool(app.draws)

    def examine(self, app: PrivateApp) -> Seen:
        """Look at the order of noise and clip in each function."""
        found = clips(app)
        clipping = {one.function for one in found}
        for draw in app.draws:
            line = draw.call.lineno
            before = any(
                one.function is draw.function and one.call.lineno <= line for one in found
            ) or any(
                site.function is draw.function
                and site.call.lineno <= line
                and app.code.target(site.call.func, site.function) in clipping
                for site in app.code.calls
            )
            if before:
                continue
            for clip in found:
                if clip.function is draw.function and _is_of(app, draw, clip):
                    yield CodeFault(
                        "Noise is added to what is clipped only afterwards: before, nothing "
                        "bounds what the noise has to hide.",
                        app.places(draw.call, clip.call),
                    )
                    break


def _is_of(app: PrivateApp, draw: Draw, clip: Clip) -> bool:
    """Return whether a clip is applied to what noise was added to."""
    if draw.is_on_gradient and is_on_gradient(app, clip):
        return True
    if clip.target is None:
        return False
    flow = Flow(clip.target, app.code.frame(clip.function))
    return any(one.node is draw.call for one in app.code.sources(flow, derived=True))
