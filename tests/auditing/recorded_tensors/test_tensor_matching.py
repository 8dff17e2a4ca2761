"""Matching a recording's tensors to a model."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from overheard.archive.weights import tensor_shapes
from overheard.auditing.recorded_tensors.model_tensors import (
    match_model_tensors,
    match_records,
    select_matched_tensors,
)
from overheard.auditing.recorded_tensors.network_tensors import network_tensors
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch, TensorMismatch
from overheard.auditing.recorded_tensors.tensor_matching import match_tensors
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.transcript import Transcript

Tensors = dict[str, Tensor]


def network() -> nn.Sequential:
    """Two layers with a square weight among three, and a batch norm with a counter."""
    return nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3)
    )


def sent() -> Tensors:
    """The numbers of the network's tensors, which are all different; counters are not sent."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(one.shape, generator=generator)
        for name, one in network().state_dict().items()
        if one.is_floating_point()
    }


def renamed(name_of: Callable[[str], str]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name_of(name): one for name, one in tensors.items()}


def listed(name_of: Callable[[int], str]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name_of(i): one for i, one in enumerate(tensors.values())}


def turned(tensors: Tensors) -> Tensors:
    return {name: one.T if one.dim() == 2 else one for name, one in tensors.items()}


def backwards(tensors: Tensors) -> Tensors:
    return dict(reversed(tensors.items()))


def parameters_alone(tensors: Tensors) -> Tensors:
    return {name: one for name, one in tensors.items() if "running" not in name}


KERAS_LAYERS = {"0": "dense", "1": "batch_normalization", "2": "dense_1", "4": "dense_2"}


