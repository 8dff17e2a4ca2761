import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC

from overheard.core.seeds import Seed
from overheard.learning.fitting.linear_svm import fit_linear_svm


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
