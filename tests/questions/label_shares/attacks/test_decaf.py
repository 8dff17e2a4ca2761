"""Decaf on matrices with known solutions, and on simulated updates."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.recipe import PrivateSteps
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.train import train_cohort
from overheard.questions.label_shares.attacks import decaf
from overheard.questions.label_shares.attacks.decaf import (
    Decaf,
    GradientBases,
)
from overheard.testing.planted_labels import simulate_one_round
from tests.runs.changed_updates import change_updates

ALL = torch.ones(3, dtype=torch.bool)

# Three classes, two features. Each class's own training lifts its row and lowers the others.
OF_CLASS = {
    0: torch.tensor([[2.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]),
    1: torch.tensor([[0.0, -1.0], [0.0, 2.0], [0.0, -1.0]]),
    2: torch.tensor([[-1.0, -1.0], [-1.0, -1.0], [2.0, 2.0]]),
}
OF_UNION = torch.tensor([[0.5, 0.0], [0.0, 0.5], [0.25, 0.25]])
BASES = GradientBases(OF_CLASS, {(0, 1, 2): OF_UNION, (0, 1): OF_UNION, (0,): OF_CLASS[0]})


class TestDecompose:
    @pytest.mark.slow
    @pytest.mark.parametrize("solver", ["nnls", "gradient"])
    def test_recovers_the_mixture_and_divides_the_calibrator_evenly(self, solver):
        change = 3 * OF_CLASS[0] + 1 * OF_CLASS[1] + 2 * OF_UNION
        # alpha = (3, 1, 0), beta = 2, m = 3: (3 + 2/3, 1 + 2/3, 2/3) / (4 + 2).
        expected = torch.tensor([3 + 2 / 3, 1 + 2 / 3, 2 / 3]) / 6
        shares = Decaf(solver=solver, steps=4000).decompose(change, ALL, BASES)
        torch.testing.assert_close(shares, expected, atol=0.01, rtol=0)

    def test_descent_takes_the_steps_of_projected_adam(self):
        change, norm = 3 * OF_CLASS[0] + 1 * OF_UNION, OF_UNION.norm()
        columns = torch.stack([one.flatten() for one in (*OF_CLASS.values(), OF_UNION)], 1)
        factors = torch.full((4,), 0.25, requires_grad=True)
        optimizer = torch.optim.Adam([factors], lr=decaf.DESCENT_RATE)
        for _ in range(30):
            optimizer.zero_grad()
            ((columns @ factors - change.flatten()) / norm).square().sum().backward()
            optimizer.step()
            with torch.no_grad():
                factors.clamp_(min=0)
        expected = (factors[:3] + factors[3] / 3).detach()
        shares = Decaf(solver="gradient", steps=30).decompose(change, ALL, BASES)
        torch.testing.assert_close(shares, expected / expected.sum(), atol=1e-5, rtol=0)

    def test_without_calibrator_an_unused_basis_has_no_share(self):
        change = 3 * OF_CLASS[0] + 1 * OF_CLASS[1]
        shares = Decaf(calibrator=False).decompose(change, ALL, BASES)
        torch.testing.assert_close(shares, torch.tensor([0.75, 0.25, 0.0]), atol=1e-5, rtol=0)

    def test_null_classes_get_no_share_of_the_calibrator(self):
        present = torch.tensor([True, True, False])
        change = 2 * OF_CLASS[0] + 2 * OF_UNION
        # alpha = (2, 0), beta = 2, m = 2: (2 + 1, 1) / 4.
        shares = Decaf().decompose(change, present, BASES)
        torch.testing.assert_close(shares, torch.tensor([0.75, 0.25, 0.0]), atol=1e-5, rtol=0)

    @given(
        st.lists(st.floats(0, 5), min_size=4, max_size=4).filter(lambda mix: sum(mix) > 0.1),
        st.floats(0.01, 100),
    )
    def test_the_scale_of_the_update_does_not_matter(self, mix, scale):
        change = sum(a * g for a, g in zip(mix, [*OF_CLASS.values(), OF_UNION], strict=True))
        shares = Decaf().decompose(change, ALL, BASES)
        torch.testing.assert_close(
            Decaf().decompose(scale * change, ALL, BASES), shares, atol=1e-4, rtol=0
        )
        assert float(shares.min()) >= 0
        assert float(shares.sum()) == pytest.approx(1)


class TestNullClasses:
    @staticmethod
    def present(rows, **changed):
        return Decaf(**changed).present_classes(torch.tensor(rows)).tolist()

    def test_a_row_without_a_positive_entry_is_null(self):
        rows = [[0.1, -1.0], [0.0, -0.2], [-1.0, -1.0]]
        assert self.present(rows) == [True, False, False]

    def test_a_threshold_makes_more_classes_null(self):
        rows = [[0.1, -1.0], [0.0005, -0.2], [-1.0, -1.0]]
        assert self.present(rows) == [True, True, False]
        assert self.present(rows, threshold=0.001) == [True, False, False]

    def test_removes_no_class_if_all_appear_null(self):
        assert self.present([[-1.0], [0.0], [-2.0]]) == [True, True, True]

    def test_removes_no_class_without_null_removal(self):
        assert self.present([[0.1], [-1.0], [-1.0]], null_removal=False) == [True, True, True]


COUNTS = ((20, 12, 0, 8), (0, 0, 40, 0), (10, 10, 10, 10))


@pytest.fixture(scope="module")
def run():
    return simulate_one_round(COUNTS)


class TestOnAFederation:
    def claims(self, run, **changed):
        targets = [client(number) for number in range(3)]
        return list(
            Decaf(**changed)
            .infer(run.transcript.seen_by(SERVER), targets, run.knowledge, Seed(0))
            .values()
        )

    def test_finds_every_null_class_as_the_proof_says(self, run):
        absent = [claim.absent.tolist() for claim in self.claims(run)]
        for mine, counts in zip(absent, COUNTS, strict=True):
            held = [count > 0 for count in counts]
            # By the proof, null classes are always found. Others may be missed, see the paper.
            assert all(gone or there for gone, there in zip(mine, held, strict=True))

    def test_reads_a_client_of_one_class_exactly(self, run):
        assert self.claims(run)[1].shares.tolist() == pytest.approx([0, 0, 1, 0], abs=1e-5)

    @pytest.mark.slow
    def test_gradient_descent_is_close_to_the_exact_minimum(self, run):
        exact, near = self.claims(run), self.claims(run, solver="gradient", steps=3000)
        for one, other in zip(exact, near, strict=True):
            torch.testing.assert_close(one.shares, other.shares, atol=0.05, rtol=0)

    def test_trains_no_bases_for_an_implausible_size(self, run):
        view = run.transcript.seen_by(SERVER)
        huge = change_updates(view.messages, lambda update: {"examples": 10**12})
        view = View(view.observers, huge)
        with pytest.raises(NeedsError, match="reports 1,000,000,000,000 examples"):
            Decaf().infer(view, [client(0)], run.knowledge, Seed(0))
        Decaf(bases="published").infer(view, [client(0)], run.knowledge, Seed(0))


class TestBases:
    """Clients of 40 examples take 5 batches of 8; each class has 15 auxiliary examples."""

    @staticmethod
    def trained_rows(monkeypatch, run, private=None, **changed):
        trained = []

        def train(build_model, start, pool, clients, recipe, **settings):
            trained.extend((pool.labels[one.rows], one.rows, recipe) for one in clients)
            return train_cohort(build_model, start, pool, clients, recipe, **settings)

        monkeypatch.setattr(decaf, "train_cohort", train)
        recipe = replace(run.knowledge.recipe, batch=8, private_steps=private)
        knowledge = replace(run.knowledge, recipe=recipe)
        view = run.transcript.seen_by(SERVER)
        Decaf(**changed).infer(view, [client(0)], knowledge, Seed(0))
        return trained

    def test_every_basis_takes_as_many_steps_of_the_same_batch_as_the_client(
        self, monkeypatch, run
    ):
        trained = self.trained_rows(monkeypatch, run)
        assert trained
        assert all(len(labels) == 40 for labels, _, _ in trained)
        assert all(recipe.steps(len(rows)) == recipe.steps(40) for _, rows, recipe in trained)

    def test_by_dp_sgd_a_basis_has_as_many_examples_as_the_client(self, monkeypatch, run):
        private = PrivateSteps(1.0, 0.0, batches=4, sampling="poisson")
        trained = self.trained_rows(monkeypatch, run, private)
        assert trained
        # The divisor of a step, examples / batches, is then that of the client.
        assert all(len(rows) == 40 for _, rows, _ in trained)

    def test_too_few_examples_are_repeated_about_equally_often(self, monkeypatch, run):
        auxiliary = run.knowledge.auxiliary.labels.bincount()
        for labels, rows, _ in self.trained_rows(monkeypatch, run):
            times = rows.unique(return_counts=True)[1]
            known = int(auxiliary[labels.unique()].sum())
            assert len(times) == min(known, 40)
            assert int(times.max()) - int(times.min()) <= 1

    def test_the_published_bases_train_on_all_examples_of_the_class(self, monkeypatch, run):
        auxiliary = run.knowledge.auxiliary.labels.bincount()
        for labels, rows, _ in self.trained_rows(monkeypatch, run, bases="published"):
            assert len(rows.unique()) == len(rows) == int(auxiliary[labels.unique()].sum())
