"""Clients to be trained."""

import pytest
import torch

from overheard.learning.training_job import ClientTask


def test_refuses_a_client_without_examples():
    with pytest.raises(ValueError, match="client/0 has no examples"):
        ClientTask("client/0", torch.arange(0))
