import pytest

from overheard_studies.decaf.published import (
    mean_published_guess_score,
    mean_published_score,
    score_published_claim,
)
from overheard_studies.decaf.setting import BENCHMARKS, FASHION_MNIST, MNIST


def test_the_papers_mean_l1_on_mnist_is_that_of_its_table() -> None:
    # L1 by user, percent: 4.7 19.83 23.84 26.07 26.92 23.93 35.17 18.34 6.12 0 = 184.92.
    assert mean_published_score(MNIST.users, "l1") == pytest.approx(0.1849, abs=1e-4)


def test_the_papers_mean_l1_on_fashion_mnist_is_that_of_its_table() -> None:
    assert mean_published_score(FASHION_MNIST.users, "l1") == pytest.approx(0.2625, abs=1e-4)


def test_the_uniform_guess_has_an_l1_of_one_half_on_user_9_of_mnist() -> None:
    # 41.67, 8.33 and 50 against a third each: 8.34 + 25 + 16.67 = 50 percent.
    one = score_published_claim(MNIST.users[8], "l1")
    assert one.references["uniform on the true support"] == pytest.approx(0.5, abs=1e-3)


def test_the_paper_beats_the_uniform_guess_on_the_true_support_on_average() -> None:
    for benchmark in BENCHMARKS:
        guess = mean_published_guess_score(benchmark.users, "l1", "uniform on the true support")
        assert mean_published_score(benchmark.users, "l1") < guess


def test_the_paper_claims_exactly_the_null_classes() -> None:
    for benchmark in BENCHMARKS:
        assert mean_published_score(benchmark.users, "null_exact") == 1
