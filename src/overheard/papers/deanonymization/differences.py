"""What our setting of the paper's experiments is, and what the paper does not say."""

from collections.abc import Iterable

from overheard.papers.deanonymization.printed import users_of
from overheard.papers.deanonymization.world import IdentityScenario

COMMON = (
    "Of the paper's data only the blog corpus is at hand, and a part of it; the others have "
    "stand-ins, and a published number beside one of these is of other data. Both devices of a "
    "user, the anonymous one and the shadow of its prior, take part in the run, as published; "
    "so the prior has shaped the model too, for attacks with simulated updates as well, which "
    "otherwise do without shadow devices. The paper trains 200 rounds at participation 0.1, "
    "rate 0.01 and an untold batch, for days; ours are 10 to 24 rounds at a rate and "
    "participation at which a small model learns in them, so that a device is heard 2 to 12 "
    "times in place of 20. A fifth of each user's data is the test here, the rest is halved "
    "into prior and private. Every update is judged under a pseudonym of its own, as "
    "published. Average precisions are means over users, ties broken by chance; chance is what "
    "a random order is expected to get, which is above the paper's 1 / users, so that times "
    "chance are the smaller for it. The IID control deals private examples anew among all "
    "users. Attackers learn from all updates of known users; simulated ones are trained in "
    "some rounds, evenly spaced. Ours (reidentify_wccn) is no attack of the paper: it trains "
    "known users in 6 rounds at most, as more were worth no more, on four pieces of each prior."
)


def common(worlds: Iterable[IdentityScenario]) -> str:
    """What departs from the paper on these data."""
    return " ".join([COMMON, *(noted(world) for world in worlds)])


def noted(world: IdentityScenario) -> str:
    """What departs on one of them."""
    beside = (
        ""
        if world.paper is None
        else f" (beside {world.paper.capitalize()}, {users_of(world.paper)} users)"
    )
    return (
        f"{world.name}{beside}: {world.note}; rate {world.rate:g}, batch {world.batch}, "
        f"participation {world.participation:g}, {world.rounds} rounds, known users trained in "
        f"{world.most_rounds}."
    )
