"""A client that joins after the first round has no differential privacy."""

import ast
from typing import ClassVar, final

from overheard.doctor.criticism import Severity
from overheard.doctor.source.accountants import READ
from overheard.doctor.source.code import CallSite
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode


@final
class LateJoiner(SourceRule):
    """An engine that is made in the first round only is missing to whoever joins later."""

    name: ClassVar[str] = "late-joiner"
    severity: ClassVar[Severity] = "critical"
    title: ClassVar[str] = "a client that joins or restarts later trains without an engine"
    mend: ClassVar[str] = (
        "Make the engine whenever there is none (`if engine is None`), and keep its "
        "accountant's state on disk."
    )
    reference: ClassVar[str] = "NVFlare, hello-dp"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether an engine wraps a model."""
        return any(_wraps(site) for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Look for engines that are made by the number of the round."""
        for site in app.code.calls:
            guard = _by_round(app, site) if _wraps(site) else None
            if guard is None:
                continue
            later = [
                one
                for one in app.code.calls
                if one.last in READ
                and one.function is site.function
                and one.call.lineno > site.call.lineno
                and not _is_conditional(app, one)
            ]
            if later:
                yield UnclearCode(
                    f"A client that starts after the first round has no engine "
                    f"({app.places(guard)[0]}): it trains without noise and stops at "
                    f"{app.places(later[0].call)[0]}. What leaves it until then was not "
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
        if not isinstance(outer, ast.If) or inner not in outer.body:
            continue
        match outer.test:
            case ast.Compare(
                left=left, ops=[ast.Eq() | ast.LtE()], comparators=[ast.Constant()]
            ) if "round" in ast.dump(left).lower():
                return outer.test
    return None


def _is_conditional(app: PrivateApp, site: CallSite) -> bool:
    return any(isinstance(outer, ast.If) for outer, _ in app.code.around(site.call))
