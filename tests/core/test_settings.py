"""Whoever makes settings of a wrong type or out of range is told which, in plain words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Lt, MinLen

from overheard.core.settings import Positive, Settings


@dataclass(frozen=True, slots=True)
class Walk(Settings):
    """Settings of many types."""

    steps: Positive
    pace: Annotated[float, Gt(0), Lt(1)] = 0.5
    stops: Annotated[tuple[Positive, ...], MinLen(1)] = (1,)
    place: Literal["hill", "wood"] = "hill"
    dog: str | None = None
    is_long: bool = False
    rest: Annotated[int, Ge(0)] | None = None
    extra: Mapping[str, int] = field(default_factory=dict)

    def check_together(self) -> None:
        """Refuse a rest that is no shorter than the walk."""
        if self.rest is not None and self.rest >= self.steps:
            raise ValueError("rest must be below steps")


def test_accepts_settings_in_range_and_changes_none():
    walk = Walk(3, 1e-9, (1, 2), "wood", "Rex", True, 2)
    assert replace(walk, stops=(4,)) == Walk(3, 1e-9, (4,), "wood", "Rex", True, 2)


# Any: settings of a wrong type.
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 0}, "steps must be 1 or more, got 0"),
        ({"steps": True}, "steps must be a whole number, got True"),
        ({"steps": 2.0}, "steps must be a whole number, got 2.0"),
        (
            {"steps": np.int64(2)},
            "steps must be a whole number, got np.int64(2): convert it by int(...)",
        ),
        ({"steps": 2**40}, "steps must be below 2147483648, got 1099511627776"),
        ({"pace": 0}, "pace must be above 0, got 0"),
        ({"pace": 1.0}, "pace must be below 1, got 1.0"),
        ({"pace": nan}, "pace must be a finite number, got nan"),
        ({"pace": -inf}, "pace must be a finite number, got -inf"),
        ({"pace": "fast"}, "pace must be a number, got 'fast'"),
        ({"stops": ()}, "stops must have 1 or more entries, got ()"),
        ({"stops": [1]}, "stops must be a list, in Python a tuple, got [1]"),
        ({"stops": (1, 0)}, "stops[1] must be 1 or more, got 0"),
        ({"place": "sea"}, "place must be 'hill' or 'wood', got 'sea'"),
        ({"dog": 3}, "dog must be text, got 3"),
        ({"is_long": 1}, "is_long must be true or false, got 1"),
        ({"rest": -1}, "rest must be 0 or more, got -1"),
        ({"rest": 9}, "rest must be below steps"),
        (
            {"steps": 0, "pace": 2},
            "steps must be 1 or more, got 0; pace must be below 1, got 2",
        ),
    ],
)
def test_refuses_other_settings_in_plain_words(given: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        Walk(**({"steps": 3} | given))


def test_refuses_a_class_that_would_skip_the_checks():
    with pytest.raises(TypeError, match="Skipping defines __post_init__: name it"):

        class Skipping(Settings):
            def __post_init__(self) -> None:
                """Check nothing."""

    class Checking:
        def __post_init__(self) -> None:
            """Check nothing."""

    with pytest.raises(TypeError, match="Inheriting defines __post_init__: name it"):

        class Inheriting(Checking, Settings):
            """Its first base would hide the checks."""


def test_refuses_a_setting_that_would_not_be_checked():
    @dataclass(frozen=True)
    class Hidden(Settings):
        _steps: Positive = 1

    with pytest.raises(TypeError, match="Hidden: _steps: name it without a leading underscore"):
        Hidden(0)
