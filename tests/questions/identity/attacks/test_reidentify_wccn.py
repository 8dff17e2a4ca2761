from dataclasses import replace
from functools import cache
from math import nan

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.identity.attacks.reidentify import ReidentifySvm
from overheard.questions.identity.attacks.reidentify_wccn import (
    ReidentifyWccn,
    sinkhorn_assignment,
)
from overheard.questions.identity.estimators.user_classes import NO_UPDATE_SCORE
from overheard.testing.planted_users import (
    ALL_USERS,
    CLASSES,
    EXAMPLES,
    FEATURES,
    HOLDOUT,
    KNOWN,
    SyntheticUser,
    make_user,
    simulate_users,
    users_of,
)
from overheard.testing.trial import PlantedRun
from tests.runs.changed_updates import change_updates
from tests.runs.identity_claims import infer_claims, share_identified, with_known_users
from tests.runs.scaffold_users import simulate_scaffold

PLAIN = ReidentifyWccn(link=False, at_most_one=False)

each_source = pytest.mark.parametrize("updates", ["shadow", "simulated"])


def faint_user(number: int, strength: float) -> SyntheticUser:
    """Return a user target differs less from others."""
    whole = make_user(number)
    chances = (strength * whole.label_probabilities.log()).softmax(0)
    return replace(
        whole, offset=strength * whole.offset, label_probabilities=chances, size=EXAMPLES
    )


@cache
def faint_run(seed: int, strength: float = 0.3) -> PlantedRun:
    return simulate_users([faint_user(number, strength) for number in ALL_USERS], Seed(seed))


def mean_named(attack, strength: float) -> float:
    runs = [faint_run(seed, strength) for seed in range(3)]
    return sum(share_identified(run, infer_claims(attack, run)) for run in runs) / len(runs)


def with_messages(run: PlantedRun, messages) -> PlantedRun:
    return replace(run, transcript=replace(run.transcript, messages=tuple(messages)))


class TestWhereUsersDiffer:
    @each_source
    def test_names_them(self, updates, different) -> None:
        assert (
            share_identified(different, infer_claims(ReidentifyWccn(updates), different)) > 0.95
        )

    @pytest.mark.slow
    def test_names_faint_users_more_often_than_a_support_vector_machine(self) -> None:
        ours = mean_named(ReidentifyWccn(), 0.3)
        assert ours > mean_named(ReidentifySvm(), 0.3) + 0.05

    @each_source
    def test_names_a_lasting_pseudonym_by_all_of_its_updates(self, updates) -> None:
        run = simulate_users([make_user(n) for n in ALL_USERS], Seed(0), anonymous=False)
        by_target = infer_claims(ReidentifyWccn(updates), run)
        assert len(by_target) == KNOWN + 1
        assert share_identified(run, by_target) == 1

    def test_works_for_a_model_without_a_last_bias(self, different) -> None:
        def build() -> nn.Module:
            last = nn.Linear(8, CLASSES, bias=False)
            return nn.Sequential(nn.Linear(FEATURES, 8), nn.ReLU(), last)

        def bare(body):
            match body:
                case Broadcast():
                    return Broadcast({n: w for n, w in body.weights.items() if n != "2.bias"})
                case Update():
                    delta = {n: w for n, w in body.delta.items() if n != "2.bias"}
                    return replace(body, delta=delta)

        said = (replace(m, body=bare(m.body)) for m in different.transcript.messages)
        run = with_messages(different, said)
        run = replace(run, knowledge=replace(run.knowledge, build_model=build))
        assert share_identified(run, infer_claims(ReidentifyWccn(), run)) > 0.8
        with pytest.raises(NeedsError, match="choose layer = -1"):
            infer_claims(ReidentifyWccn(layers=("last_bias",)), run)


def test_is_at_chance_if_all_users_are_alike(alike) -> None:
    # 8 users at 4 updates: 1/8, with a standard error of .06.
    for updates in ("shadow", "simulated"):
        assert (
            share_identified(alike, infer_claims(ReidentifyWccn(updates), alike))
            < 0.125 + 2 * 0.06
        )


@pytest.mark.slow
def test_only_without_linking_and_assignment_a_claim_rests_on_one_update() -> None:
    run = faint_run(0)
    target, *others = run.targets
    changed = with_messages(
        run, change_updates(run.transcript.messages, lambda update: times(-1, update), others)
    )
    for attack in (PLAIN, ReidentifyWccn()):
        claim, again = (infer_claims(attack, one)[target] for one in (run, changed))
        same = claim.scores.equal(again.scores) and claim.unseen == again.unseen
        assert same == (attack is PLAIN)


def times(factor: float, update: Update) -> dict[str, object]:
    return {"delta": {name: factor * part for name, part in update.delta.items()}}


