"""The setting of the experiments, and what the paper does not say."""

from collections.abc import Iterable

from overheard_studies.deanonymization.published_numbers import published_user_count
from overheard_studies.deanonymization.scenarios import IdentityScenario

COMMON = (
    "Of the paper's data only the blog corpus is available, and only a part of it. The other "
    "data sets are replaced by stand-ins, so a published value next to one of these is for "
    "other data. As published, both devices of a user take part in the run: the anonymous one "
    "and the shadow device with its prior examples. These have therefore shaped the model too, "
    "even for attacks with simulated updates, which need no shadow devices. The paper trains "
    "for days: 200 rounds at participation 0.1, rate 0.01 and an unknown batch size. Here it "
    "is 10 to 24 rounds, at a rate and participation at which a small model learns in them. "
    "The server therefore observes a device 2 to 12 times instead of 20. A fifth of each "
    "user's data is the test set; the rest is split in half into prior and private data. Every "
    "update has its own pseudonym, as published. Average precisions "
    "are means over users, with ties broken at random. Chance is the expected value of a "
    "random order; it exceeds the paper's 1 / users, which makes times chance smaller. The "
    "IID control redistributes private examples at random among all users. Attackers learn "
    "from all updates of known users; simulated updates are trained in some rounds, evenly "
    "spaced. Overheard's own attack (reidentify_wccn) is not part of the paper: it trains "
    "known users in at most 6 rounds, as more did not help, on four chunks of a user's "
    "prior examples. It also links updates of different rounds and assigns users one to one, "
    "where it is not called unlinked. The paper's attacks judge each update by itself."
)


def common_differences(scenarios: Iterable[IdentityScenario]) -> str:
    """Describe the differences from the paper for these scenarios."""
    return " ".join([COMMON, *(scenario_differences(scenario) for scenario in scenarios)])


def scenario_differences(scenario: IdentityScenario) -> str:
    """Describe the differences from the paper for one scenario."""
    comparison = (
        ""
        if scenario.paper is None
        else f" (compared with {scenario.paper.capitalize()}, "
        f"{published_user_count(scenario.paper)} users)"
    )
    return (
        f"{scenario.name}{comparison}: {scenario.note}. Settings: rate {scenario.rate:g}, "
        f"batch {scenario.batch}, participation {scenario.participation:g}, {scenario.rounds} "
        f"rounds, known users trained in {scenario.most_rounds} rounds."
    )
