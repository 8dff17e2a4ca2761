"""The gradient of the loss of each example at each layer, as slopes and inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import DroppedLinear
from overheard.learning.layer_calls import CallRecorder, LayerCall
from overheard.learning.loss import per_example_loss
from overheard.learning.sent_tensors import load_sent_tensors, trainable_parameters

EXAMPLE_BY_EXAMPLE = (
    nn.Linear,
    DroppedLinear,
    nn.Dropout,
    nn.Conv2d,
    nn.Embedding,
    nn.EmbeddingBag,
    nn.ReLU,
    nn.LeakyReLU,
    nn.Tanh,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
)
"""Modules that keep the examples of a batch apart, on the first axis."""


@final
@dataclass(frozen=True, slots=True)
class LayerNames:
    """Names of the parameters of a layer, as they are sent.

    The layer is a matrix, whose gradient mixes all its inputs, or a *table*: of its rows an
    example reads few, as of an embedding. A vector, as of a norm, is a table of one column.

    Args:
        weight: of the weight.
        bias: of the bias; None if none is sent, or if it is a layer of its own.
        is_table: whether the weight is a table.

    """

    weight: str
    bias: str | None
    is_table: bool = False

    def matrix_of(self, weights: Weights) -> Float[Tensor, "outputs inputs"]:
        """Return the layer's part of the weights: the last column is the bias.

        The inputs of a table are its rows.
        """
        weight = weights[self.weight]
        if self.is_table:
            return weight.reshape(len(weight) if weight.dim() else 1, -1).T
        if self.bias is None:
            return weight.flatten(1)
        return torch.cat((weight.flatten(1), weights[self.bias].unsqueeze(1)), 1)

    def parts_of(
        self, matrices: Float[Tensor, "examples outputs inputs"]
    ) -> dict[str, Float[Tensor, "examples ..."]]:
        """Return the parameters in such matrices by name, in the order of their numbers."""
        if self.is_table:
            return {self.weight: matrices.transpose(1, 2)}
        if self.bias is None:
            return {self.weight: matrices}
        return {self.weight: matrices[:, :, :-1], self.bias: matrices[:, :, -1]}


@final
@dataclass(frozen=True, slots=True, eq=False)
class LayerGradients:
    """The gradients of examples at a matrix: of each, a sum of products over positions.

    A linear layer has one position, or one for each token; a convolution has one for each pixel
    of its output. With a bias, the last input is 1. A layer that is no such sum has its
    gradient as inputs, and the unit vectors as slopes.

    Args:
        inputs: of the layer, at each position.
        slopes: gradient of the example's loss at the outputs of the layer.

    """

    inputs: Float[Tensor, "examples positions inputs"]
    slopes: Float[Tensor, "examples positions outputs"]

    @property
    def nbytes(self) -> int:
        """The memory of inputs and slopes."""
        return self.inputs.nbytes + self.slopes.nbytes

    @property
    def matrix_bytes(self) -> int:
        """The memory of `matrices`, if examples have several positions; else 0."""
        examples, positions, outputs = self.slopes.shape
        if positions == 1:
            return 0
        return examples * outputs * self.inputs.shape[2] * self.slopes.element_size()

    def matrices(self) -> Float[Tensor, "examples outputs inputs"]:
        """Return the gradient of each example, as `LayerNames.matrix_of` orders weights."""
        slopes = self.slopes.transpose(1, 2)
        return slopes * self.inputs if slopes.shape[2] == 1 else slopes @ self.inputs


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableGradients:
    """The gradients of examples at the rows of a table that each of them reads.

    Args:
        size: number of rows of the table.
        rows: that an example reads, each once; slots that are left over name row 0.
        slopes: gradient of the example's loss at each of them; 0 where a slot is left over.

    """

    size: int
    rows: Int[Tensor, "examples positions"]
    slopes: Float[Tensor, "examples positions outputs"]

    @property
    def nbytes(self) -> int:
        """The memory of rows and slopes."""
        return self.rows.nbytes + self.slopes.nbytes

    @property
    def matrix_bytes(self) -> int:
        """0: nothing needs the gradients as matrices."""
        return 0

    def matrices(self) -> Float[Tensor, "examples outputs inputs"]:
        """Return the gradient of each example, as `LayerNames.matrix_of` orders weights."""
        examples, _, outputs = self.slopes.shape
        whole = self.slopes.new_zeros(examples, self.size, outputs)
        index = self.rows.unsqueeze(2).expand_as(self.slopes)
        return whole.scatter_add_(1, index, self.slopes).transpose(1, 2)


Gradients = LayerGradients | TableGradients


def layer_gradients(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> dict[LayerNames, Gradients]:
    """Return the gradients of each example's loss by layer, at these weights.

    Every parameter that trains is in a layer. Linear layers, convolutions, embeddings, LSTMs
    and GRUs, wherever the network calls them, give slopes and inputs; the gradient of another
    parameter is computed as it is. Dropout is off, and a batch norm takes its running
    statistics, not those of a batch, in which examples mix. All gradients are in memory at
    once, so a caller with many examples passes a part of them.

    Args:
        build_model: builds the architecture.
        weights: where the gradients are taken.
        examples: one or more, on the device of the weights.
        recipe: names the loss.

    """
    model = model_at(build_model, weights, examples.inputs.device)
    found = _by_layer(model, examples, recipe)
    return {
        names: found[names]
        for name in trainable_parameters(model)
        for names in found
        if names.weight == name
    }


def model_at(build_model: BuildModel, weights: Weights, device: torch.device) -> nn.Module:
    """Return the model with these weights and of their dtype, without dropout."""
    model = fresh_model(build_model, Seed(0)).to(device).eval()
    model.to(dtype=next(iter(weights.values())).dtype)
    load_sent_tensors(model, weights)
    return model


def _by_layer(
    model: nn.Module, examples: Examples, recipe: Recipe
) -> dict[LayerNames, Gradients]:
    """Return the gradients of all examples at once if that can be done, else one by one."""
    parameters = trainable_parameters(model)
    survey = CallRecorder({id(one) for one in parameters.values()})
    with survey:
        model(examples.inputs[:1])
    layers = _Layers.of_calls(parameters, survey)
    if not layers.others and _keeps_examples_apart(model):
        return layers.by_autograd(model, examples, recipe)
    try:
        return layers.by_vmap(model, examples, recipe, survey.calls)
    except RuntimeError:  # the network reads numbers, as to pack texts by length
        rows = torch.split(torch.arange(len(examples), device=examples.labels.device), 1)
        each = [layers.by_autograd(model, examples.take(row), recipe) for row in rows]
        return {names: _stacked([one[names] for one in each]) for names in each[0]}


@dataclass(frozen=True, slots=True, eq=False)
class _Layers:
    """The layers of a network.

    Args:
        products: those that always run as linear layers, convolutions or tables, by the id of
            the weight.
        others: all other parameters by name.

    """

    products: Mapping[int, LayerNames]
    others: Mapping[str, Tensor]

    @classmethod
    def of_calls(cls, parameters: Mapping[str, Tensor], survey: CallRecorder) -> "_Layers":
        """Return the layers of a network, from the calls for one example."""
        name_of = {id(one): name for name, one in parameters.items()}
        products = {}
        for name, weight in parameters.items():
            calls = [one for one in survey.calls if one.weight is weight]
            is_one_kind = len({(one.kind, id(one.bias)) for one in calls}) == 1
            if not is_one_kind or id(weight) in survey.others:
                continue
            bias, is_table = calls[0].bias, calls[0].kind == "table"
            is_alone = id(bias) not in survey.others and all(
                one.weight is weight for one in survey.calls if one.bias is bias
            )
            of_bias = name_of.get(id(bias)) if is_alone else None
            products[id(weight)] = LayerNames(name, of_bias, is_table)
        covered = {name for one in products.values() for name in (one.weight, one.bias)}
        return cls(products, {n: one for n, one in parameters.items() if n not in covered})

    def by_autograd(
        self, model: nn.Module, examples: Examples, recipe: Recipe
    ) -> dict[LayerNames, Gradients]:
        """Return the gradients of one example, or of a network that keeps examples apart."""
        recorder = CallRecorder(self.products)
        with recorder:
            logits = model(examples.inputs)
        calls = recorder.calls
        found = torch.autograd.grad(
            _losses(logits, examples.loss_labels, recipe).sum(),
            [*(one.output for one in calls), *self.others.values()],
            materialize_grads=True,
        )
        inputs, slopes = [one.inputs.detach() for one in calls], list(found[: len(calls)])
        if len(examples) == 1:
            inputs, slopes = [one[None] for one in inputs], [one[None] for one in slopes]
        others = zip(self.others, (one[None] for one in found[len(calls) :]), strict=True)
        return self._joined(calls, inputs, slopes, dict(others))

    @torch.no_grad()
    def by_vmap(
        self, model: nn.Module, examples: Examples, recipe: Recipe, calls: Sequence[LayerCall]
    ) -> dict[LayerNames, Gradients]:
        """Return the gradients; the network sees each example as a batch of one."""
        # The first call of `vmap` imports the compiler of torch, which takes seconds.
        from torch.func import grad, vmap

        def loss(
            at: tuple[Sequence[Tensor], dict[str, Tensor]], inputs: Tensor, label: Tensor
        ) -> tuple[Tensor, list[Tensor]]:
            """Return the loss at offsets of outputs and at other parameters, and inputs."""
            recorder = CallRecorder(self.products, at[0])
            with recorder:
                logits = functional_call(model, at[1], (inputs,))
            return _losses(logits, label, recipe).sum(), [one.inputs for one in recorder.calls]

        calls = [one for one in calls if id(one.weight) in self.products]
        with sdpa_kernel(SDPBackend.MATH):  # attention that `vmap` can run
            (slopes, others), inputs = vmap(grad(loss, has_aux=True), (None, 0, 0))(
                ([torch.zeros_like(one.output) for one in calls], dict(self.others)),
                examples.inputs.unsqueeze(1),
                examples.loss_labels.unsqueeze(1),
            )
        return self._joined(calls, inputs, slopes, others)

    def _joined(
        self,
        calls: Sequence[LayerCall],
        inputs: Sequence[Tensor],
        slopes: Sequence[Tensor],
        others: Mapping[str, Tensor],
    ) -> dict[LayerNames, Gradients]:
        """Return the gradients by layer, of inputs and slopes by call and other gradients."""
        found: dict[LayerNames, Gradients] = {}
        for weight, names in self.products.items():
            of_layer = [place for place, one in enumerate(calls) if id(one.weight) == weight]
            parts = [calls[place].positions(inputs[place], slopes[place]) for place in of_layer]
            found[names] = _joined(names, parts, len(calls[of_layer[0]].weight))
        for name, gradient in others.items():
            examples, is_table = len(gradient), gradient.dim() < 3
            if is_table:
                values = gradient.reshape(examples, -1, 1)
                rows = torch.arange(values.shape[1], device=values.device)
                of_name: Gradients = TableGradients(
                    len(rows), rows.expand(examples, -1), values
                )
            else:
                unit = torch.eye(gradient.shape[1]).to(gradient)
                of_name = LayerGradients(gradient.flatten(2), unit.expand(examples, -1, -1))
            found[LayerNames(name, None, is_table)] = of_name
        return found


def _losses(logits: Tensor, labels: Tensor, recipe: Recipe) -> Float[Tensor, " examples"]:
    return per_example_loss(logits, labels, recipe.loss, recipe.label_smoothing)


def _keeps_examples_apart(module: nn.Module) -> bool:
    """Return whether a batch can be run at once: a sequence of modules known to allow it."""
    if type(module) is nn.Sequential:
        return all(_keeps_examples_apart(one) for one in module)
    if isinstance(module, nn.Flatten):
        return module.start_dim == 1
    return type(module) in EXAMPLE_BY_EXAMPLE


def _joined(names: LayerNames, parts: Sequence[tuple[Tensor, Tensor]], size: int) -> Gradients:
    """Return the gradients of a layer, whose calls are further positions."""
    inputs = torch.cat([one for one, _ in parts], 1)
    slopes = torch.cat([one for _, one in parts], 1)
    if names.is_table:
        return _each_row_once(size, inputs, slopes)
    if names.bias is not None:
        inputs = functional.pad(inputs, (0, 1), value=1.0)
    return LayerGradients(inputs, slopes)


def _each_row_once(size: int, rows: Tensor, slopes: Tensor) -> TableGradients:
    """Add the slopes of an example's positions that read the same row."""
    rows, order = rows.sort(1)
    slopes = slopes.gather(1, order.unsqueeze(2).expand_as(slopes))
    slots = functional.pad((rows.diff(dim=1) != 0).long(), (1, 0)).cumsum(1)
    count = int(slots.max()) + 1
    merged = slopes.new_zeros(len(rows), count, slopes.shape[2])
    merged.scatter_add_(1, slots.unsqueeze(2).expand_as(slopes), slopes)
    return TableGradients(
        size, rows.new_zeros(len(rows), count).scatter_(1, slots, rows), merged
    )


def _stacked(each: Sequence[Gradients]) -> Gradients:
    """Return the gradients at a layer of examples that were run one by one."""

    def padded(parts: list[Tensor]) -> Tensor:
        return nn.utils.rnn.pad_sequence([one[0] for one in parts], batch_first=True)

    slopes = padded([one.slopes for one in each])
    if isinstance(each[0], TableGradients):
        rows = [one.rows for one in each if isinstance(one, TableGradients)]
        return TableGradients(each[0].size, padded(rows), slopes)
    inputs = [one.inputs for one in each if isinstance(one, LayerGradients)]
    return LayerGradients(padded(inputs), slopes)
