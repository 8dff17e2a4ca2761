"""Whole numbers from 1 on, as a plan may give them."""

from typing import Annotated

from pydantic import Field

Positive = Annotated[int, Field(ge=1, lt=2**31)]
