from overheard.papers.whispers.benchmark import MNIST, WhispersBenchmark
from overheard.papers.whispers.local_noise import arm
from overheard.papers.whispers.methods import METHODS
from overheard.papers.whispers.plans import place_of, plan
from overheard.papers.whispers.scenario import uneven
from overheard.plans.plan import UNDEFENDED


def test_virtual_clients_are_made_like_the_real_ones(tiny: WhispersBenchmark) -> None:
    scenario = uneven(tiny)[0]
    one = plan(scenario, tiny.full, quick=False)
    virtual = one.threats[0].virtual
    assert virtual.splits == (scenario.split,) == (one.data.split,)
    assert virtual.examples == one.data.sizes == (60, 100)


def test_the_attacker_knows_of_the_noise_where_there_is_any(tiny: WhispersBenchmark) -> None:
    scenario = uneven(tiny)[0]
    quiet = plan(scenario, tiny.full, quick=False)
    noisy = plan(scenario, tiny.full, quick=False, arms=(arm(1.0),))
    assert "defenses" not in quiet.threats[0].knows
    assert "defenses" in noisy.threats[0].knows


def test_only_a_hurry_cuts_an_attack_short() -> None:
    leisure = plan(uneven(MNIST)[0], MNIST.full, quick=False).threats[0].attacks
    hurry = plan(uneven(MNIST)[0], MNIST.reduced, quick=True).threats[0].attacks
    assert leisure == tuple(one.attack for one in METHODS)
    assert [here == there for here, there in zip(leisure, hurry, strict=True)] == [
        True, True, False, True, False,
    ]  # fmt: skip


def test_a_place_is_called_as_the_report_calls_it(tiny: WhispersBenchmark) -> None:
    one = plan(uneven(tiny)[0], tiny.reduced, quick=True)
    place = place_of(one, 3, UNDEFENDED)
    assert place.attack.startswith("whispers(size='doubling'), with 32 virtual clients")
    assert place.rounds == (0, 1)
