"""What a plan says of its report, and of the release of its results."""

from typing import Annotated

from pydantic import AfterValidator, Field

from overheard.plans.retention import parse_retention
from overheard.plans.strict_model import StrictModel

Line = Annotated[str, Field(min_length=1, max_length=500)]


def _check_retention(text: str) -> str:
    parse_retention(text)
    return text


class ReportPlan(StrictModel):
    """What the report of an audit shows; it changes no result.

    Args:
        pictures: whether to write `pictures.html`, with the pictures that attacks reconstruct
            from the data of clients, and the true ones. It is as sensitive as the data.

    """

    pictures: bool = False


class ReleasePlan(StrictModel):
    """Who answers for the results of an audit, and what they are for; all optional.

    Args:
        controller: who answers for the data.
        contact: whom readers of the report may ask.
        purpose: what the trained model is for.
        people: whose data the clients hold.
        recipients: who gets the trained model.
        retention: how long messages and results are stored, from the day of the audit on:
            "30 days" for both, or "messages 30 days, results 3 years". `overheard purge --due`
            removes what was stored longer.

    """

    controller: Line | None = None
    contact: Line | None = None
    purpose: Line | None = None
    people: Line | None = None
    recipients: Line | None = None
    retention: Annotated[Line, AfterValidator(_check_retention)] | None = None
