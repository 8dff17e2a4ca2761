"""Losses and metrics of the private training data are sent in clear."""

import ast
from collections import defaultdict
from typing import final

from overheard.doctor.source.privacy import PrivateApp, Sent
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode
from overheard.doctor.source.training import training_data


@final
class TrainingMetricsInCode(SourceRule):
    """A figure computed from training records without noise is outside of every claim."""

    name = "training-metrics-in-clear"
    severity = "critical"
    title = "exact losses or metrics of training records leave the client"
    mend = "Do not send figures of training records, or add noise to them and account for it."
    reference = (
        'JAX Privacy, "Sharp edges", auxiliary information; NVFlare, hello-dp; '
        "flwrlabs/flower, examples/fl-dp-sa"
    )

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether clients send anything beside models."""
        return bool(app.sent) or any(one.name.startswith("fl4health") for one in app.mechanisms)

    def examine(self, app: PrivateApp) -> Seen:
        """Follow what is sent back to the training data."""
        data = training_data(app)
        found = defaultdict[ast.AST, list[Sent]](list)
        for one in app.sent:
            shown = data.shown_by(one.flow)
            if shown is not None:
                found[shown].append(one)
        for shown, those in found.items():
            names = ", ".join(dict.fromkeys(f"'{one.key}'" for one in those if one.key))
            yield CodeFault(
                f"Computed from training records and sent without noise: "
                f"{names or 'a figure without a name'}.",
                app.places(*(one.node for one in those), shown),
            )
        for mechanism in app.mechanisms:
            if mechanism.name.startswith("fl4health.") and isinstance(
                mechanism.node, ast.ClassDef
            ):
                yield UnclearCode(
                    f"What the client of {app.places(mechanism.node)[0]} sends beside the "
                    "model is in the code of fl4health, which is not read."
                )
