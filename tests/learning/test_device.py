"""The device is chosen once."""

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.learning.device import choose_device


def test_cpu_is_cpu_and_auto_is_what_there_is():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_refuses_a_gpu_that_is_not_there():
    with pytest.raises(PlanError, match="choose 'auto' or 'cpu'"):
        choose_device("cuda")
