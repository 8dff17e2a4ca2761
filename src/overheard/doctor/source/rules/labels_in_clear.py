"""The numbers of records by label are sent in clear."""

import ast
from typing import final

from overheard.doctor.source.code import keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule
from overheard.doctor.source.training import training_data

_COUNTING = frozenset({"bincount", "Counter", "value_counts", "histogram", "histc"})


@final
class LabelsSentInCode(SourceRule):
    """Exact counts of labels tell of single records, whatever noise the model has."""

    name = "labels-in-clear"
    severity = "critical"
    title = "exact counts of values of training records leave the client"
    mend = "Do not send them, or add noise to them and account for it."
    reference = 'JAX Privacy, "Sharp edges", auxiliary information'

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether clients send anything beside models."""
        return bool(app.sent)

    def examine(self, app: PrivateApp) -> Seen:
        """Follow what is sent back to a function that counts values."""
        data = training_data(app)
        for one in app.sent:
            # Counts that weigh a loss or a sampler are not in what is sent themselves.
            for flow in app.code.sources(one.flow, derived=True, until=data.is_boundary):
                if isinstance(flow.node, ast.Call) and _counts(flow.node):
                    yield CodeFault(
                        f"Counts of values are sent as {one.key!r} without noise."
                        if one.key
                        else "Counts of values are sent without noise.",
                        app.places(one.node, flow.node),
                    )
                    break


def _counts(call: ast.Call) -> bool:
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name in _COUNTING or (
        name == "unique" and keyword(call, "return_counts") is not None
    )
