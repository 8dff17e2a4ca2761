"""The ranges of the numbers that the files of a run state."""

from typing import Annotated

from pydantic import Field

MAX_EXAMPLES = 2**53
"""Exclusive upper bound of a client's example count: float64 represents smaller integers."""

MAX_ROUNDS = 10**9
"""Exclusive upper bound of a round number: names of late joiners have at most 9 digits."""

RoundNumber = Annotated[int, Field(ge=0, lt=MAX_ROUNDS)]

ExampleCount = Annotated[int, Field(ge=0, lt=MAX_EXAMPLES)]

RecordIndex = Annotated[int, Field(ge=0, lt=MAX_EXAMPLES)]

Share = Annotated[float, Field(ge=0, le=1)]
