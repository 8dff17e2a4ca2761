"""Where an app makes engines and accountants, and where it reads an epsilon from them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from overheard.doctor.source.code import CallSite, Flow, keyword
from overheard.doctor.source.privacy import PrivateApp

MADE = re.compile(
    r"opacus\.(.*\.)?(PrivacyEngine\w*|\w+Accountant|create_accountant)"
    r"|dp_accounting\.(.*\.)?\w+Accountant"
)
READ = frozenset({"get_epsilon", "get_privacy_spent"})
RESTORED = frozenset({"load_state_dict", "load_checkpoint"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class Accountant:
    """An engine or accountant that is made for each message.

    Args:
        site: where it is made.
        reads: where an epsilon is read from it.
        targets: where noise is chosen by it for a target epsilon.

    """

    site: CallSite
    reads: tuple[CallSite, ...]
    targets: tuple[CallSite, ...]


def fresh_accountants(app: PrivateApp) -> Iterator[Accountant]:
    """Yield the engines and accountants that are new in each message and not restored."""
    if _is_restored(app):
        return
    for site in app.code.calls:
        if not MADE.fullmatch(site.dotted):
            continue
        if not app.is_per_message(site.call) or app.is_once(site.call):
            continue
        yield Accountant(
            site,
            tuple(one for one in app.code.calls if one.last in READ and _uses(app, one, site)),
            tuple(
                one
                for one in app.code.calls
                if one.last == "make_private_with_epsilon" and _uses(app, one, site)
            ),
        )


def _uses(app: PrivateApp, one: CallSite, made: CallSite) -> bool:
    """Return whether a method is called on an engine, or on its accountant."""
    if not isinstance(one.call.func, ast.Attribute):
        return False
    node = one.call.func.value
    if isinstance(node, ast.Attribute) and node.attr == "accountant":
        node = node.value
    return any(value is made.call for value in app.values(node, one.function))


def _is_restored(app: PrivateApp) -> bool:
    """Return whether an accountant gets the state of earlier rounds."""
    for site in app.code.calls:
        func = site.call.func
        if site.last not in RESTORED or not isinstance(func, ast.Attribute):
            continue
        is_accountant = "accountant" in ast.dump(func.value).lower()
        if is_accountant or site.last == "load_checkpoint":
            return True
    for file in app.code.files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    match target:
                        case ast.Attribute(attr="accountant" | "history"):
                            return True
    return False


def is_sent(app: PrivateApp, read: CallSite) -> bool:
    """Return whether an epsilon is in what clients send."""
    return any(
        flow.node is read.call
        for one in app.sent
        for flow in app.code.sources(one.flow, derived=True)
    )


def epochs_of(site: CallSite) -> ast.expr | None:
    """Return for how many epochs noise is chosen for a target epsilon."""
    return keyword(site.call, "epochs")


def mentions_rounds(app: PrivateApp, node: ast.expr | None, site: CallSite) -> bool:
    """Return whether a number is computed from a number of rounds."""
    if node is None:
        return False
    flow = Flow(node, app.code.frame(site.function))
    return any(
        "round" in text.lower()
        for one in app.code.sources(flow, derived=True)
        for text in _texts(one.node)
    )


def _texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=text) | ast.Attribute(attr=text) | ast.Constant(value=str(text)):
            yield text
