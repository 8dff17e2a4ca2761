"""A plan says before it runs which verdicts it cannot give."""

import pytest

from overheard.plans.plan import parse_plan
from overheard.plans.planned_verdicts import describe_missing_verdicts

PLAN = """
seeds = {seeds}

[data]
source = "digits"
{data}

[training]
model = "logistic"
rounds = {rounds}
rate = 0.1

[[threats]]
attacks = ["{attack}"]
about = "{about}"
"""

SIMULATED = 'split = {{ kind = "{split}" }}\nclients = {clients}\nexamples = 20\n{more}'


def missing(
    attack: str,
    data: str = "",
    *,
    seeds: int = 1,
    rounds: int = 4,
    about: str = "clients",
    recorded: int | None = None,
) -> tuple[str, ...]:
    text = PLAN.format(
        attack=attack,
        data=data,
        seeds=list(range(seeds)),
        rounds=rounds,
        about=about,
        margins="",
    )
    return describe_missing_verdicts(parse_plan(text, "plan"), recorded)


def simulated(clients: int, more: str = "", split: str = "iid") -> str:
    return SIMULATED.format(clients=clients, more=more, split=split)


def test_simulated_shares_can_always_be_judged() -> None:
    assert missing("decaf", simulated(2)) == ()


def test_a_recording_needs_five_clients() -> None:
    # 4 clients have 24 permutations: 1 / 24 = 0.042.
    (sentence,) = missing("decaf", recorded=4)
    assert sentence == (
        'The server, about each client, label_shares: the verdict will be "not enough to '
        'judge". The smallest p-value of this plan is 0.042, and 0.025 is needed: take 5 '
        "clients."
    )
    assert missing("decaf", recorded=5) == ()


def test_the_cohort_of_a_recording_cannot_be_judged() -> None:
    (sentence,) = missing("bias_inversion", about="cohort", recorded=20)
    assert "p-value of this plan is 1," in sentence
    assert "take" not in sentence


SHIFT = "refresh_every = 1\nshifts = [{ client = 0, round = 2, distortion = 0.5 }]"


def test_shifts_need_six_seeds_or_more_controls() -> None:
    # 2^-5 = 0.031 and 2^-6 = 0.016; with 2 controls of each of 5 seeds 3^-5.
    (sentence,) = missing("shift_tracking", simulated(3, SHIFT), seeds=5)
    assert sentence.endswith(
        "0.031, and 0.025 is needed: take 6 seeds or 2 natural controls of each seed."
    )
    assert missing("shift_tracking", simulated(3, SHIFT), seeds=6) == ()


def test_one_seed_with_a_shift_needs_39_controls() -> None:
    (sentence,) = missing("shift_tracking", simulated(3, SHIFT))
    assert sentence.endswith("take 6 seeds or 39 natural controls of each seed.")


def test_natural_controls_are_counted() -> None:
    assert missing("shift_tracking", simulated(3, f"{SHIFT}\nnatural_controls = 39")) == ()
    exact = missing("shift_tracking", simulated(3, f'{SHIFT}\nexchanges = "exact"'), seeds=9)
    assert "p-value of this plan is 1," in exact[0]


def test_membership_needs_records_that_could_belong_to_others() -> None:
    records = "candidates = { members = 5, outsiders = 20 }"
    assert missing("lira", simulated(3, records)) == ()
    canaries = 'candidates = { members = 5, outsiders = 20, canaries = "labelled" }'
    assert missing("lira", canaries, recorded=2) == ()
    (sentence,) = missing("lira", records, recorded=2)
    assert sentence.endswith("0.025 is needed: take canaries.")


@pytest.mark.parametrize(("rounds", "clients", "is_enough"), [(1, 20, False), (3, 4, True)])
def test_linkage_needs_several_rounds(rounds: int, clients: int, is_enough: bool) -> None:
    # 24 permutations of 4 senders in each round after the first: 24^2.
    found = missing("link_wccn", simulated(clients), rounds=rounds)
    assert (found == ()) == is_enough
    assert all(sentence.endswith("take more rounds.") for sentence in found)
