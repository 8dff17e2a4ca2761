"""A sum of clipped gradients is divided by the size that the batch happens to have."""

import ast
import re
from typing import final

from overheard.doctor.source.clipping import is_per_example
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule

_SAMPLED = re.compile(r"poisson|uniformwithreplacement|bernoulli|binomial", re.IGNORECASE)


@final
class DividedByRealisedSize(SourceRule):
    """The size of a Poisson sample is private: it tells whether a record was drawn."""

    name = "divided-by-realised-size"
    severity = "critical"
    title = "division by the realised size of a random batch"
    mend = "Divide by the expected size of a batch, a constant."
    reference = 'JAX Privacy, "Sharp edges", division by batch size'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the app adds noise to gradients by itself."""
        return any(one.is_on_gradient for one in app.draws)

    def examine(self, app: PrivateApp) -> Seen:
        """Look for lengths below the line where batches are drawn by coins."""
        sampled = [site for site in app.code.calls if _SAMPLED.search(site.last)]
        sampled += [site for site in app.code.calls if _is_coin(app, site.call)]
        if not sampled:
            return
        for draw in app.draws:
            if not draw.is_on_gradient or not is_per_example(app, draw.function):
                continue
            for node in ast.walk(draw.function.node):
                if _divides_by_size(node):
                    yield CodeFault(
                        "The batch is a random sample, and the noisy sum is divided by the "
                        "number of examples that it happens to have, which is private.",
                        app.places(node, draw.call, sampled[0].call),
                    )
                    break


def _is_coin(app: PrivateApp, call: ast.Call) -> bool:
    """Return whether a call draws a coin for each record: random numbers below a rate."""
    around = app.code.function_of(call).file.parents.get(call)
    func = call.func
    is_uniform = isinstance(func, ast.Attribute) and func.attr in ("rand", "random", "uniform")
    return is_uniform and isinstance(around, ast.Compare)


def _divides_by_size(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Div(), right=right) | ast.AugAssign(op=ast.Div(), value=right):
            return _is_size(right)
        case ast.Call(func=ast.Attribute(attr="div_" | "div"), args=[right, *_]):
            return _is_size(right)
    return False


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Call(func=ast.Name(id="max" | "float"), args=parts):
            return any(_is_size(one) for one in parts)
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=0)]):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=0)):
            return True
    return False
