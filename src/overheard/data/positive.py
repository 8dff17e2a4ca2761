"""The type of positive whole numbers in a plan."""

from typing import Annotated

from pydantic import Field

Positive = Annotated[int, Field(ge=1, lt=2**31)]
