"""Secure aggregation: nobody reads a single update, only a cohort's mean."""

from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.defense import Defense, Run, Site


@final
@dataclass(frozen=True, slots=True)
class SecureAggregation(Defense):
    """Clients mask their updates so that the masks cancel in the sum.

    The masks are not computed here: what matters to an audit is who can read what. An update,
    its size (`Update.examples`) and its metrics are readable by its sender alone; the
    server reads an `Aggregate`, exact, with its members and their total size.

    It hides who said what, not what was said: the sum has no noise. A cohort of one, or one
    whose other members collude with the server, hides nothing. The sum must be taken where
    masks can cancel, in whole numbers; the rounding that this takes is left out.
    """

    name: ClassVar[str] = "secure_aggregation"
    source: ClassVar[str] = "Bonawitz et al. 2017 (CCS), the honest-but-curious protocol"
    enforced_at: ClassVar[Site] = "protocol"
    switched_off_by: ClassVar[str] = (
        "nobody alone: a missing mask spoils the sum; yet a server that chooses the cohorts "
        "can make them small, and one that lies about who dropped out can unmask them"
    )
    masks_updates: ClassVar[bool] = True

    def promise(self, run: Run) -> str:
        """What is hidden from whom; nothing about what the sum itself gives away."""
        return (
            "no formal promise about what the sums give away (no noise is added); of each of "
            f"the {run.rounds} rounds nobody reads a single update or its size, only the "
            "cohort's mean update, its members and their total size, as long as two members or "
            "more do not collude with the server"
        )
