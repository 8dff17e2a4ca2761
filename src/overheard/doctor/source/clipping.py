"""Where an app clips by itself, and what."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal, final

from overheard.doctor.source.code import CallSite, Flow, Function, keyword
from overheard.doctor.source.privacy import MOST_FOLLOWED, PrivateApp, takes_gradients

Clipped = Literal["gradient", "values", "norm"]
"""The gradients of a model; each value for itself; the norm of something else."""

_GRADIENT = re.compile(r"torch\.nn\.utils\.(clip_grad\.)?clip_grad_(norm|value)_?")
_VALUES = re.compile(r"(numpy|jax\.numpy|torch)\.(clip|clamp)|tensorflow\.clip_by_value")
_NORM = re.compile(
    r"tensorflow\.clip_by_(global_)?norm|optax\.(clip_by_global_norm|global_norm)"
    r"|flwr\..*(compute_clip_model_update|clip_inputs_inplace|compute_adaptive_clip_model_update)"
)
PER_EXAMPLE = re.compile(
    r"vmap|grad_sample|per_(sample|example|record)|jacobian|vectorized_map|microbatch|jacrev"
)
"""Names that speak of gradients of single examples."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A call that clips.

    Args:
        kind: what it clips.
        call: the call.
        function: the function around it.
        target: the expression that is clipped; None = not told.

    """

    kind: Clipped
    call: ast.Call
    function: Function
    target: ast.expr | None


@lru_cache(maxsize=1)
def clips(app: PrivateApp) -> tuple[Clip, ...]:
    """Return the calls of an app that clip."""
    return tuple(islice(_clips(app), MOST_FOLLOWED))


def _clips(app: PrivateApp) -> Iterator[Clip]:
    for site in app.code.calls:
        call, first = site.call, site.call.args[0] if site.call.args else None
        if _GRADIENT.fullmatch(site.dotted):
            yield Clip("gradient", call, site.function, first)
        elif _VALUES.fullmatch(site.dotted):
            yield Clip("values", call, site.function, first)
        elif _NORM.fullmatch(site.dotted):
            yield Clip("norm", call, site.function, first)
        elif isinstance(call.func, ast.Attribute) and site.last in ("clamp_", "clamp", "clip"):
            yield Clip("values", call, site.function, call.func.value)
        elif _is_factor(site):
            yield Clip("norm", call, site.function, None)


def _is_factor(site: CallSite) -> bool:
    """Return whether a call is the factor of a clipped norm, such as min(1, C / norm)."""
    if site.last not in ("min", "max", "minimum", "maximum", "clamp", "clip"):
        return False
    divided = any(
        isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)
        for part in site.call.args
        for one in ast.walk(part)
    )
    ones = any(isinstance(one, ast.Constant) and one.value == 1 for one in site.call.args)
    return divided and ones


def is_on_gradient(app: PrivateApp, clip: Clip) -> bool:
    """Return whether gradients are clipped."""
    if clip.kind == "gradient":
        return True
    if not takes_gradients(app.code, clip.function):
        return False
    if clip.target is None:
        return True
    flow = Flow(clip.target, app.code.frame(clip.function))
    return any(
        "grad" in text.lower()
        for one in app.code.sources(flow, derived=True)
        for text in names_of(one.node)
    )


def is_per_example(app: PrivateApp, function: Function) -> bool:
    """Return whether a function takes the gradient of single examples.

    It does so if names in it say so, if a backward pass is in a loop over the examples of a
    batch, which may be a batch that the function is given, or if all batches have one example.
    """
    names = (text for one in ast.walk(function.node) for text in names_of(one))
    if any(PER_EXAMPLE.search(text) for text in names):
        return True
    for site in app.code.calls:
        if site.last != "backward" or site.function is not function:
            continue
        loops = [outer for outer, _ in app.code.around(site.call) if isinstance(outer, ast.For)]
        if len(loops) > 1 and _reads(loops[0].iter, loops[1:]):
            return True
        if loops and _is_given_batch(app, function, loops[-1].iter):
            return True
    return _batches_of_one(app, function)


def _is_given_batch(app: PrivateApp, function: Function, node: ast.expr) -> bool:
    """Return whether an expression reads a parameter that gets a batch: a target of a loop."""
    for site in app.code.calls:
        if app.code.target(site.call.func, site.function) is not function:
            continue
        loops = [outer for outer, _ in app.code.around(site.call) if isinstance(outer, ast.For)]
        given = {
            **dict(zip(function.parameters, site.call.args, strict=False)),
            **{one.arg: one.value for one in site.call.keywords if one.arg},
        }
        read = _loaded(node)
        if loops and any(_reads(one, loops) for name, one in given.items() if name in read):
            return True
    return False


def _reads(node: ast.expr, loops: list[ast.For]) -> bool:
    """Return whether an expression reads what the target of one of some loops is."""
    targets = {
        one.id for loop in loops for one in ast.walk(loop.target) if isinstance(one, ast.Name)
    }
    for loop in loops:
        for one in ast.walk(loop):
            if isinstance(one, ast.Assign) and targets & _loaded(one.value):
                targets |= {
                    name.id
                    for target in one.targets
                    for name in ast.walk(target)
                    if isinstance(name, ast.Name)
                }
    return bool(targets & _loaded(node))


def _loaded(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _batches_of_one(app: PrivateApp, function: Function) -> bool:
    loops = [one for one in ast.walk(function.node) if isinstance(one, ast.For)]
    for loop in loops:
        flow = Flow(loop.iter, app.code.frame(function))
        for one in app.code.sources(flow, derived=True):
            if not isinstance(one.node, ast.Call):
                continue
            size = keyword(one.node, "batch_size")
            known = app.code.constant(size, one.frame.function)
            if known is not None and known.value == 1:
                return True
    return False


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the name that a node has in itself."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name):
            yield name


def accumulation(app: PrivateApp, clip: Clip) -> ast.If | None:
    """Return the condition by which a clip waits for the gradients of several batches."""
    for outer, _ in app.code.around(clip.call):
        if isinstance(outer, ast.If) and any(
            isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod)
            for one in ast.walk(outer.test)
        ):
            inside = set(ast.walk(outer))
            backward = [
                site
                for site in app.code.calls
                if site.last == "backward" and site.function is clip.function
            ]
            if backward and all(site.call not in inside for site in backward):
                return outer
    return None
