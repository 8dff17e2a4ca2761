"""An accountant that forgets earlier rounds."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import final

from overheard.core.messages import Update
from overheard.core.parties import Party
from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule

SPENT = re.compile(r"(?<![a-z])eps(ilon)?(?![a-z])", re.IGNORECASE)
"""Matches the name of a metric that states the epsilon that was spent."""

BUDGET = re.compile(r"target|budget|max|total|limit", re.IGNORECASE)
"""Matches the name of a metric that states the epsilon that may be spent."""

EQUAL = 0.01
"""How much an epsilon must grow from round to round, as a share, to count earlier ones."""


@final
class AccountantPerRound(RunRule):
    """A client reports an epsilon that does not grow, although it trains again."""

    name = "accountant-per-round"
    severity = "critical"
    title = "the reported epsilon is that of a round, and forgets earlier ones"
    mend = (
        "Make the engine and its accountant once for each client, keep them from round to "
        "round, and report the epsilon of all rounds."
    )
    reference = (
        "flwrlabs/flower examples/opacus: a new PrivacyEngine in every message; "
        "meta-pytorch/opacus #688"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Look whether the epsilon that a client reports grows with its rounds."""
        reports = _reported(run)
        if not any(len(values) > 1 for values in reports.values()):
            return None
        still = {
            key: values
            for key, values in reports.items()
            if len(values) > 1 and _is_flat(values) and not _is_promise(run, values)
        }
        if not still:
            return ()
        (party, name), values = next(iter(still.items()))
        clients = len({sender for sender, _ in still})
        return (
            Fault(
                f"{clients} client{'' if clients == 1 else 's'} report an epsilon that does "
                f"not grow over {len(values)} rounds: each is that of its own round.",
                f"{party}, metric {name!r}",
                "epsilon by round: " + _listed(values),
            ),
        )


def spent_metrics(update: Update) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a reply that state an epsilon as spent."""
    for name, value in update.metrics.items():
        if SPENT.search(name.replace("_", " ")) and not BUDGET.search(name):
            yield name, value


def _reported(run: RunEvidence) -> dict[tuple[Party, str], list[float]]:
    found = defaultdict[tuple[Party, str], list[float]](list)
    for message in run.messages:
        if isinstance(message.body, Update):
            for name, value in spent_metrics(message.body):
                found[message.sender, name].append(value)
    return found


def _is_flat(values: Sequence[float]) -> bool:
    return max(values) <= min(values) * (1 + EQUAL) and min(values) > 0


def _is_promise(run: RunEvidence, values: Sequence[float]) -> bool:
    """Return whether they repeat an epsilon that holds for all rounds."""
    return any(
        one.mechanism.stated is not None
        and abs(one.mechanism.stated - values[0]) <= EQUAL * values[0]
        and one.mechanism.stated_for == "run"
        and one.accounted.claim == "holds"
        for one in run.mechanisms
    )


def _listed(values: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.4g}" for value in values[:6])
    return shown + (", ..." if len(values) > 6 else "")
