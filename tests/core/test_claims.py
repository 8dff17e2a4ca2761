"""Claims, facts, and what scores them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from overheard.core.attack import Attack, missing_needs
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Fact, Facts
from overheard.core.knowledge import Knowledge
from overheard.core.needs import MODEL, UPDATES, Need
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.scorer import Better, Score
from overheard.core.seeds import Seed
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth, Partition
from overheard.core.view import View
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import SUM_SLACK, LabelShares
from overheard.questions.same_sender.claim import SameSender


@pytest.mark.parametrize(
    "shares",
    [
        [0.5, 0.6],
        [0.5, 0.4],
        [1.5, -0.5],
        [0.0, 0.0],
        [math.nan, 1.0],
        [math.nan, math.nan],
        [math.inf, 0.0],
        [math.inf, -math.inf],
        [1.0, -1e-9],
        [1.0 + 2 * SUM_SLACK, 0.0],
    ],
    ids=str,
)
def test_refuses_invalid_shares(shares: list[float]):
    with pytest.raises(ClaimError, match="sum to 1"):
        LabelShares(torch.tensor(shares))


def test_refuses_a_number_of_verdicts_other_than_the_number_of_labels():
    with pytest.raises((ClaimError, TypeCheckError)):  # the latter in `make check-types`
        LabelShares(torch.tensor([0.5, 0.5]), torch.tensor([True]))


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, -2.0], [math.nan, 1.0]], ids=str)
def test_weights_without_a_positive_sum_give_uniform_shares(weights: list[float]):
    assert normalize_to_shares(torch.tensor(weights)).tolist() == [0.5, 0.5]


@given(
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_any_weights_become_shares_of_the_same_type(weights: list[float], dtype: torch.dtype):
    given_weights = torch.tensor(weights, dtype=dtype)
    shares = normalize_to_shares(given_weights)
    assert LabelShares(shares).shares.dtype == dtype
    assert given_weights.tolist() == torch.tensor(weights, dtype=dtype).tolist()


@final
@dataclass(frozen=True, slots=True)
class Ages(Fact):
    how_to_get: ClassVar[str] = "the ages of users are missing: add `ages` to truth.json"
    years: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Towns(Fact):
    how_to_get: ClassVar[str] = "the towns of users are missing"
    names: tuple[str, ...] = ()


def test_a_fact_is_found_by_its_kind() -> None:
    facts = Facts[Fact](Ages((30,)), Towns(("Ulm",)))
    assert facts.need(Towns).names == ("Ulm",)
    assert facts.get(Ages) == Ages((30,))


def test_a_missing_fact_says_how_to_get_it() -> None:
    assert Facts[Fact]().get(Ages) is None
    with pytest.raises(NeedsError, match=r"add `ages` to truth\.json"):
        Facts[Fact](Towns()).need(Ages)


def test_two_facts_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="one fact of each kind, got Ages, Ages"):
        Facts[Fact](Ages((1,)), Ages((2,)))


def test_a_newer_fact_replaces_that_of_its_kind() -> None:
    facts = Facts[Fact](Ages((1,)), Towns(("Ulm",))).having(Ages((2,)))
    assert facts.need(Ages).years == (2,)
    assert len(tuple(facts)) == 2


USERS = ("ann", "bob")


@pytest.mark.parametrize(
    ("users", "scores"),
    [
        ((), []),
        (("ann", "ann"), [0.1, 0.2]),
        (USERS, [0.1]),
        (USERS, [0.1, 0.2, 0.3]),
        (USERS, [math.nan, 0.2]),
        (USERS, [math.inf, 0.2]),
        (USERS, [0.1, -math.inf]),
    ],
    ids=[
        "no candidates",
        "repeated",
        "too few",
        "too many",
        "NaN",
        "infinite",
        "minus infinity",
    ],
)
def test_refuses_invalid_scores(users: tuple[str, ...], scores: list[float]) -> None:
    with pytest.raises(ClaimError):
        Identity(users, torch.tensor(scores))
    with pytest.raises(ClaimError):
        SameSender(tuple(map(Party, users)), torch.tensor(scores))


@pytest.mark.parametrize("unseen", [-0.01, 1.01, math.nan])
def test_refuses_an_invalid_probability(unseen: float) -> None:
    with pytest.raises(ClaimError, match="`unseen` must lie in"):
        Identity(USERS, torch.zeros(2), unseen)


@pytest.mark.parametrize(
    ("values", "probabilities"),
    [
        (("left",), [1.0]),
        (("left", "left"), [0.5, 0.5]),
        (("left", "right"), [0.5, 0.6]),
        (("left", "right"), [1.5, -0.5]),
        (("left", "right"), [math.nan, 1.0]),
        (("left", "right"), [1.0]),
    ],
    ids=["one value", "repeated", "above 1", "below 0", "NaN", "too few"],
)
def test_refuses_invalid_probabilities(
    values: tuple[str, ...], probabilities: list[float]
) -> None:
    with pytest.raises(ClaimError):
        Attribute("hand", values, torch.tensor(probabilities))


NOTHING = View(frozenset({SERVER}), ())


LATE = Need("zeal", lambda view, target, knowledge: False)


EARLY = Need("a clear sky", lambda view, target, knowledge: False)


MET = Need("two classes", lambda view, target, knowledge: knowledge.classes == 2)


@final
@dataclass(frozen=True, slots=True)
class Foreign(Attack[LabelShares]):
    """Has built-in needs and needs of its own."""

    name: ClassVar[str] = "foreign"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({LATE, MODEL, MET, UPDATES, EARLY})
    source: ClassVar[str] = "test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return {}


def test_needs_of_plugins_are_checked_and_named_after_built_in_ones():
    missing = missing_needs(Foreign(), NOTHING, client(0), Knowledge(2))
    assert missing == (UPDATES.description, MODEL.description, "a clear sky", "zeal")
    assert "two classes" in missing_needs(Foreign(), NOTHING, client(0), Knowledge(3))


GUESSES = st.dictionaries(st.text(), st.floats(-1e6, 1e6), min_size=1)


@pytest.mark.parametrize(
    ("better", "value", "uninformed", "gain"),
    [
        ("lower", 0.25, 0.5, 0.25),  # the lower of 0.5 and 1 is the better guess
        ("lower", 0.75, 0.5, -0.25),
        ("higher", 0.25, 1.0, -0.75),  # the higher of both is
        ("higher", 1.5, 1.0, 0.5),
    ],
)
def test_gain_is_the_improvement_over_the_best_uninformed_guess(
    better: Better, value: float, uninformed: float, gain: float
):
    score = Score("figure", value, better, {"a": 0.5, "b": 1.0}, {})
    assert score.best_uninformed == uninformed
    assert score.gain == gain


def test_informed_guesses_do_not_affect_the_gain():
    score = Score("l1", 0.2, "lower", {"uniform": 0.5}, {"told": 0.0})
    assert score.gain == pytest.approx(0.3)


@given(st.floats(-1e6, 1e6), GUESSES, st.sampled_from(["lower", "higher"]))
def test_a_gain_is_positive_only_above_every_uninformed_guess(
    value: float, uninformed: dict[str, float], better: Better
):
    gain = Score("figure", value, better, uninformed, {}).gain
    assert gain is not None
    beats = [
        value < guess if better == "lower" else value > guess for guess in uninformed.values()
    ]
    assert (gain > 0) == all(beats)


ONE, TWO = client(1), client(2)


def test_without_the_observers_only_facts_of_the_others_remain():
    truth = GroundTruth(
        Facts(
            UsersOfClients({ONE: "ann", TWO: "bob"}),
            Attributes({"hand": {"ann": "left"}}),
            Shifts({ONE: (1,), TWO: (1,)}),
        ),
        {0: 0.5},
    )
    rest = truth.without_parties((ONE,))
    assert rest.facts.get(UsersOfClients) == UsersOfClients({TWO: "bob"})
    assert rest.facts.get(Shifts) == Shifts({TWO: (1,)})
    # Attributes do not depend on the target.
    assert rest.facts.get(Attributes) == truth.facts.get(Attributes)
    assert rest.accuracy == truth.accuracy


@pytest.fixture
def simulated() -> GroundTruth:
    """Client 1 changes from rows 0 and 1 to row 3; client 2 has rows 1 and 2."""
    pool = Examples(torch.arange(5.0)[:, None], torch.tensor([0, 0, 1, 1, 1]))
    rows = {
        (0, ONE): torch.tensor([1, 0]),
        (0, TWO): torch.tensor([1, 2]),
        (1, ONE): torch.tensor([3]),
    }
    return GroundTruth(partition=Partition(pool, rows))


def inputs_of(truth: GroundTruth, *asked) -> list[float]:
    return truth.examples_of(*asked).inputs.flatten().tolist()


def test_examples_of_a_simulated_run_are_returned_once(simulated: GroundTruth):
    assert inputs_of(simulated, ONE, (0, 1)) == [0, 1, 3]
    assert inputs_of(simulated, ONE, (1,)) == [3]
    assert inputs_of(simulated, COHORT, (0, 1)) == [0, 1, 2, 3]
    assert inputs_of(simulated, TWO, (1,)) == []
    assert inputs_of(simulated.without_parties([ONE]), COHORT, (0, 1)) == [1, 2]
    assert inputs_of(simulated.without_parties([ONE]), ONE, (0, 1)) == []


def test_refuses_to_return_examples_of_a_recorded_run(simulated: GroundTruth):
    truth = GroundTruth()
    for one in (truth, truth.without_parties([ONE])):
        with pytest.raises(NeedsError, match="simulate the run"):
            one.examples_of(ONE, (0,))
    # Two truths with the same stored content may differ in the partition.
    assert "Partition" not in repr(simulated)
