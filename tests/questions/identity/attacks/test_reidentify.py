"""Properties of every attack that treats known users as classes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC

from overheard.core.errors import NeedsError
from overheard.core.known_facts.known_users import (
    NO_EMBEDDINGS,
    NO_PRIOR_EXAMPLES,
    NO_SHADOW_DEVICES,
    KnownUsers,
)
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.questions.identity.attacks.match import MatchSiamese
from overheard.questions.identity.attacks.profile import Profile
from overheard.questions.identity.attacks.reidentify import (
    ReidentifyKnn,
    ReidentifyMlp,
    ReidentifySvm,
    fit_linear_svm,
)
from overheard.testing.planted_users import (
    ALL_USERS,
    KNOWN,
    make_user,
    simulate_users,
    users_of,
)
from tests.runs.changed_updates import change_updates
from tests.runs.identity_claims import infer_claims, share_identified, with_known_users

ATTACKS = [
    ReidentifyMlp(steps=300),
    ReidentifySvm(),
    ReidentifyKnn(),
    MatchSiamese(pairs=3000),
    Profile(steps=100),
]

each_attack = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)

each_cut_attack = pytest.mark.parametrize(
    "attack",
    [attack for attack in ATTACKS if attack.name != "profile"],
    ids=lambda one: one.name,
)
"""All but `profile`, which calls its pieces chunks."""


@each_attack
def test_names_users_by_several_layers_read_together(attack, different) -> None:
    together = replace(attack, layer=("last_bias", -1, "all"))
    assert share_identified(different, infer_claims(together, different)) > 0.5


@each_attack
def test_refuses_a_layer_twice(attack) -> None:
    with pytest.raises(ValueError, match="without repetition"):
        replace(attack, layer=(-1, -1))


@each_cut_attack
def test_chunks_of_a_prior_are_clients_of_their_own(attack, different) -> None:
    whole, halves = (
        infer_claims(replace(attack, pieces=pieces), different) for pieces in (1, 2)
    )
    assert any(not whole[name].scores.equal(halves[name].scores) for name in whole)


@each_attack
def test_learns_from_shadow_devices(attack, different) -> None:
    assert (
        share_identified(different, infer_claims(replace(attack, updates="shadow"), different))
        > 0.5
    )


@each_attack
def test_names_a_lasting_pseudonym_by_all_of_its_updates(attack) -> None:
    users = [make_user(number) for number in ALL_USERS]
    run = simulate_users(users, Seed(0), anonymous=False)
    by_target = infer_claims(attack, run)
    assert len(by_target) == KNOWN + 1
    assert share_identified(run, by_target) > 0.6


@each_attack
def test_two_users_and_one_example_are_enough(attack) -> None:
    few = [replace(make_user(0), size=1), make_user(1), make_user(2)]
    run = simulate_users(few, Seed(0), known=2)
    by_target = infer_claims(attack, run)
    assert len(by_target) == 12
    assert all(claim.users == ("user 0", "user 1") for claim in by_target.values())


@each_attack
def test_refuses_updates_of_only_one_user(attack) -> None:
    run = simulate_users(
        [make_user(n) for n in range(3)],
        Seed(0),
        known=2,
        device_cohorts=dict.fromkeys(range(4), (0,)),
    )
    with pytest.raises(NeedsError, match=r"has them of \['user 0'\]"):
        infer_claims(replace(attack, updates="shadow"), run)


@pytest.mark.parametrize("attack", [ReidentifyMlp(steps=300), ReidentifyKnn()])
def test_detects_unknown_users_that_resemble_holdout_users(attack) -> None:
    # Users outside the candidates mostly hold one label.
    chances = torch.tensor([0.05, 0.05, 0.05, 0.85])
    users = [
        make_user(n) if n < 4 else replace(make_user(n), label_probabilities=chances, size=64)
        for n in range(16)
    ]
    run = simulate_users(users, Seed(0), known=4, unknown=4, rounds=6)
    by_target, known = infer_claims(attack, run), KnownUsers.of(run.knowledge).prior_examples
    seen = [c.unseen for target, c in by_target.items() if users_of(run)[target] in known]
    unseen = [c.unseen for target, c in by_target.items() if users_of(run)[target] not in known]
    assert sum(unseen) / len(unseen) > sum(seen) / len(seen) + 0.3


@pytest.mark.parametrize("attack", [ReidentifyMlp(steps=300), ReidentifyKnn(), ReidentifySvm()])
def test_without_holdout_users_there_is_no_probability_of_an_unknown_user(
    attack, different
) -> None:
    closed = with_known_users(
        different,
        holdout=NO_PRIOR_EXAMPLES,
        shadow_devices=NO_SHADOW_DEVICES,
        embeddings=NO_EMBEDDINGS,
        attributes={},
    )
    assert {claim.unseen for claim in infer_claims(attack, closed).values()} == {None}


def test_hard_scores_are_one_for_the_largest_margin(different) -> None:
    margins, hard = (
        infer_claims(ReidentifySvm(hard=hard), different) for hard in (False, True)
    )
    # The largest margin may be that of the class of unknown users, which is not claimed.
    decided = {target: claim for target, claim in hard.items() if claim.scores.any()}
    assert decided
    for target, claim in decided.items():
        assert claim.scores.sum() == claim.scores.max() == 1
        assert claim.scores.argmax() == margins[target].scores.argmax()


class TestPieces:
    def test_shadow_devices_hold_their_priors_whole(self, different) -> None:
        one, four = (
            infer_claims(ReidentifyMlp(updates="shadow", pieces=pieces, steps=5), different)
            for pieces in (1, 4)
        )
        assert all(
            one[target].scores.equal(four[target].scores) for target in different.targets
        )


class TestNeighbours:
    def test_identical_users_tie(self, different) -> None:
        # One batch, so the order of examples cannot make two equal priors differ.
        priors = KnownUsers.of(different.knowledge).prior_examples
        first = priors["user 0"]
        twins = {**priors, "twin": first}
        run = with_known_users(different, prior_examples=twins)
        recipe = replace(run.knowledge.recipe, batch=1000)
        run = replace(run, knowledge=replace(run.knowledge, recipe=recipe))
        for neighbours in (1, 2, 5):
            for claim in infer_claims(ReidentifyKnn(neighbours=neighbours), run).values():
                own, other = (claim.users.index(name) for name in ("user 0", "twin"))
                assert float(claim.scores[own]) == pytest.approx(float(claim.scores[other]))
        assert any(
            claim.scores[own] > 0 for claim in infer_claims(ReidentifyKnn(), run).values()
        )

    def test_all_updates_count_if_there_are_fewer_than_neighbours(self, different) -> None:
        view = different.transcript.seen_by(SERVER).during((0,))
        target = next(target for target in different.targets if target.startswith("anon/0"))
        claim = ReidentifyKnn(neighbours=500).infer(
            view, (target,), different.knowledge, Seed(0)
        )[target]
        # One update each of 8 users and of 12 holdout users.
        assert claim.scores.tolist() == pytest.approx([1 / 20] * 8)
        assert claim.unseen == pytest.approx(12 / 20)


@pytest.mark.slow
def test_unknown_users_have_a_higher_probability_of_no_profile(different) -> None:
    known = KnownUsers.of(different.knowledge).prior_examples
    known_users, unknown_users = [], []
    for target, claim in infer_claims(Profile(steps=300), different).items():
        (known_users if users_of(different)[target] in known else unknown_users).append(
            claim.unseen
        )
    assert sum(unknown_users) / len(unknown_users) > sum(known_users) / len(known_users)


def test_equal_updates_have_equal_margins() -> None:
    still = simulate_users([make_user(n) for n in range(4)], Seed(0), known=3, rounds=2)
    delta = {"2.weight": torch.zeros(4, 8), "2.bias": torch.zeros(4)}
    said = change_updates(
        still.transcript.messages,
        lambda update: {"delta": {**update.delta, **delta}},
        still.targets,
    )
    by_target = infer_claims(
        ReidentifySvm(), replace(still, transcript=replace(still.transcript, messages=said))
    )
    first, *others = (claim.scores for claim in by_target.values())
    assert all(scores.equal(first) for scores in others)


def blobs(dims: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Eight examples of each of five classes, which overlap."""
    draw = Seed(seed).generator()
    labels = torch.arange(40) % 5
    centres = torch.randn(5, dims, generator=Seed(9).generator())
    return centres[labels] + torch.randn(40, dims, generator=draw), labels