KERAS_PARTS = {
    "weight": "kernel",
    "bias": "bias",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


def keras(name: str) -> str:
    layer, _, part = name.partition(".")
    is_norm = {"weight": "gamma", "bias": "beta"} if layer == "1" else {}
    return f"{KERAS_LAYERS[layer]}/{is_norm.get(part, KERAS_PARTS[part])}:0"


def flax(name: str) -> str:
    layers = {"0": "Dense_0", "1": "BatchNorm_0", "2": "Dense_1", "4": "Dense_2"}
    layer, _, part = name.partition(".")
    norm = {"weight": "scale", "bias": "bias", "running_mean": "mean", "running_var": "var"}
    leaf = norm[part] if layer == "1" else KERAS_PARTS[part]
    collection = "batch_stats" if leaf in {"mean", "var"} else "params"
    return f"{collection}.{layers[layer]}.{leaf}"


def numbers_before_counters(place: int) -> str:
    """Position in a `state_dict` whose counter, at position 6, was not recorded."""
    return str(place if place < 6 else place + 1)


SCHEMES: dict[str, Callable[[Tensors], Tensors]] = {
    "arr_0, arr_1, ...": listed("arr_{}".format),
    "0, 1, ...": listed(str),
    "positions with counters between": listed(numbers_before_counters),
    "padded": listed("layer_{:04d}.npy".format),
    "positions from 1": listed(lambda place: f"w{place + 1}"),
    "positions in digits of Devanagari": listed(
        lambda place: str(place).translate({48 + n: 0x0966 + n for n in range(10)})
    ),
    "variables of TensorFlow": lambda tensors: listed(
        lambda place: f"Variable_{place}:0" if place else "Variable:0"
    )(turned(tensors)),
    "lists of JAX": lambda tensors: {
        f"{place // 3}/{place % 3}": one for place, one in enumerate(turned(tensors).values())
    },
    "a list out of order": lambda tensors: backwards(listed("param_{}".format)(tensors)),
    "a list in a record": listed("arrays/{}".format),
    "parameters alone, as a list": lambda tensors: listed(str)(parameters_alone(tensors)),
    "parameters first": lambda tensors: listed(str)(
        parameters_alone(tensors) | {n: one for n, one in tensors.items() if "running" in n}
    ),
    "a list with control variates": lambda tensors: listed(str)(
        tensors | {f"c.{name}": one for name, one in parameters_alone(tensors).items()}
    ),
    "module.": renamed("module.{}".format),
    "_orig_mod.": renamed("_orig_mod.{}".format),
    "_module.": renamed("_module.{}".format),
    "base_model.model.": renamed("base_model.model.{}".format),
    "a prefix of its own": renamed("réseau.模型.{}".format),
    "repeated wrappers": renamed("module._orig_mod.module.{}".format),
    "a wrapper inside": renamed(lambda name: name.replace(".", "._orig_mod.")),
    "the base of adapters": renamed(lambda name: name.replace(".", ".base_layer.")),
    "a prefix in a record": renamed("arrays/module.{}".format),
    "transposed": turned,
    "transposed, as a list": lambda tensors: listed(str)(turned(tensors)),
    "Keras": lambda tensors: renamed(keras)(turned(tensors)),
    "Keras, sorted by name": lambda tensors: dict(
        sorted(renamed(keras)(turned(tensors)).items())
    ),
    "Flax": lambda tensors: backwards(renamed(flax)(turned(tensors))),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_attacks_get_the_same_numbers_under_any_names(scheme: str):
    plain = sent()
    recorded = SCHEMES[scheme](plain)
    update = Update({name: 2 * one for name, one in recorded.items()}, examples=5)
    whole = Transcript(
        (
            Message(0, SERVER, frozenset({client(0)}), Broadcast(recorded)),
            Message(0, client(0), frozenset({SERVER}), update),
        )
    )
    match = match_model_tensors(RECORDING, whole, network(), "", None)
    assert match.notes
    view = select_matched_tensors(whole, match).seen_by(SERVER)
    delta = view.updates(client(0))[0].delta
    for found, factor in ((view.broadcasts()[0], 1), (delta, 2)):
        expected = plain if len(found) == len(plain) else parameters_alone(plain)
        assert list(found) == list(expected)
        assert all(torch.equal(found[name], factor * one) for name, one in expected.items())


def matched(recorded: Tensors, model: nn.Module) -> TensorMatch:
    found = match_tensors(tensor_shapes(recorded), network_tensors(model))
    assert isinstance(found, TensorMatch), found
    return found


def reason(recorded: Tensors, model: nn.Module, left_out: tuple[str, ...] = ()) -> str:
    found = match_tensors(tensor_shapes(recorded), network_tensors(model), left_out=left_out)
    assert isinstance(found, TensorMismatch), found
    return found.reason


def test_names_of_the_network_need_no_note():
    assert matched(sent(), network()) == TensorMatch({name: name for name in sent()}, {})


def test_the_plans_model_may_have_the_wrapper_or_the_adapter():
    wrapped = nn.ModuleDict({"module": network()})
    assert matched(sent(), wrapped).names["module.0.weight"] == "0.weight"
    adapter = nn.ModuleDict(
        {
            "lora_A": nn.ModuleDict({"default": nn.Linear(4, 2, bias=False)}),
            "base_layer": nn.Linear(4, 4).requires_grad_(False),
        }
    )
    model = nn.ModuleDict({"base_model": nn.ModuleDict({"model": adapter})})
    saved = {"base_model.model.lora_A.weight": torch.ones(2, 4)}
    expected = {"base_model.model.lora_A.default.weight": "base_model.model.lora_A.weight"}
    assert matched(saved, model).names == expected


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Linear(5, 3, bias=False)
        self.middle = nn.Linear(3, 5)
        self.head = nn.Linear(5, 3, bias=False)
        self.head.weight = self.code.weight


def test_a_tensor_of_two_layers_is_found_under_either_name():
    both = {name: one.detach() for name, one in Tied().state_dict().items()}
    assert matched(both, Tied()).copies == (("head.weight", "code.weight"),)
    assert "the last layer shares code.weight" in matched(both, Tied()).notes[0]
    assert matched(listed("arr_{}".format)(both), Tied()).copies == (("arr_3", "arr_0"),)
    for gone, there in (("head.weight", "code.weight"), ("code.weight", "head.weight")):
        one = {name: tensor for name, tensor in both.items() if name != gone}
        assert matched(one, Tied()).names["code.weight"] == there
        assert matched(one, Tied()).copies == ()


def test_convolutions_of_keras_are_turned_if_nothing_reads_their_places_in_order():
    pooled = nn.Sequential(
        nn.Conv2d(2, 6, (3, 1)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)
    )
    keras_tensors = {
        "conv2d/kernel:0": torch.randn(3, 1, 2, 6),
        "conv2d/bias:0": torch.randn(6),
        "dense/kernel:0": torch.randn(6, 3),
        "dense/bias:0": torch.randn(3),
    }
    assert matched(keras_tensors, pooled).axes == {
        "0.weight": (3, 2, 0, 1),
        "3.weight": (1, 0),
    }
    flattened = nn.Sequential(nn.Conv2d(2, 6, (3, 1)), nn.Flatten(), nn.Linear(24, 3))
    places = keras_tensors | {"dense/kernel:0": torch.randn(24, 3)}
    assert "2 reads flattened outputs of a convolution" in reason(places, flattened)


def test_a_list_in_an_order_that_is_not_clear_is_refused():
    # Both norms have 2 numbers, so that the running statistics of the first could be the
    # parameters of the second.
    model = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2))
    tensors = [one for one in model.state_dict().values() if one.is_floating_point()]
    recorded = {str(place): one for place, one in enumerate(tensors)}
    assert "more than one order" in reason(recorded, model)


