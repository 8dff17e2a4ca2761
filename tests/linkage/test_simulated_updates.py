from dataclasses import replace

import pytest

from overheard.core.compute_settings import ComputeSettings
from overheard.defenses.noise import Noise
from overheard.linkage import simulated_updates as module
from overheard.linkage.prior_client import split_priors
from overheard.linkage.simulated_updates import simulate_updates
from tests.linkage.four_users import make_knowledge, priors
from tests.simulation.small_run import CountingCache, blobs, broadcast

LEARNERS = split_priors(priors(), 2)
ROUNDS = {number: broadcast(number) for number in (0, 3)}
LAST = ("2.weight", "2.bias")


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch) -> None:
    """Two clients a job: seven clients make four jobs a round."""
    monkeypatch.setattr(module, "CHUNK", 2)


def same(one, other) -> bool:
    return (
        one.vectors.equal(other.vectors)
        and one.clients.equal(other.clients)
        and one.rounds.equal(other.rounds)
    )


def test_no_layer_repeats_the_training() -> None:
    shelf = CountingCache()
    simulate_updates(ROUNDS, make_knowledge(shelf=shelf), LEARNERS, LAST)
    saved = list(shelf.saved)
    assert len(saved) == 2 * 4
    known = make_knowledge(shelf=shelf)
    first = simulate_updates(ROUNDS, known, LEARNERS, ("0.weight",))
    assert shelf.saved == saved
    assert same(first, simulate_updates(ROUNDS, make_knowledge(), LEARNERS, ("0.weight",)))


@pytest.mark.parametrize(
    "change",
    [
        {"recipe": replace(make_knowledge().recipe, rate=0.3)},
        {"defenses": (Noise(0.1),)},
        {
            "compute": replace(
                make_knowledge().compute, seed=make_knowledge().compute.seed.child(1)
            )
        },
    ],
)
def test_trains_again_if_updates_would_change(change) -> None:
    shelf = CountingCache()
    known = make_knowledge(shelf=shelf)
    before = simulate_updates(ROUNDS, known, LEARNERS, LAST)
    other = replace(known, **change)
    other = replace(other, compute=replace(other.compute, cache=shelf))
    assert not same(simulate_updates(ROUNDS, other, LEARNERS, LAST), before)
    assert len(shelf.saved) == 2 * 2 * 4


def test_the_background_matters_only_with_known_defenses() -> None:
    shelf = CountingCache()
    for background in (None, blobs(2)):
        known = make_knowledge(shelf=shelf, background=background)
        simulate_updates(ROUNDS, known, LEARNERS, LAST)
    assert len(shelf.saved) == 2 * 4
    for background in (None, blobs(2)):
        known = make_knowledge(shelf=shelf, background=background, defenses=(Noise(0.1),))
        simulate_updates(ROUNDS, known, LEARNERS, LAST)
    assert len(shelf.saved) == 3 * 2 * 4


def test_results_before_an_interrupt_are_cached() -> None:
    shelf, calls = CountingCache(), list[tuple[str, int, int]]()

    def interrupt(what: str, done: int, total: int) -> None:
        calls.append((what, done, total))
        if done == 3:
            raise KeyboardInterrupt

    known = make_knowledge(shelf=shelf)
    interrupted = replace(
        known, compute=ComputeSettings(cache=shelf, workers=1, on_progress=interrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        simulate_updates(ROUNDS, interrupted, LEARNERS, LAST)
    assert calls == [("known users", done, 8) for done in (1, 2, 3)]
    assert len(shelf.saved) == 3
    resumed = simulate_updates(ROUNDS, known, LEARNERS, LAST)
    assert same(resumed, simulate_updates(ROUNDS, make_knowledge(), LEARNERS, LAST))
    assert len(shelf.saved) == 8


def test_a_partly_lost_cache_gives_the_same_bits() -> None:
    shelf = CountingCache()
    known = make_knowledge(shelf=shelf)
    before = simulate_updates(ROUNDS, known, LEARNERS, LAST)
    for lost in shelf.saved[1::3]:
        shelf.entries.pop(lost)
    assert same(simulate_updates(ROUNDS, known, LEARNERS, LAST), before)