@pytest.mark.parametrize("dims", [6, 100])
@pytest.mark.parametrize("cost", [0.1, 1.0])
def test_margins_equal_those_of_scikit_learn(dims, cost) -> None:
    vectors, labels = blobs(dims)
    reference = LinearSVC(C=cost, tol=1e-8, max_iter=1_000_000).fit(vectors, labels)
    svm = fit_linear_svm(vectors, labels, 5, Seed(0), cost=cost)
    other = blobs(dims, 1)[0]
    np.testing.assert_allclose(
        svm.margins(other).numpy(), reference.decision_function(other.numpy()), atol=5e-3
    )


def test_two_examples_have_the_margins_computed_by_hand() -> None:
    # x = 1 and x = -1, with a 1 beside: w1 and intercept minimise w^2/2 + b^2/2 + sum of
    # (1 - w)^2 over both, b = 0: w - 4 (1 - w) = 0, so w = 0.8.
    svm = fit_linear_svm(torch.tensor([[1.0], [-1.0]]), torch.tensor([0, 1]), 2, Seed(0))
    margins = svm.margins(torch.tensor([[1.0], [0.0]]))
    torch.testing.assert_close(
        margins, torch.tensor([[0.8, -0.8], [0.0, 0.0]]).double(), atol=1e-3, rtol=0
    )


@pytest.mark.parametrize("classes", [1, 2])
def test_refuses_a_class_without_examples(classes: int) -> None:
    with pytest.raises(ValueError, match="each of two classes"):
        fit_linear_svm(torch.ones(2, 2), torch.zeros(2, dtype=torch.long), classes, Seed(0))