def test_layers_of_keras_that_differ_are_named():
    recorded = renamed(keras)(turned(sent()))
    recorded |= {"dense_2/kernel:0": torch.ones(5, 7), "dense_2/bias:0": torch.ones(7)}
    said = reason(recorded, network())
    assert "it has dense_2/kernel:0 5x7, dense_2/bias:0 7, and" in said
    assert "has 4.weight 3x5, 4.bias 3 instead" in said


def test_one_layer_of_keras_is_not_a_record_that_is_the_model():
    deeper = renamed(keras)(turned(sent()))
    one = nn.Linear(4, 5)
    assert isinstance(match_records(tensor_shapes(deeper), deeper, one), TensorMismatch)


def test_layers_of_the_same_shape_without_numbers_are_refused():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    recorded = {
        f"{layer}/{part}": torch.ones(3, 3) if part == "kernel" else torch.ones(3)
        for layer in ("inner", "outer")
        for part in ("kernel", "bias")
    }
    assert "the layers inner, outer have the same shapes" in reason(recorded, model)


def test_images_of_another_size_are_told():
    def classifier(side: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * side**2, 3))

    recorded = {name: one.detach() for name, one in classifier(4).state_dict().items()}
    assert "inputs of the run have another size" in reason(recorded, classifier(6))


ANOTHER_MODEL = "set training.model to the model of the run"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t | {"4.weight": torch.ones(7, 5), "4.bias": torch.ones(7)}, "7 outputs"),
        (lambda t: t | {"0.weight": torch.ones(5, 9)}, "reads 9 inputs and the plan's 4"),
        (
            lambda t: t | {"5.weight": torch.ones(3, 3), "5.bias": torch.ones(3)},
            r"also has 5.weight 3x3, 5.bias 3",
        ),
        (lambda t: {n: one for n, one in t.items() if n != "2.bias"}, "2.bias is missing"),
        (
            lambda t: {f"layer_{name.replace('.', '_', 1)}": one for name, one in t.items()},
            "under other names: layer_0_weight 5x4",
        ),
        (lambda t: t | {"2.weight": torch.ones(8, 5)}, "2.weight is 8x5 in the recording"),
        (
            lambda t: {f"arr_{i}": one for i, one in enumerate(list(t.values())[:-1])},
            "by position; 4.bias is missing",
        ),
        (
            lambda t: {str(i): one for i, one in enumerate([*t.values(), torch.ones(2)])},
            "by position; the recording also has 10 2, which",
        ),
        (
            lambda t: {n: one for n, one in t.items() if n.startswith("4.")},
            "What the run did not send, such as the base of adapters, must have requires_grad",
        ),
        (
            lambda t: turned(t | {"4.weight": torch.ones(7, 5), "4.bias": torch.ones(7)}),
            "its kernels are inputs x outputs; 4.weight is 7x5",
        ),
        (
            lambda t: {f"w{name}": one for name, one in reversed(turned(t).items())},
            "under other names: w4.bias 3",
        ),
    ],
    ids=[
        "outputs",
        "inputs",
        "deeper",
        "missing",
        "other names",
        "shape",
        "short list",
        "long list",
        "a part",
        "outputs of transposed kernels",
        "other names and transposed",
    ],
)
def test_a_refusal_says_what_differs_and_not_that_another_model_is_there(
    change: Callable[[Tensors], Tensors], words: str
):
    said = reason(change(sent()), network())
    assert words in said
    assert ANOTHER_MODEL not in said


def test_another_model_is_called_another_model():
    other = {"a.weight": torch.ones(2, 9), "a.bias": torch.ones(2)}
    assert ANOTHER_MODEL in reason(other, network())


def test_quantised_weights_are_called_quantised():
    names = [f"{place}.weight" for place in (0, 2, 4)]
    scales = {f"{name}_scale": torch.ones(1) for name in names}
    assert "its weights are quantised (0.weight_scale, " in reason(scales, network())
    packed = {"0._packed_params.scale": torch.ones(1)}
    assert "its weights are quantised" in reason(packed, network())
    rest = {name: one for name, one in sent().items() if name not in names}
    said = reason(rest, network(), tuple(names))
    assert "were sent are not in the recording: 0.weight, 2.weight, 4.weight. They are" in said
    for said in (reason(rest, network(), ("1.num_batches_tracked",)), reason(rest, network())):
        assert "quantised" not in said


