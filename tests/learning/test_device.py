"""The choice of the device."""

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.learning.device import choose_device


def test_auto_takes_a_gpu_if_there_is_one():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_refuses_a_missing_gpu():
    with pytest.raises(PlanError, match="choose 'auto' or 'cpu'"):
        choose_device("cuda")
