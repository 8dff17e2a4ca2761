"""A client that joins after the first round has no differential privacy."""

import ast
from typing import final

from overheard.doctor.source.accountants import READ
from overheard.doctor.source.code import CallSite
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode


@final
class LateJoinerInCode(SourceRule):
    """An engine that is made in the first round only is missing to whoever joins later."""

    name = "joins-without-privacy"
    severity = "critical"
    title = "a client that joins or restarts later trains without an engine"
    mend = (
        "Make the engine whenever there is none (`if engine is None`), and keep its "
        "accountant's state on disk."
    )
    reference = "NVFlare, hello-dp"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether an engine wraps a model."""
        return any(_wraps(site) for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Look for engines that are made by the number of the round."""
        for site in app.code.calls:
            guard = _by_round(app, site) if _wraps(site) else None
            if guard is None:
                continue
            later = _stops(app, site)
            if later:
                yield UnclearCode(
                    f"A client that starts after the first round has no engine "
                    f"({app.places(guard)[0]}): it trains without noise and stops at "
                    f"{app.places(later[0])[0]}. What leaves it until then was not "
                    "followed."
                )
            else:
                yield CodeFault(
                    "The engine is made in the first round only: a client that joins or "
                    "restarts later trains and replies without noise.",
                    app.places(guard, site.call),
                )


def _wraps(site: CallSite) -> bool:
    return site.last in ("make_private", "make_private_with_epsilon")


def _by_round(app: PrivateApp, site: CallSite) -> ast.AST | None:
    """Return the condition on the number of the round around a call."""
    for outer, inner in app.code.around(site.call):
        if isinstance(outer, ast.If) and inner in outer.body and _is_on_round(outer):
            return outer.test
    return None


def _is_on_round(node: ast.If) -> bool:
    for one in ast.walk(node.test):
        match one:
            case ast.Compare(
                left=left, ops=[ast.Eq() | ast.LtE()], comparators=[ast.Constant()]
            ) if "round" in ast.dump(left).lower():
                return True
    return False


def _stops(app: PrivateApp, site: CallSite) -> list[ast.expr]:
    """Return what fails, after the engine was to be made, in a client without one.

    It is a reading of the engine's epsilon, or of a name that only the first round binds.
    """
    nodes = list(ast.walk(site.function.node))
    first = {
        inner
        for one in nodes
        if isinstance(one, ast.If) and _is_on_round(one)
        for inner in ast.walk(one)
    }
    names = [one for one in nodes if isinstance(one, ast.Name)]
    bound = {one.id for one in names if isinstance(one.ctx, ast.Store) and one in first}
    bound -= {one.id for one in names if isinstance(one.ctx, ast.Store) and one not in first}
    bound -= set(site.function.parameters)
    late: list[ast.expr] = [
        one.call for one in app.code.calls_in(site.function) if one.last in READ
    ]
    late += [one for one in names if one.id in bound and isinstance(one.ctx, ast.Load)]
    return [
        one
        for one in late
        if one not in first
        if one.lineno > site.call.lineno and not _is_conditional(app, one)
    ]


def _is_conditional(app: PrivateApp, node: ast.AST) -> bool:
    return any(isinstance(outer, ast.If) for outer, _ in app.code.around(node))