class TestOneToOneAssignment:
    def test_probabilities_of_a_user_in_a_round_sum_to_at_most_one(self) -> None:
        by_target = infer_claims(
            ReidentifyWccn(),
            simulate_users([faint_user(n, 0.3) for n in ALL_USERS], Seed(0), unknown=0),
        )
        for number in range(4):
            own = [
                c.scores.exp()
                for target, c in by_target.items()
                if target.startswith(f"anon/{number}")
            ]
            assert float(torch.stack(own).sum(0).max()) <= 1.05
            assert float(torch.stack(own).sum(1).min()) == pytest.approx(1, abs=1e-4)


class TestUnknownUsers:
    @staticmethod
    def probabilities(
        run: PlantedRun, attack: ReidentifyWccn
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the `unseen` probabilities of known and of unknown users."""
        by_target = infer_claims(attack, run)
        known = KnownUsers.of(run.knowledge).prior_examples
        own = {True: [], False: []}
        for target, claim in by_target.items():
            own[users_of(run)[target] in known].append(claim.unseen)
        return torch.tensor(own[True]), torch.tensor(own[False])

    @pytest.mark.slow
    @pytest.mark.parametrize(("anonymous", "holdout"), [(True, 0), (False, 12)])
    def test_their_probability_is_informative_and_matches_their_share(
        self, anonymous, holdout
    ) -> None:
        users = [faint_user(number, 0.7) for number in range(16 + holdout)]
        seen, unseen = [], []
        for seed in range(3):
            run = simulate_users(users, Seed(seed), unknown=8, anonymous=anonymous)
            own = self.probabilities(run, ReidentifyWccn())
            seen.append(own[0])
            unseen.append(own[1])
        high = (torch.cat(unseen)[:, None] > torch.cat(seen)[None]).double().mean()
        assert float(high) > 0.8
        # As many known as unknown users take part.
        assert float(torch.cat(seen + unseen).mean()) == pytest.approx(0.5, abs=0.15)


class TestBadInput:
    def test_users_with_equal_priors_tie(self, different) -> None:
        # One batch, so the order of examples cannot make two equal priors differ.
        priors = KnownUsers.of(different.knowledge).prior_examples
        run = with_known_users(different, prior_examples={**priors, "twin": priors["user 0"]})
        recipe = Recipe(rate=0.1, epochs=1, batch=1000)
        run = replace(run, knowledge=replace(run.knowledge, recipe=recipe))
        for claim in infer_claims(PLAIN, run).values():
            own, other = (claim.users.index(name) for name in ("user 0", "twin"))
            assert float(claim.scores[own]) == pytest.approx(
                float(claim.scores[other]), abs=0.01
            )

    def test_ranks_a_user_whose_device_was_never_sampled_last(self) -> None:
        others = [number for number in range(KNOWN + HOLDOUT) if number != 3]
        run = simulate_users(
            [make_user(n) for n in ALL_USERS],
            Seed(0),
            device_cohorts=dict.fromkeys(range(4), others),
        )
        for claim in infer_claims(ReidentifyWccn("shadow"), run).values():
            assert claim.scores[claim.users.index("user 3")] == NO_UPDATE_SCORE
            assert int(claim.scores.argmin()) == claim.users.index("user 3")

    def test_refuses_updates_of_only_one_user(self) -> None:
        run = simulate_users(
            [make_user(n) for n in range(3)],
            Seed(0),
            known=2,
            device_cohorts=dict.fromkeys(range(4), (0,)),
        )
        with pytest.raises(NeedsError, match=r"has them of \['user 0'\]"):
            infer_claims(ReidentifyWccn("shadow"), run)

    def test_zero_updates_of_targets_tie_within_a_round(self, different) -> None:
        silent = change_updates(
            different.transcript.messages,
            lambda update: times(0, update),
            different.targets,
        )
        by_target = infer_claims(PLAIN, with_messages(different, silent))
        first = next(iter(by_target.values())).scores
        # Only the round in which they were sent distinguishes them.
        by_round = {
            target.partition("-")[0]: claim.scores for target, claim in by_target.items()
        }
        assert all(c.scores.equal(by_round[w.partition("-")[0]]) for w, c in by_target.items())
        assert first.isfinite().all()

    def test_names_the_sender_of_an_update_with_nan(self, different) -> None:
        broken = next(target for target in different.targets if target.startswith("anon/1"))
        said = change_updates(
            different.transcript.messages, lambda update: times(nan, update), [broken]
        )
        with pytest.raises(NeedsError, match=f"of {broken} in round 1 contain NaN"):
            infer_claims(ReidentifyWccn(), with_messages(different, said))

    def test_names_a_target_without_updates(self, different) -> None:
        with pytest.raises(NeedsError, match="no update of anon/77-0 can be read"):
            infer_claims(ReidentifyWccn(), replace(different, targets=(Party("anon/77-0"),)))


class TestUnderScaffold:
    """Updates are changes of gradients, which known users follow with their own variates."""

    @pytest.mark.slow
    def test_simulated_variates_name_most_users_of_single_updates(self, tmp_path) -> None:
        run = simulate_scaffold(tmp_path, seed=2)
        found = share_identified(run, infer_claims(PLAIN, run))
        plain = change_updates(run.transcript.messages, lambda update: {"control": None})
        without = with_messages(run, plain)
        # Guessing is right for 1 of 8. Round 0 has no correction and is right in both cases.
        assert found > 0.85
        assert share_identified(without, infer_claims(PLAIN, without)) < 0.6

    @pytest.mark.slow
    def test_one_to_one_assignment_raises_accuracy(self, tmp_path) -> None:
        run = simulate_scaffold(tmp_path)
        alone = share_identified(run, infer_claims(PLAIN, run))
        assert share_identified(run, infer_claims(ReidentifyWccn(), run)) > alone


def log(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows).double().log()


def test_two_equal_senders_share_one_user() -> None:
    # By the price x of the first user: .8 x / (.8 x + .2) = 1/2 for both.
    result = sinkhorn_assignment(log([0.8, 0.2], [0.8, 0.2])).exp()
    assert result.flatten().tolist() == pytest.approx([0.5] * 4, abs=1e-4)


def test_the_sender_with_the_higher_score_gets_the_user() -> None:
    # Odds 9 x and 1.5 x, whose probabilities sum to 1 if their product is 1: x =
    # 13.5^(-1/2). The odds are 6^(1/2) = 2.449 and its inverse, or .7101 and .2899.
    result = sinkhorn_assignment(log([0.9, 0.1], [0.6, 0.4])).exp()
    assert result.flatten().tolist() == pytest.approx(
        [0.7101, 0.2899, 0.2899, 0.7101], abs=2e-4
    )


def test_one_sender_is_unchanged_if_other_users_sent_nothing() -> None:
    scores = log([0.7, 0.2, 0.1])
    assert sinkhorn_assignment(scores).allclose(scores)


def test_with_more_senders_than_users_each_user_gets_an_equal_sum() -> None:
    result = sinkhorn_assignment(log([0.9, 0.1], [0.6, 0.4], [0.8, 0.2])).exp()
    assert result.sum(0).tolist() == pytest.approx([1.5, 1.5], abs=1e-3)


scores_of = st.tuples(st.integers(0, 999), st.integers(1, 6), st.integers(0, 3)).map(
    lambda drawn: (
        3
        * torch.randn(
            drawn[1],
            drawn[1] + drawn[2],
            generator=Seed(drawn[0]).generator(),
            dtype=torch.float64,
        )
    )
)


@given(scores_of)
def test_sums_are_at_most_one_over_senders_and_one_over_users(scores) -> None:
    chances = sinkhorn_assignment(scores).exp()
    assert float(chances.sum(0).max()) <= 1.02
    assert chances.sum(1).allclose(torch.ones(len(chances)).double())


@given(scores_of, st.floats(-50, 50))
def test_a_constant_added_to_a_sender_changes_nothing(scores, level) -> None:
    moved = scores.clone()
    moved[0] += level
    assert sinkhorn_assignment(moved).allclose(sinkhorn_assignment(scores), atol=1e-6)


@given(scores_of, st.randoms(use_true_random=False))
def test_permuting_senders_and_users_permutes_the_result(scores, random) -> None:
    rows = random.sample(range(len(scores)), len(scores))
    columns = random.sample(range(scores.shape[1]), scores.shape[1])
    assert sinkhorn_assignment(scores[rows][:, columns]).allclose(
        sinkhorn_assignment(scores)[rows][:, columns], atol=1e-6
    )


@given(st.permutations(range(5)), st.integers(0, 99))
def test_a_clear_assignment_is_unchanged(order, seed) -> None:
    scores = torch.randn(5, 5, generator=Seed(seed).generator(), dtype=torch.float64)
    scores[range(5), list(order)] += 12
    assert sinkhorn_assignment(scores).argmax(1).tolist() == list(order)


@pytest.mark.parametrize("scale", [300.0, 10000.0])
def test_scores_far_apart_give_the_best_assignment(scale: float) -> None:
    draw = Seed(0).generator()
    scores = scale * torch.randn(40, 40, generator=draw, dtype=torch.float64)
    senders, users = linear_sum_assignment(scores.numpy(), maximize=True)
    result = sinkhorn_assignment(scores)
    # By each sender's own scores, several would be one user.
    assert len(set(scores.argmax(1).tolist())) < 35
    assert result.argmax(1)[senders].tolist() == users.tolist()
    assert float(result.exp().sum(0).max()) <= 1.02
