"""Exact measures of private training data beside a claim that covers these data."""

import re
from collections.abc import Callable
from typing import final

from overheard.core.messages import Message, UnstoredMessage, Update
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    RunEvidence,
    RunRule,
    StatedMechanism,
)

MEASURED = re.compile(
    r"loss|accuracy|precision|recall|perplexity"
    r"|(?<![a-z])(acc|f1|auc|mse|mae|rmse|error|grad|gradient)(?![a-z])",
    re.IGNORECASE,
)
"""Matches the name of a measure of data."""

OF_TRAINING = re.compile(r"loss|(?<![a-z])(train|fit|grad)", re.IGNORECASE)
"""Matches the name of a measure that a training reply computes on training data."""

OF_OTHER_DATA = re.compile(
    r"(?<![a-z])(test|val(?![a-z])|valid|eval|global|holdout|held|public)", re.IGNORECASE
)
"""Matches the name of a measure of data that were not trained on."""

MAX_NAMES = 5
"""Most names that are listed."""


@final
class TrainingMetricsInClear(RunRule):
    """Replies carry exact measures of training data, and noise at the client should hide them.

    Measures of other data are no faults: a model that was trained with differential privacy may
    be evaluated on them. `MetricsOfUnknownData` is about names that do not say of which data.
    """

    name = "training-metrics-in-clear"
    severity = "critical"
    title = "exact measures of private training data travel in clear"
    mend = (
        "Send no loss or accuracy of training data, or add noise to them and count it in "
        "epsilon. Measure on public or held-out data."
    )
    reference = (
        'JAX Privacy, "Sharp edges" (McKenna and McMahan 2026), auxiliary information; NVFlare '
        "examples/hello-world/hello-dp streams train_loss; flwrlabs/flower examples/fl-dp-sa"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Look at the metrics of each reply, if noise at the client should hide its data."""
        local = hiding_mechanisms(run)
        if not local or not run.is_recorded:
            return None
        return find_measures(
            run, is_of_training_data, f"measures of the data that {local[0].name} should hide"
        )


def hiding_mechanisms(run: RunEvidence) -> tuple[StatedMechanism, ...]:
    """Return the mechanisms whose noise at the client should hide its data from all readers."""
    return tuple(
        one
        for one in run.mechanisms
        if one.mechanism.noised_at == "client" and not one.mechanism.flaw
    )


def find_measures(
    run: RunEvidence, is_meant: Callable[[str], bool], what: str
) -> tuple[Fault, ...]:
    """Return a fault if training replies have metrics of these names; () = they have none."""
    found = [
        (name, message, value)
        for message in run.messages
        if isinstance(message.body, Update | UnstoredMessage)
        for name, value in message.body.metrics.items()
        if is_meant(name)
    ]
    if not found:
        return ()
    names = list(dict.fromkeys(name for name, _, _ in found))
    _, message, value = found[0]
    replies = len({id(one) for _, one, _ in found})
    return (
        Fault(
            f"{replies} replies carry exact {what}: {_listed(names)}.",
            _place(message),
            f"{names[0]} = {value:.6g}",
        ),
    )


def is_of_training_data(name: str) -> bool:
    """Return whether a metric of a training reply measures its training data, by its name.

    >>> [is_of_training_data(name) for name in ("train_loss", "test_loss", "accountant")]
    [True, False, False]
    """
    return _is_measure(name) and OF_TRAINING.search(_spaced(name)) is not None


def is_of_unknown_data(name: str) -> bool:
    """Return whether the name of a metric does not say which data it measures."""
    return _is_measure(name) and OF_TRAINING.search(_spaced(name)) is None


def _is_measure(name: str) -> bool:
    words = _spaced(name)
    return OF_OTHER_DATA.search(words) is None and MEASURED.search(words) is not None


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _place(message: Message) -> str:
    return f"{message.sender}, round {message.round}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MAX_NAMES])
    return shown + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")
