"""Noise scaled to more clients than a round has."""

import ast
from typing import final

from overheard.doctor.source.code import CallSite, Flow, keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode

DEFAULT_NODES = 10
"""The nodes of Flower's own simulation, if an app does not configure it."""


@final
class CohortTooSmallInCode(SourceRule):
    """The noise of a mean is divided by a number of clients that is configured, not counted."""

    name = "cohort-too-small"
    severity = "critical"
    title = "noise is scaled to more clients than a round has"
    mend = (
        "Let the round wait for as many clients as `num_sampled_clients`: set the fraction, "
        "the least number of clients and the number of nodes accordingly."
    )
    reference = "flwrlabs/flower, examples/fl-dp-sa"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the server adds noise for a configured number of clients."""
        return bool(_wrappers(app))

    def examine(self, app: PrivateApp) -> Seen:
        """Compute the cohort of a round from the strategy."""
        for site, sampled in _wrappers(app):
            place = app.places(site.call)[0]
            wanted = _number(app, sampled, site)
            strategy = _strategy(app, site)
            if wanted is None or strategy is None:
                yield UnclearCode(
                    f"How many clients a round has, or how many the noise of {place} is for, "
                    "is not stated in the code: a recording of the run shows it."
                )
                continue
            fraction = _first(app, strategy, ("fraction_fit", "fraction_train"))
            least = _first(app, strategy, ("min_fit_clients", "min_train_nodes"))
            if fraction is None and least is None:
                yield UnclearCode(
                    f"The strategy at {app.places(strategy.call)[0]} takes part of the nodes "
                    f"that are there: for the noise of {place}, a round needs {wanted:g}."
                )
                continue
            nodes = app.code.nodes or DEFAULT_NODES
            share, fewest = fraction or 1.0, least or 2.0
            cohort = max(int(nodes * share), fewest)
            if cohort < wanted:
                stated = (
                    "as configured"
                    if app.code.nodes
                    else "as in Flower's simulation, since the app configures no number"
                )
                yield CodeFault(
                    f"The noise is divided by {wanted:g} clients, and a round is made of "
                    f"max({share:g} x nodes, {fewest:g}) of them: {cohort:g} with {nodes} "
                    f"nodes, {stated}. The noise of the mean is then {wanted / cohort:.3g} "
                    f"times too small; it is right from {wanted / share:.0f} nodes on.",
                    app.places(site.call, strategy.call),
                )


def _wrappers(app: PrivateApp) -> list[tuple[CallSite, ast.expr]]:
    found = list[tuple[CallSite, ast.expr]]()
    for site in app.code.calls:
        if site.last.startswith("DifferentialPrivacy") and site.last.endswith("Clipping"):
            position = 3 if "Fixed" in site.last else 2
            sampled = keyword(site.call, "num_sampled_clients", position)
            found += [(site, sampled)] if sampled is not None else []
    return found


def _strategy(app: PrivateApp, site: CallSite) -> CallSite | None:
    """Return where the wrapped strategy is made."""
    given = keyword(site.call, "strategy", 0)
    if given is None:
        return None
    made = [
        one.node
        for one in app.code.sources(Flow(given, app.code.frame(site.function)), derived=False)
        if isinstance(one.node, ast.Call) and one.node is not site.call
    ]
    sites = [one for one in app.code.calls if one.call in made]
    known = [one for one in sites if one.dotted.startswith("flwr.")]
    return known[0] if len(known) == 1 else None


def _first(app: PrivateApp, site: CallSite, names: tuple[str, ...]) -> float | None:
    for name in names:
        found = _number(app, keyword(site.call, name), site)
        if found is not None:
            return found
    return None


def _number(app: PrivateApp, node: ast.expr | None, site: CallSite) -> float | None:
    known = app.code.constant(node, site.function)
    is_number = known is not None and isinstance(known.value, int | float)
    return float(known.value) if is_number else None  # type: ignore[union-attr, arg-type]