def test_hostile_names_are_refused_in_time():
    names = ("9" * 10_000, "." * 10_000, "/" * 10_000, "_" * 10_000 + ":" * 10_000)
    assert ANOTHER_MODEL in reason({name: torch.ones(1) for name in names}, network())
    assert ANOTHER_MODEL in reason({"." * 100_000: torch.ones(1)}, network())


def test_names_in_an_error_are_printable():
    said = reason({"\x1b[31mrot": torch.ones(2)}, network())
    assert "\x1b" not in said
    assert "\\x1b[31mrot" in said


def test_further_records_do_not_count_as_layers():
    for scheme in (dict, listed(str)):
        recorded = scheme(sent()) | {f"c/{name}": one for name, one in scheme(sent()).items()}
        found = match_records(tensor_shapes(recorded), (), network())
        assert isinstance(found, TensorMatch)
        assert list(found.names.values()) == list(scheme(sent()))


def test_tensors_that_stay_at_home_have_no_place_in_a_list():
    at_home = [name for name in sent() if name.startswith("1.")]
    recorded = {
        str(place): one
        for place, (name, one) in enumerate(
            (name, one) for name, one in sent().items() if name not in at_home
        )
    }
    found = match_tensors(tensor_shapes(recorded), network_tensors(network(), at_home))
    assert isinstance(found, TensorMatch)
    assert found.names["2.weight"] == "2"


def test_a_list_without_the_tensors_that_stayed_at_home_is_refused_with_what_to_do():
    without_batch_norm = {name: one for name, one in sent().items() if name[0] != "1"}
    said = reason(listed("arr_{}".format)(without_batch_norm), network())
    assert "named by position, and are fewer than those of the plan's training.model" in said
    assert "save the others under their names" in said


RECORDING = Path("recording")


MODEL = {"weight": torch.ones(2, 3), "bias": torch.ones(2)}


def linear() -> nn.Module:
    return nn.Linear(3, 2)


def transcript(weights: dict[str, Tensor]) -> Transcript:
    """A broadcast, and an update twice as large."""
    update = Update({name: 2 * one for name, one in weights.items()}, examples=5)
    return Transcript(
        (
            Message(0, SERVER, frozenset({client(0)}), Broadcast(weights)),
            Message(0, client(0), frozenset({SERVER}), update),
        )
    )


def records(*names: str) -> dict[str, Tensor]:
    """The model's tensors in several records, with another number in each."""
    return {
        f"{record}/{name}": one * number
        for number, record in enumerate(names, 1)
        for name, one in MODEL.items()
    }


def selected(weights: dict[str, Tensor], record: str | None = None) -> dict[str, list[object]]:
    """The numbers that an attack gets of the update."""
    whole = transcript(weights)
    match = match_model_tensors(RECORDING, whole, linear(), "", record)
    update = select_matched_tensors(whole, match).seen_by(SERVER).updates(client(0))[0]
    assert update.examples == 5
    return {name: one.flatten().tolist() for name, one in update.delta.items()}


def test_tensors_of_no_layer_count_as_traffic_only() -> None:
    found = selected({"counts": torch.ones(4), **MODEL})
    assert found == {"weight": [2.0] * 6, "bias": [2.0] * 2}


def test_the_model_is_the_record_with_its_names_and_shapes() -> None:
    others = {"extra/weight": torch.ones(7), "extra/bias": torch.ones(1)}
    assert selected(others | records("model")) == {"weight": [2.0] * 6, "bias": [2.0] * 2}


def test_of_two_records_the_model_is_flowers_own_or_the_one_that_the_plan_names() -> None:
    # c has the numbers 1, arrays the numbers 2, and updates are twice as large.
    assert selected(records("c", "arrays"))["bias"] == [4.0, 4.0]
    assert selected(records("c", "arrays"), record="c")["bias"] == [2.0, 2.0]
    with pytest.raises(PlanError, match=r"control, model\. Set training\.record"):
        selected(records("model", "control"))


def test_names_what_differs_and_what_to_do() -> None:
    with pytest.raises(
        PlanError, match="weight is missing in the recording and 2x3 in the plan"
    ):
        selected({"a": torch.ones(2)})
    with pytest.raises(PlanError, match=r"weight is 2x4 .* reads 4 inputs and the plan's 3"):
        selected({"weight": torch.ones(2, 4), "bias": torch.ones(2)})


def test_two_recorded_tensors_that_the_network_shares_must_be_equal() -> None:
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    sent = {name: tensor.detach().clone() for name, tensor in tied.state_dict().items()}
    match_model_tensors(RECORDING, transcript(sent), tied, "", None)
    sent["1.weight"][0, 0] += 1
    with pytest.raises(PlanError, match=r"1\.weight and 0\.weight differ, and are one tensor"):
        match_model_tensors(RECORDING, transcript(sent), tied, "", None)
