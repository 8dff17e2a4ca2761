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
participation = {participation}

[[threats]]
observers = {observers}
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
    observers: tuple[str, ...] = ("server",),
    participation: float = 1.0,
) -> tuple[str, ...]:
    text = PLAN.format(
        attack=attack,
        data=data,
        seeds=list(range(seeds)),
        rounds=rounds,
        about=about,
        observers=list(observers),
        participation=participation,
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


SHARES = "[[0.9, {rest}], [{rest}, 0.9], [0.9, {rest}], [{rest}, 0.9], [0.9, {rest}]]".format(
    rest=", ".join(["0.0125"] * 8) + ", 0.0"
)


def stated(compositions: str, examples: str = "20", clients: int = 5) -> str:
    return (
        f'split = {{ kind = "shares", compositions = {compositions} }}\n'
        f"clients = {clients}\nexamples = {examples}"
    )


def disjoint_shares(clients: int) -> str:
    """Stated shares of clients that each have a label of their own."""
    rows = [[float(label == number) for label in range(10)] for number in range(clients)]
    return str(rows)


def test_an_observer_is_no_target() -> None:
    # 5 clients with stated shares have 120 orders, the 4 that do not observe 24.
    assert missing("decaf", stated(disjoint_shares(5))) == ()
    (sentence,) = missing("decaf", stated(disjoint_shares(5)), observers=("server", "client/0"))
    assert sentence.endswith("plan is 0.042, and 0.025 is needed: take 6 clients.")
    assert len(missing("decaf", recorded=5, observers=("server", "client/0"))) == 1
    assert missing("decaf", recorded=6, observers=("server", "client/0")) == ()


def test_clients_that_are_never_sampled_are_no_targets() -> None:
    # 4 of 8 clients are sampled in a round: in one round 24 orders, in two more than enough.
    eight = stated(disjoint_shares(8), clients=8)
    assert missing("decaf", eight, rounds=2, participation=0.5) == ()
    (sentence,) = missing("decaf", eight, rounds=1, participation=0.5)
    assert "p-value of this plan is 0.042" in sentence
    # Two senders in each of 4 rounds: 2^3 permutations, not 4!^3.
    assert missing("link_wccn", simulated(4), rounds=4) == ()
    assert len(missing("link_wccn", simulated(4), rounds=4, participation=0.5)) == 1


def test_clients_with_equal_stated_shares_change_nothing() -> None:
    # Three clients of one kind and two of another: 10 orders.
    (sentence,) = missing("decaf", stated(SHARES))
    assert "p-value of this plan is 0.1," in sentence
    # Of five and four with an observer among the five, 8! / 4! / 4! = 70 orders remain.
    nine = stated(str([*[[1.0] + [0.0] * 9] * 5, *[[0.0] * 9 + [1.0]] * 4]), clients=9)
    assert missing("decaf", nine, observers=("server", "client/0")) == ()


def test_cohorts_of_stated_shares_must_vary() -> None:
    assert missing("bias_inversion", stated(SHARES, "[20, 40]"), seeds=5, about="cohort") == ()
    (sentence,) = missing("bias_inversion", stated(SHARES), seeds=5, about="cohort")
    assert "p-value of this plan is 1," in sentence
    assert "take" not in sentence


def test_controls_that_cannot_be_natural_are_not_proposed() -> None:
    exact = f'{SHIFT}\nexchanges = "exact"'
    for data in (simulated(3, exact), simulated(3)):
        (sentence,) = missing("shift_tracking", data)
        assert sentence.endswith(
            'simulate clients that shift (data.shifts), with data.exchanges = "natural".'
        )
