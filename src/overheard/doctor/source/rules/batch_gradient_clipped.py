"""The gradient of a batch is clipped instead of that of each example."""

import ast
from typing import final

from overheard.doctor.source.clipping import (
    accumulation,
    clips,
    is_on_gradient,
    is_per_example,
)
from overheard.doctor.source.code import Function
from overheard.doctor.source.privacy import Draw, PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class BatchGradientClipped(SourceRule):
    """Clipping the mean gradient of a batch bounds no example's part in it."""

    name = "batch-gradient-clipped"
    severity = "critical"
    title = "the gradient of a batch is clipped, not that of each example"
    mend = (
        "Clip the gradient of each example before the sum, as Opacus, TensorFlow Privacy and "
        "JAX Privacy do, and scale the noise to that clip."
    )
    reference = 'APPFL/APPFL #349; JAX Privacy, "Sharp edges", sensitivity alignment'

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
                noise = [
                    one
                    for one in app.draws
                    if one.function not in clipped_elsewhere
                    if app.code.run_together(clip.function, one.function)
                ]
            if noise:
                yield _fault(app, clip.call, noise[0])
        yield from _by_helper(app, {one.function for one in found})


def _by_helper(app: PrivateApp, clipping: set[Function]) -> Seen:
    """Look for gradients of batches that go to a function that clips them and adds noise."""
    for site in app.code.calls:
        target = app.code.target(site.call.func, site.function)
        if target is None or not _takes_gradient(site.call):
            continue
        if not any(one.last == "backward" for one in app.code.calls_in(site.function)):
            continue
        reach = app.code.reach(target)
        noise = [one for one in app.draws if one.function in reach]
        if noise and reach & clipping and not is_per_example(app, site.function):
            yield _fault(app, site.call, noise[0])


def _takes_gradient(call: ast.Call) -> bool:
    """Return whether a call gets the gradient of a parameter."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad"
        for one in (*call.args, *(given.value for given in call.keywords))
        for node in ast.walk(one)
    )


def _fault(app: PrivateApp, clip: ast.Call, draw: Draw) -> CodeFault:
    return CodeFault(
        "The gradient of a whole batch is clipped, and noise is added as if each example were: "
        "one example can move the gradient without a bound on its own part.",
        app.places(clip, draw.call),
    )
