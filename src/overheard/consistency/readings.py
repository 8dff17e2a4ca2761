"""The closed list of readings: what replies may hold, and how that looks in what is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, final

from overheard.consistency.evidence import CHANGES, Sum
from overheard.consistency.proof import Reading

NOTHING_MORE: Mapping[str, float] = {}

Part = Literal["", "+b", "-b", "'"]
"""What is taken of the mean of the stored replies: the mean, the mean plus or minus the
broadcast, or the mean of the round before."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReadingCase:
    """What replies may hold, and the true mean difference that then follows from the stored.

    A stored reply is taken for a client's weights minus the broadcast of its round.

    Args:
        words: what the replies are, as a clause about "they".
        mend: what the user should do, as a clause; "" for the reading as stored.
        reading: what replies hold.
        part: the part of the stored mean that is taken.
        more: what is added to it.
        sign: the direction of the server's step; -1 = against the replies.
        target: the change that the replies of the round lead to.
        base: how many broadcasts back the replies began; -1 = from the one after.
        saved: whether the model of a round was saved before or after its aggregation.

    """

    words: str
    mend: str = ""
    reading: Reading = "weights"
    part: Part = ""
    more: Sum = field(default_factory=lambda: NOTHING_MORE)
    sign: int = 1
    target: Literal["c0", "c1"] = "c0"
    base: int = 0
    saved: Literal["before", "after"] = "before"

    def mean_difference(self, mean: str) -> dict[str, float]:
        """Return the true mean difference times the sign, by the name of the mean."""
        return {
            f"{mean}{self.part}": float(self.sign),
            **{name: self.sign * factor for name, factor in self.more.items()},
        }

    @property
    def change_before(self) -> str:
        """The change before the target, along which momentum carries the model."""
        return CHANGES[CHANGES.index(self.target) + 1]


STATED = ReadingCase("the replies are what they are stored as")
"""The reading as stored."""

DIFFERENCES_MEND = (
    "read the replies as differences: `overheard import --kind differences`, or "
    'kind="differences" in the recorder'
)
WEIGHTS_MEND = (
    "read the replies as weights: `overheard import --kind weights`, or "
    'kind="weights" in the recorder'
)
GRADIENTS_MEND = (
    "read the replies as gradients: `overheard import --kind gradients --rate RATE`, or "
    'kind="gradients", rate=RATE in the recorder'
)
CODES_MEND = (
    "state by what the whole-number codes are multiplied (codes in about.toml, or scales=... "
    "in the recorder), or turn them back into numbers before the run is exported"
)
AFTER_MEND = (
    "the global model of each round was saved after its aggregation: state "
    '`saved = "after"` in about.toml and import again'
)
EARLY_MEND = (
    "the global model of each round is that of the round before: move the global models one "
    "round on and import again"
)
BASE_MEND = (
    "state the round that each reply began from (began_in under [[answers]] in about.toml, or "
    "began_in=... in the recorder), and import or record again"
)


def _after(
    words: str, mend: str, reading: Reading, part: Part, sign: int = 1, **more: float
) -> ReadingCase:
    both = AFTER_MEND if not mend else f"{AFTER_MEND}; and {mend}"
    return ReadingCase(
        f"{words}, and the models are those after the aggregation",
        both,
        reading,
        part,
        more,
        sign,
        target="c1",
        saved="after",
    )


OTHER_READINGS = (
    ReadingCase(
        "they are differences that were read as weights", DIFFERENCES_MEND, "differences", "+b"
    ),
    ReadingCase(
        "they are weights that were read as differences", WEIGHTS_MEND, "weights", "-b"
    ),
    ReadingCase(
        "they are gradients, which the server subtracts",
        f"{GRADIENTS_MEND}; if they were read as gradients already, {DIFFERENCES_MEND}",
        "gradients",
        sign=-1,
    ),
    ReadingCase(
        "they are gradients that were read as weights",
        GRADIENTS_MEND,
        "gradients",
        "+b",
        sign=-1,
    ),
    _after("they are weights", "", "weights", "", c1=1.0),
    _after("they are differences", "", "differences", ""),
    _after(
        "they are differences that were read as weights", DIFFERENCES_MEND, "differences", "+b"
    ),
    _after(
        "they are weights that were read as differences",
        WEIGHTS_MEND,
        "weights",
        "-b",
        c1=1.0,
    ),
    _after(
        "they are gradients, which the server subtracts", GRADIENTS_MEND, "gradients", "", -1
    ),
    _after(
        "they are gradients that were read as weights", GRADIENTS_MEND, "gradients", "+b", -1
    ),
    ReadingCase(
        "they began from the broadcast of the round before",
        BASE_MEND,
        more={"c1": 1.0},
        base=1,
    ),
    ReadingCase(
        "they began from the broadcast two rounds before",
        BASE_MEND,
        more={"c1": 1.0, "c2": 1.0},
        base=2,
    ),
    ReadingCase(
        "they began from the broadcast three rounds before",
        BASE_MEND,
        more={"c1": 1.0, "c2": 1.0, "c3": 1.0},
        base=3,
    ),
    ReadingCase(
        "they began from the broadcast that is stored in the round after",
        EARLY_MEND,
        part="'",
        more={"c1": -1.0},
        base=-1,
    ),
)
"""All readings but the stored one, from the plainest on: the first that follows is taken."""


@final
@dataclass(frozen=True, slots=True)
class MixedCase:
    """What a part of the replies of a round may hold, while the others are as stored.

    Args:
        words: what these replies are, as a clause.
        description: what one of them is, as a clause about its sender.
        mend: what the user should do, as a clause.
        vector: the sum that is missing in the stored replies, which their senders show by
            containing minus it.
        reading: what these replies hold.
        base: how many broadcasts back they began.

    """

    words: str
    description: str
    mend: str
    vector: Literal["b", "-b", "base1", "base2", "base3"]
    reading: Reading = "weights"
    base: int = 0


MIXED_CASES = (
    MixedCase(
        "some replies are differences that were read as weights",
        "its reply is a difference that was read as weights",
        DIFFERENCES_MEND,
        "b",
        "differences",
    ),
    MixedCase(
        "some replies are weights that were read as differences",
        "its reply is weights that were read as a difference",
        WEIGHTS_MEND,
        "-b",
        "weights",
    ),
    MixedCase(
        "some replies began from the broadcast of the round before",
        "its reply began from the broadcast of the round before",
        BASE_MEND,
        "base1",
        base=1,
    ),
    MixedCase(
        "some replies began from the broadcast two rounds before",
        "its reply began from the broadcast two rounds before",
        BASE_MEND,
        "base2",
        base=2,
    ),
    MixedCase(
        "some replies began from the broadcast three rounds before",
        "its reply began from the broadcast three rounds before",
        BASE_MEND,
        "base3",
        base=3,
    ),
)
"""Readings of a part of the replies."""
