import pytest

from overheard.core.errors import NeedsError
from overheard.linkage.layers import telling_layers, tensors_of

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
    assert tensors_of(layer, NAMES) == expected


@pytest.mark.parametrize("layer", [3, -4])
def test_a_depth_that_the_model_has_not_is_refused_with_those_it_has(layer) -> None:
    with pytest.raises(NeedsError, match=r"choose one of 0 = 'embed', 1 = 'lstm', 2 = 'out'"):
        tensors_of(layer, NAMES)


def test_a_last_layer_without_a_bias_has_none_to_look_at() -> None:
    with pytest.raises(NeedsError, match="choose layer = -1"):
        tensors_of("last_bias", NAMES[:5])


def test_weights_that_stand_alone_are_a_layer() -> None:
    assert tensors_of(0, ("weight", "bias")) == ("weight", "bias")


def test_a_last_layer_without_a_bias_is_read_whole_and_with_all_others() -> None:
    assert telling_layers(NAMES) == ("last_bias", -1, "all")
    assert telling_layers(NAMES[:5]) == (-1, "all")
