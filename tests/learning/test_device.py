"""The choice of the device."""

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.learning.device import choose_device


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_refuses_a_missing_gpu():
    with pytest.raises(PlanError, match="choose 'auto' or 'cpu'"):
        choose_device("cuda")
