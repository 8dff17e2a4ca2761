"""Tensors that were sent as a list get the names of the model, if they fit."""

import pytest
from torch import nn

from overheard.auditing.recorded_tensors.tensor_selection import names_by_position


def network() -> nn.Module:
    """Two parameters, then a batch norm with a counter as its last tensor."""
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))


STATE = {"0": (2, 3), "1": (2,), "2": (2,), "3": (2,), "4": (2,), "5": (2,)}
"""Without the counter at position 6, which is no floating-point number."""


def test_a_whole_state_dict_is_named_in_its_order():
    assert names_by_position(network(), STATE) == {
        "0": "0.weight",
        "1": "0.bias",
        "2": "1.weight",
        "3": "1.bias",
        "4": "1.running_mean",
        "5": "1.running_var",
    }


def test_a_list_of_parameters_alone_is_named_too():
    sent = {name: STATE[name] for name in ("0", "1", "2", "3")}
    assert list(names_by_position(network(), sent).values()) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
    ]


def test_a_list_of_what_is_trained_alone_is_named_too():
    frozen = network()
    frozen[0].requires_grad_(False)
    del frozen[1]
    frozen.append(nn.Linear(2, 4))
    assert names_by_position(frozen, {"0": (4, 2), "1": (4,)}) == {
        "0": "1.weight",
        "1": "1.bias",
    }


def test_tensors_beyond_the_model_keep_their_position():
    sent = STATE | {"7": (2, 3), "8": (2,)}
    assert set(names_by_position(network(), sent)) == set(STATE)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"fc.weight": (2, 3), "1": (2,)},
        {"0": (3, 2), "1": (2,), "2": (2,), "3": (2,)},
        {"0": (2, 3)},
    ],
)
def test_names_nothing_if_the_list_is_not_that_of_the_model(sent: dict[str, tuple[int, ...]]):
    assert names_by_position(network(), sent) == {}
