"""What our setting of the shift paper's experiments is, and what the paper does not say."""

from overheard.papers.shift.world import BATCH, ShiftScenario

COMMON = (
    "The paper gives the networks, the rounds, the round of the shift, the sizes of clients "
    "and Adam's rate (1e-4, for the centralised model; taken for the federation too). It "
    f"does not give the batch (ours: {BATCH}), the length of the trend (ours: the five "
    "rounds before), the examples for validation and representations (ours: the attacker's "
    "own, 100 of them for representations), nor a pooling layer, without which its network "
    "for images would have 4.7 and not 1.2 million parameters. Rounds are numbered from 0, "
    "so that the paper's round 11 is our 10. Adam starts anew every round. At the round of "
    "the shift the clients that shift exchange all their examples for fresh ones, odd "
    "labels fewer and even ones more by the same factors whatever was held; nothing is "
    "exchanged before. The Procrustes distance is taken between parts of norm 1, so that it "
    "is a function of the cosine; the central moment discrepancy is not scaled, as printed. "
    "The control is ours: the same run up to the shift, at which as many examples are "
    "exchanged for fresh ones of the same kind. The paper has none, so what it reads off "
    "its plots may be the exchange. Divergences are told on the measure's own scale and in "
    "standard errors of its trend; intervals are Student's over runs, as these are too few "
    "to draw from; there are six in place of the paper's three. The plots print no numbers, "
    "so that the paper's sentences stand in their place, and whether each of them holds "
    "here."
)

CENTRALISED = (
    "The model without a federation is here a federation of one client that trains one "
    "epoch a round and is heard by the server: the same steps, but that Adam's running "
    "means start anew with every epoch, where the paper's go on."
)


def common(world: ShiftScenario) -> str:
    """What departs from the paper wherever this data set is used."""
    return f"{COMMON} {supply(world)}"


def supply(world: ShiftScenario) -> str:
    """How often clients could exchange their examples, and how long a full run takes."""
    held = 2 * world.full.examples[2]
    spare = world.pool - world.full.auxiliary - held
    return (
        f"{world.name} has {world.pool:,} examples to train on, of which the attacker "
        f"validates with {world.full.auxiliary:,} and two clients hold {held:,}: enough for "
        f"{spare // held} exchanges of all that both hold, of which the runs make half a one. "
        "On two cores all runs of one setting at full size take about "
        f"{hours(world.hours)}, and those of ten clients leave {world.disk:g} GB of "
        "transcripts; they are taken up again where they were stopped."
    )


def hours(count: float) -> str:
    """A time in words.

    >>> hours(0.1), hours(1.0), hours(2.4)
    ('6 minutes', '1 hour', '2.4 hours')
    """
    if count < 1:
        return f"{60 * count:.0f} minutes"
    return f"{count:g} hour" + ("" if count == 1 else "s")
