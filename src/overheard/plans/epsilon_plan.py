"""How a plan bounds epsilon from canaries, chosen before the run."""

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field

from overheard.core.settings import PositiveShare
from overheard.plans.strict_model import StrictModel


class EpsilonPlan(StrictModel):
    """How epsilon is bounded from below by guesses about canaries.

    All of it is chosen before the run: a bound whose attack, guesses or level were chosen by
    what attacks said is an estimate, and proves nothing.

    Args:
        attack: the membership attack whose scores are used, such as "whitened_membership".
            Omitted: the best one on half of the canaries; the other half gives the bound.
        guesses: share of the canaries that the attack guesses, those with the highest and with
            the lowest scores. Omitted: 30 % of up to 500 canaries, 15 % from 1,000 on, and in
            between on the line through both.
        level: probability that any true claim of the audit is called violated; it is divided
            by the number of claims and observers that could be called so.

    """

    attack: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    guesses: PositiveShare | None = None
    level: Annotated[float, Field(gt=0, le=0.5)] = 0.05

    def digest(self, attacks: Iterable[Mapping[str, Any]]) -> str:
        """Return a digest of these choices, of the attacks to choose from, and what they use.

        Args:
            attacks: each membership attack with its observers and settings, and the data and
                training that attackers suppose, in JSON types.

        """
        stated = [self.model_dump(mode="json"), *attacks]
        text = json.dumps(stated, sort_keys=True)
        return blake2b(text.encode(), digest_size=6).hexdigest()
