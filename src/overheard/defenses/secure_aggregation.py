"""Secure aggregation: no party reads a single update, only the cohort's mean."""

from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.defense import Defense, RunParameters
from overheard.core.mechanism import Site


@final
@dataclass(frozen=True, slots=True)
class SecureAggregation(Defense):
    """Clients mask their updates so that the masks cancel in the sum.

    The simulation computes no masks, because an audit needs only which party can read what. An
    update, its size (`Update.examples`) and its metrics are readable only by its sender. The
    server reads an exact `Aggregate` with its cohort and total number of examples.

    It hides which client sent which update, but not the sum, which has no noise. A cohort of
    one client, or one whose other clients collude with the server, hides nothing. The real
    protocol sums integers, so that masks cancel; the rounding for this is not simulated.
    """

    name: ClassVar[str] = "secure_aggregation"
    source: ClassVar[str] = "Bonawitz et al. 2017 (CCS), the honest-but-curious protocol"
    enforced_at: ClassVar[Site] = "protocol"
    switched_off_by: ClassVar[str] = (
        "no single party: if a client leaves out its mask, the sum is useless. But a server "
        "that chooses the cohorts can make them small, and one that falsely reports clients as "
        "disconnected can unmask updates"
    )
    masks_updates: ClassVar[bool] = True

    def promise(self, run: RunParameters) -> str:
        """State what is hidden from whom; there is no promise about the sum itself."""
        return (
            "no formal promise about what the sums reveal (no noise is added). In each of "
            f"the {run.rounds} rounds no party reads a single update or its number of "
            "examples, if two clients or more do not collude with the server. The cohort's "
            "mean update, its clients and their total number of examples can be read"
        )
