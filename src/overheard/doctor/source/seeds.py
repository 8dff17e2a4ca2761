"""Where an app seeds the generators from which noise comes."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, final

from overheard.doctor.source.code import CallSite, Flow, Function, keyword
from overheard.doctor.source.privacy import MOST_FOLLOWED, PrivateApp

MOST_SEEDS = 5
"""The most seeds of one generator that are looked at."""

Origin = Literal["constant", "identity", "message", "unknown"]
"""A constant; the client's name or the number of the round; a message of the server."""

_GLOBAL = (
    ("torch", re.compile(r"torch\.(manual_seed|cuda\.manual_seed(_all)?)")),
    ("numpy", re.compile(r"numpy\.random\.seed")),
    ("tensorflow", re.compile(r"tensorflow\.random\.set_seed|keras\.utils\.set_random_seed")),
    ("python", re.compile(r"random\.seed")),
    (
        "torch numpy python",
        re.compile(r"(.*\.)?(seed_everything|set_all_random_seeds)"),
    ),
)
_OWN = re.compile(r"numpy\.random\.(default_rng|RandomState)|jax\.random\.(PRNGKey|key)")
_IDENTITY = re.compile(
    r"partition.id|node.id|client.id|client.name|site.name|cid|rank|current.round|server.round"
)
_MESSAGE = frozenset({"msg", "message", "config", "input_model", "content"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class SeededNoise:
    """Noise from a generator whose seed is in the code.

    Args:
        noise: what draws it.
        function: the function around it.
        seeding: the call that seeds the generator.
        origin: where the seed comes from.
        is_per_message: whether the generator is seeded for each message.

    """

    noise: ast.AST
    function: Function
    seeding: CallSite
    origin: Origin
    is_per_message: bool


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A place that draws noise: its library, and its own generator if it names one."""

    noise: ast.AST
    function: Function
    library: str
    generator: ast.expr | None


def seeded_noise(app: PrivateApp) -> Iterator[SeededNoise]:
    """Yield noise from generators that are seeded in a known way."""
    for source in islice(_sources(app), MOST_FOLLOWED):
        for seeding in islice(_seedings(app, source), MOST_SEEDS):
            origin = origin_of(app, seeding)
            yield SeededNoise(
                source.noise,
                source.function,
                seeding,
                origin,
                app.is_per_message(seeding.call) and not app.is_once(seeding.call),
            )


def _sources(app: PrivateApp) -> Iterator[_Source]:
    for site in app.code.calls:
        if site.last in ("make_private", "make_private_with_epsilon") and not _is_secure(app):
            yield _Source(
                site.call, site.function, "torch", keyword(site.call, "noise_generator")
            )
        elif site.last == "LocalDpMod" or (
            site.dotted.startswith("flwr.")
            and site.last.startswith("DifferentialPrivacy")
            and site.last.endswith("Clipping")
        ):
            yield _Source(site.call, site.function, "numpy", None)
        elif site.last.endswith("privatizer") and site.dotted.startswith("jax_privacy."):
            yield _Source(site.call, site.function, "jax", keyword(site.call, "prng_key"))
    for draw in app.draws:
        generator = keyword(draw.call, "generator")
        if draw.library == "jax":
            generator = draw.call.args[0] if draw.call.args else keyword(draw.call, "key")
        elif draw.library == "numpy" and isinstance(draw.call.func, ast.Attribute):
            is_module = app.code.dotted(draw.call.func, draw.function).startswith("numpy.")
            generator = None if is_module else draw.call.func.value
        yield _Source(draw.call, draw.function, draw.library, generator)


def _is_secure(app: PrivateApp) -> bool:
    """Return whether an engine has a cryptographic generator, which no seed changes."""
    for site in app.code.calls:
        if site.last == "PrivacyEngine":
            known = app.code.constant(keyword(site.call, "secure_mode", None), site.function)
            if known is not None and known.value is True:
                return True
    return False


def _seedings(app: PrivateApp, source: _Source) -> Iterator[CallSite]:
    by_call = {site.call: site for site in app.code.calls}
    if source.generator is not None:
        flow = Flow(source.generator, app.code.frame(source.function))
        for one in app.code.sources(flow, derived=True):
            if not isinstance(one.node, ast.Call):
                continue
            site = by_call[one.node]
            if (
                _OWN.fullmatch(site.dotted) and (site.call.args or site.call.keywords)
            ) or site.last == "manual_seed":
                yield site
            elif site.dotted == "torch.Generator":
                yield from _seeded_later(app, site)
        return
    for site in app.code.calls:
        for libraries, pattern in _GLOBAL:
            is_same = source.library in libraries.split() and pattern.fullmatch(site.dotted)
            if is_same and _runs_with(app, site, source):
                yield site


def _seeded_later(app: PrivateApp, made: CallSite) -> Iterator[CallSite]:
    """Yield the calls of `manual_seed` on a generator."""
    for site in app.code.calls:
        func = site.call.func
        if site.last != "manual_seed" or not isinstance(func, ast.Attribute):
            continue
        if any(one is made.call for one in app.values(func.value, site.function)):
            yield site


def _runs_with(app: PrivateApp, seeding: CallSite, source: _Source) -> bool:
    """Return whether a seed is set in the process that draws the noise."""
    if seeding.function.file is source.function.file:
        return True
    is_client = source.function in app.per_message or app.is_per_message(source.noise)
    return is_client and app.is_per_message(seeding.call)


def origin_of(app: PrivateApp, site: CallSite) -> Origin:
    """Return where the seed of a call comes from."""
    given = site.call.args[0] if site.call.args else keyword(site.call, "seed")
    if given is None:
        return "unknown"
    known = app.code.constant(given, site.function)
    if known is not None:
        return "constant" if known.value is not None else "unknown"
    origins = set[Origin]()
    flow = Flow(given, app.code.frame(site.function))
    for one in app.code.sources(flow, derived=True):
        match one.node:
            case ast.Name(id=text) | ast.Attribute(attr=text) | ast.Constant(value=str(text)):
                if _IDENTITY.search(text.lower()):
                    origins.add("identity")
                if text in _MESSAGE and one.frame.function in app.per_message:
                    origins.add("message")
            case ast.Call(func=ast.Attribute(attr="urandom" | "token_bytes" | "randbits")):
                return "unknown"
    if "identity" in origins:
        return "identity"
    return "message" if origins else "unknown"
