"""The number of training records is sent in clear."""

import ast
from typing import final

from overheard.doctor.source.code import Flow
from overheard.doctor.source.privacy import PrivateApp, Sent
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule


@final
class CountsSentInCode(SourceRule):
    """With the number of records, a claim holds for neighbours with the same number only."""

    name = "counts-in-clear"
    severity = "theoretical"
    title = "the exact number of training records leaves the client"
    mend = (
        "State that the number is public, so that a neighbour replaces a record or empties it."
    )
    reference = 'JAX Privacy, "Sharp edges", public and private metadata'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether the claim is on records, and clients send anything beside models."""
        return app.has("dp_sgd", "own noise") and bool(app.sent)

    def examine(self, app: PrivateApp) -> Seen:
        """Look for lengths in what is sent."""
        found = [one for one in app.sent if not one.is_evaluation and _is_count(app, one)]
        if found:
            yield CodeFault(
                "The number of training records, or of batches, is sent without noise.",
                app.places(*(one.node for one in found)),
            )


def _is_count(app: PrivateApp, one: Sent) -> bool:
    if one.key not in _KEYS:
        return False
    return any(
        isinstance(flow.node, ast.Call)
        and isinstance(flow.node.func, ast.Name)
        and flow.node.func.id == "len"
        for flow in app.code.sources(Flow(one.flow.node, one.flow.frame), derived=True)
    )


_KEYS = frozenset(
    {"num-examples", "num_examples", "num_samples", "NUM_STEPS_CURRENT_ROUND", "n"}
)
