"""The weights themselves are clipped instead of the update."""

import ast
import re
from typing import final

from overheard.doctor.source.clipping import Clip, clips, names_of
from overheard.doctor.source.code import Flow
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule

_WEIGHTS = re.compile(
    r"(\w+_)?(weights?|parameters|params|state_dict|to_torch_state_dict|to_numpy_ndarrays)"
)
_CHANGE = re.compile(r"\w*(update|delta|diff|grad|change|residual)\w*")


@final
class WeightsClipped(SourceRule):
    """Weights are no bounded change of a client, even if each is within bounds."""

    name = "weights-clipped"
    severity = "critical"
    title = "weights are clipped instead of the update"
    mend = (
        "Subtract the received model, clip the norm of this update as a whole, and add noise "
        "in proportion to that clip."
    )
    reference = (
        'KanishJebaMathewM/Truxify #3844; JAX Privacy, "Sharp edges", sensitivity alignment'
    )

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the app adds noise by itself."""
        return bool(app.draws)

    def examine(self, app: PrivateApp) -> Seen:
        """Look what is clipped where noise is added."""
        for clip in clips(app):
            noise = [one for one in app.draws if one.function is clip.function]
            if noise and clip.kind == "values" and _is_weights(app, clip):
                yield CodeFault(
                    "The weights of a model are clipped, and noise is added to them: the clip "
                    "does not bound what a client or a record changes.",
                    app.places(clip.call, noise[0].call),
                )


def _is_weights(app: PrivateApp, clip: Clip) -> bool:
    """Return whether weights are clipped from which nothing was subtracted."""
    if clip.target is None:
        return False
    flow = Flow(clip.target, app.code.frame(clip.function))
    found = False
    for one in app.code.sources(flow, derived=True):
        if isinstance(one.node, ast.BinOp | ast.AugAssign) and isinstance(one.node.op, ast.Sub):
            return False
        for text in names_of(one.node):
            if _CHANGE.fullmatch(text.lower()) or "sub" in text.lower():
                return False
            found = found or _WEIGHTS.fullmatch(text.lower()) is not None
    return found
