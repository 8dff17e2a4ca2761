"""Noise of an equal mean on a mean that is weighted by private counts."""

import ast
import re
from typing import final

from overheard.doctor.source.code import CallSite
from overheard.doctor.source.privacy import PrivateApp, Sent
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode

_UNEQUAL = re.compile(
    r"(Dirichlet|InnerDirichlet|Pathological|Linear|Square|Exponential|Size|NaturalId"
    r"|Distribution|IdToSize\w*)Partitioner"
)


@final
class WeightsByCountsInCode(SourceRule):
    """Flower's wrappers scale noise to equal weights; its strategies weigh by examples."""

    name = "weights-by-counts"
    severity = "critical"
    title = "clients are weighted by counts, and the noise is for equal weights"
    mend = (
        "Let each client return the same number of examples, such as 1, or weigh by a constant."
    )
    reference = (
        "flwr.serverapp.strategy.FedAvg with DifferentialPrivacy...Clipping: weighted by "
        "`num-examples`, noise for clip / cohort"
    )

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether a wrapper of Flower adds noise to a mean of clients."""
        return bool(_wrappers(app))

    def examine(self, app: PrivateApp) -> Seen:
        """Look what count clients return, and how the examples are spread over them."""
        wrapper = _wrappers(app)[0]
        counts = [
            one
            for one in app.sent
            if one.key in ("num-examples", "num_examples") and not one.is_evaluation
        ]
        counts = [one for one in counts if not _is_constant(app, one)]
        if not counts:
            return
        spread = [
            site
            for site in app.code.calls
            if _UNEQUAL.fullmatch(site.last) and site.dotted.startswith("flwr_datasets.")
        ]
        if spread:
            yield CodeFault(
                "The mean is weighted by the number of examples of each client, which differ: "
                "a client with a larger share moves the mean by more than clip / clients, for "
                "which the noise is.",
                app.places(wrapper.call, counts[0].node, spread[0].call),
            )
        elif not any(site.last == "IidPartitioner" for site in app.code.calls):
            yield UnclearCode(
                f"Clients are weighted by the count at {app.places(counts[0].node)[0]}: if "
                f"counts differ, the noise of {app.places(wrapper.call)[0]} is too small. A "
                "recording of the run shows the counts."
            )


def _wrappers(app: PrivateApp) -> list[CallSite]:
    return [
        site
        for site in app.code.calls
        if site.dotted.startswith("flwr.")
        and site.last.startswith("DifferentialPrivacy")
        and site.last.endswith("Clipping")
    ]


def _is_constant(app: PrivateApp, one: Sent) -> bool:
    node = one.flow.node
    return (
        isinstance(node, ast.expr)
        and app.code.constant(node, one.flow.frame.function) is not None
    )
