import pytest

from overheard.core.errors import NeedsError
from overheard.linkage.layers import layer_tensors

NAMES = (
    "embed.weight",
    "lstm.weight_ih_l0",
    "lstm.weight_hh_l0",
    "lstm.bias_ih_l0",
    "out.weight",
    "out.bias",
)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (0, NAMES[:1]),
        (1, NAMES[1:4]),
        (2, NAMES[4:]),
        (-1, NAMES[4:]),
        (-3, NAMES[:1]),
        ("all", NAMES),
        ("last_bias", NAMES[5:]),
    ],
)
def test_a_layer_is_a_module_counted_from_the_input(layer, expected) -> None:
    assert layer_tensors(layer, NAMES) == expected


@pytest.mark.parametrize("layer", [3, -4])
def test_refuses_an_unknown_depth_and_lists_the_layers(layer) -> None:
    with pytest.raises(NeedsError, match=r"choose one of 0 = 'embed', 1 = 'lstm', 2 = 'out'"):
        layer_tensors(layer, NAMES)


def test_refuses_last_bias_if_there_is_none() -> None:
    with pytest.raises(NeedsError, match="choose layer = -1"):
        layer_tensors("last_bias", NAMES[:5])
