"""The gradient of the loss of each example at each layer, as slopes and inputs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.learning.initialization import model_at
from overheard.learning.last_layer import DroppedLinear
from overheard.learning.layer_calls import CallRecorder, LayerCall
from overheard.learning.loss import per_example_loss
from overheard.learning.precision import computing
from overheard.learning.sent_tensors import trainable_parameters

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


TRIED_ALONE = 3
"""Examples of a batch that are also run alone, to see that a batch changes nothing."""

ROUNDING = 1e-3
"""By how much numbers may differ that are computed in a batch and alone."""


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
    gradient as the inputs and unit vectors as the slopes, or the other way round if it has more
    outputs than inputs.

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

    def projected(
        self, inputs: Float[Tensor, "inputs axes"], outputs: Float[Tensor, "outputs axes2"]
    ) -> "LayerGradients":
        """Return the gradients on these axes of inputs and outputs, the columns.

        If there are fewer axes of outputs than positions, the sum over positions is taken
        first, and unit vectors are the slopes.
        """
        slopes = self.slopes @ outputs
        examples, positions, axes = slopes.shape
        if positions <= axes:
            return LayerGradients(self.inputs @ inputs, slopes)
        units = torch.eye(axes, dtype=slopes.dtype, device=slopes.device)
        summed = (slopes.transpose(1, 2) @ self.inputs) @ inputs
        return LayerGradients(summed, units.expand(examples, axes, axes))

    def squares(self) -> Float[Tensor, " examples"]:
        """Return the squared L2 norm of each example's gradient."""
        if self.slopes.shape[1] == 1:
            return self.inputs.square().sum((1, 2)) * self.slopes.square().sum((1, 2))
        return self.matrices().square().sum((1, 2))

    def weighted_sum(self, weights: Float[Tensor, " examples"]) -> Tensor:
        """Return the weighted sum over examples, as `LayerNames.matrix_of` orders weights."""
        slopes = self.slopes * weights[:, None, None]
        return slopes.flatten(0, 1).T @ self.inputs.flatten(0, 1)


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

    def squares(self) -> Float[Tensor, " examples"]:
        """Return the squared L2 norm of each example's gradient."""
        return self.slopes.square().sum((1, 2))

    def weighted_sum(self, weights: Float[Tensor, " examples"]) -> Tensor:
        """Return the weighted sum over examples, as `LayerNames.matrix_of` orders weights."""
        slopes = self.slopes * weights[:, None, None]
        whole = slopes.new_zeros(self.size, slopes.shape[2])
        return whole.index_add_(0, self.rows.flatten(), slopes.flatten(0, 1)).T


Gradients = LayerGradients | TableGradients

ComputeLosses = Callable[[Tensor, Tensor], Tensor]
"""Computes the loss of each example from the network's outputs and the labels."""


def layer_gradients(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    recipe: Recipe,
    layers: Collection[LayerNames] | None = None,
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
        layers: those of `find_layers`, so that the gradients of other examples, or at other
            weights, have the same ones; None = those of these examples.

    """
    model = model_at(build_model, weights, examples.inputs.device)
    with computing("float32"):
        by_layer, _ = gradients_and_losses(
            model, examples.inputs, examples.loss_labels, _losses_of(recipe), layers
        )
    return by_layer


def find_layers(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> tuple[LayerNames, ...]:
    """Return the layers that have slopes and inputs when the network runs these examples.

    The first example shows them, unless the network routes examples by what they are, as one of
    experts does. Then all are run, one by one.
    """
    model = model_at(build_model, weights, examples.inputs.device)
    run = _Run(model, examples.inputs, examples.loss_labels, _losses_of(recipe))
    survey, layers = _survey(run)
    if layers.others or not _keeps_examples_apart(model):
        first = _Run(model, run.inputs[:1], run.labels[:1], run.compute_losses)
        try:
            layers.by_vmap(first, survey.calls)
        except RuntimeError:
            layers = _survey_each(run)
    return tuple(layers.products.values())


def activation_bytes(
    build_model: BuildModel, weights: Weights, examples: Examples, recipe: Recipe
) -> int:
    """Return the memory that the losses of examples keep for their gradients, beside weights.

    They are run as one batch, so for a network that routes by data it is that of one way.
    """
    model = model_at(build_model, weights, examples.inputs.device)
    of_weights = {one.untyped_storage().data_ptr() for one in model.parameters()}
    kept = dict[int, int]()

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    watched = {id(one) for one in trainable_parameters(model).values()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        with CallRecorder(watched):
            outputs = model(examples.inputs)
        losses = _losses_of(recipe)(outputs, examples.loss_labels)
    # The losses hold the tensors until here, so that no two share an address.
    assert losses.requires_grad
    return sum(size for address, size in kept.items() if address not in of_weights)


def _losses_of(recipe: Recipe) -> ComputeLosses:
    return partial(per_example_loss, loss=recipe.loss, label_smoothing=recipe.label_smoothing)


def gradients_and_losses(
    model: nn.Module,
    inputs: Shaped[Tensor, "examples ..."],
    labels: Shaped[Tensor, "examples ..."],
    compute_losses: ComputeLosses,
    known: Collection[LayerNames] | None = None,
) -> tuple[dict[LayerNames, Gradients], Float[Tensor, " examples"]]:
    """Return the gradients of each example's loss by layer, and the losses.

    Args:
        model: the network with its weights.
        inputs: of one or more examples.
        labels: of the examples.
        compute_losses: computes the loss of each example from outputs and labels.
        known: the layers with slopes and inputs; None = those of these examples.

    """
    run = _Run(model, inputs, labels, compute_losses)
    survey, layers = _survey(run)
    if known is not None:
        layers = _Layers.of_names(trainable_parameters(model), known)
    if not layers.others and _keeps_examples_apart(model):
        return layers.by_autograd(run)
    try:
        return layers.by_vmap(run, survey.calls)
    except RuntimeError:  # the network reads numbers, as to pack texts by length
        together = _run_together(run, layers)
        if together is not None:
            return together
        if known is None:
            layers = _survey_each(run)
        each = [layers.by_autograd(one) for one in run.split()]
        by_layer = {names: _stacked([one[names] for one, _ in each]) for names in each[0][0]}
        return by_layer, torch.cat([losses for _, losses in each])


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """The arguments of `gradients_and_losses`."""

    model: nn.Module
    inputs: Tensor
    labels: Tensor
    compute_losses: ComputeLosses

    def only(self, place: int) -> "_Run":
        """Return the run of one example."""
        rows = slice(place, place + 1)
        return _Run(self.model, self.inputs[rows], self.labels[rows], self.compute_losses)

    def split(self) -> "list[_Run]":
        """Return the run of each example by itself."""
        pairs = zip(torch.split(self.inputs, 1), torch.split(self.labels, 1), strict=True)
        return [_Run(self.model, *pair, self.compute_losses) for pair in pairs]


def _run_together(
    run: _Run, layers: "_Layers"
) -> tuple[dict[LayerNames, Gradients], Tensor] | None:
    """Return gradients and losses of a batch, if its examples do not change each other's.

    Networks of other libraries read numbers of a batch, such as whether it has padding, and
    keep its examples apart all the same. That is tried with some examples, each run alone.
    None = they do not, a layer has no slopes, or the examples are few.
    """
    count = len(run.inputs)
    if layers.others or count <= TRIED_ALONE:
        return None
    try:
        found, losses = layers.by_autograd(run)
        for place in (0, count // 2, count - 1):
            alone, loss = layers.by_autograd(run.only(place))
            if not _is_close(losses[place : place + 1], loss) or any(
                not _are_same(one, place, count, alone[names]) for names, one in found.items()
            ):
                return None
    except (RuntimeError, IndexError, ValueError):  # a call has no axis of examples
        return None
    return found, losses


def _are_same(together: Gradients, place: int, count: int, alone: Gradients) -> bool:
    """Return whether an example of a batch of this many has the gradient that it has alone."""
    squares = together.squares()
    if len(squares) != count or not _is_close(squares[place : place + 1], alone.squares()):
        return False
    if isinstance(together, TableGradients) or isinstance(alone, TableGradients):
        return True
    parts = zip((together.inputs, together.slopes), (alone.inputs, alone.slopes), strict=True)
    return all(_is_close(one[place : place + 1], other) for one, other in parts)


def _is_close(one: Tensor, other: Tensor) -> bool:
    """Return whether tensors differ by rounding alone."""
    if one.shape != other.shape:
        return False
    largest = float(other.abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=ROUNDING, atol=ROUNDING * largest)


def _survey(run: _Run) -> "tuple[CallRecorder, _Layers]":
    """Return the calls for the first example, and the layers."""
    parameters = trainable_parameters(run.model)
    survey = CallRecorder({id(one) for one in parameters.values()})
    with survey:
        run.model(run.inputs[:1])
    return survey, _Layers.of_calls(parameters, survey)


def _survey_each(run: _Run) -> "_Layers":
    """Return the layers, where examples may run by other ones."""
    parameters = trainable_parameters(run.model)
    survey = CallRecorder({id(one) for one in parameters.values()})
    for inputs in torch.split(run.inputs, 1):
        with survey:
            run.model(inputs)
        # One call of each layer and bias is enough, and the others hold their activations.
        layers = {(one.kind, id(one.weight), id(one.bias)): one for one in survey.calls}
        survey.calls = list(layers.values())
    return _Layers.of_calls(parameters, survey)


@dataclass(frozen=True, slots=True, eq=False)
class _Layers:
    """The layers of a network.

    Args:
        products: those that always run as linear layers, convolutions or tables, by the id of
            the weight.
        others: all other parameters by name.
        parameters: all by name, in order.

    """

    products: Mapping[int, LayerNames]
    others: Mapping[str, Tensor]
    parameters: Mapping[str, Tensor]

    @classmethod
    def of_calls(cls, parameters: Mapping[str, Tensor], survey: CallRecorder) -> "_Layers":
        """Return the layers of a network, from the calls for one example or several."""
        name_of = {id(one): name for name, one in parameters.items()}
        products = dict[int, LayerNames]()
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
        return cls.of_names(parameters, products.values())

    @classmethod
    def of_names(
        cls, parameters: Mapping[str, Tensor], products: Collection[LayerNames]
    ) -> "_Layers":
        """Return the layers of a network, of which these have slopes and inputs."""
        covered = {name for one in products for name in (one.weight, one.bias)}
        others = {name: one for name, one in parameters.items() if name not in covered}
        by_weight = {id(parameters[one.weight]): one for one in products}
        return cls(by_weight, others, parameters)

    def by_autograd(self, run: _Run) -> tuple[dict[LayerNames, Gradients], Tensor]:
        """Return gradients and losses of one example, or where examples are kept apart."""
        recorder = CallRecorder(self.products)
        with recorder:
            outputs = run.model(run.inputs)
        calls, losses = recorder.calls, run.compute_losses(outputs, run.labels)
        found = torch.autograd.grad(
            losses.sum(),
            [*(one.output for one in calls), *self.others.values()],
            materialize_grads=True,
        )
        inputs, slopes = [one.inputs.detach() for one in calls], list(found[: len(calls)])
        if len(losses) == 1:
            inputs, slopes = [one[None] for one in inputs], [one[None] for one in slopes]
        others = zip(self.others, (one[None] for one in found[len(calls) :]), strict=True)
        return self._joined(calls, inputs, slopes, dict(others)), losses.detach()

    @torch.no_grad()
    def by_vmap(
        self, run: _Run, calls: Sequence[LayerCall]
    ) -> tuple[dict[LayerNames, Gradients], Tensor]:
        """Return gradients and losses; the network sees each example as a batch of one."""
        # The first call of `vmap` imports the compiler of torch, which takes seconds.
        from torch.func import grad, vmap

        def compute_loss(
            at: tuple[Sequence[Tensor], dict[str, Tensor]], inputs: Tensor, label: Tensor
        ) -> tuple[Tensor, tuple[Tensor, list[Tensor]]]:
            """Return the loss at offsets of outputs and at other parameters, and inputs."""
            recorder = CallRecorder(self.products, at[0])
            with recorder:
                outputs = functional_call(run.model, at[1], (inputs,))
            loss = run.compute_losses(outputs, label).sum()
            return loss, (loss, [one.inputs for one in recorder.calls])

        calls = [one for one in calls if id(one.weight) in self.products]
        start = [torch.zeros_like(one.output) for one in calls], dict(self.others)
        by_example = vmap(
            grad(compute_loss, has_aux=True), (None, 0, 0), randomness="different"
        )
        with sdpa_kernel(SDPBackend.MATH):  # attention that `vmap` can run
            (slopes, others), (losses, inputs) = by_example(
                start, run.inputs.unsqueeze(1), run.labels.unsqueeze(1)
            )
        return self._joined(calls, inputs, slopes, others), losses

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
            found[names] = _joined(names, parts, self.parameters[names.weight])
        for name, gradient in others.items():
            examples, is_table = len(gradient), gradient.dim() < 3
            if is_table:
                values = gradient.reshape(examples, -1, 1)
                rows = torch.arange(values.shape[1], device=values.device)
                of_name: Gradients = TableGradients(
                    len(rows), rows.expand(examples, -1), values
                )
            else:
                rows = gradient.flatten(2)
                unit = torch.eye(min(rows.shape[1:])).to(rows).expand(examples, -1, -1)
                # The shorter side has the unit vectors: a tied table has a row for each word.
                is_tall = rows.shape[1] > rows.shape[2]
                of_name = (
                    LayerGradients(unit, rows.transpose(1, 2))
                    if is_tall
                    else LayerGradients(rows, unit)
                )
            found[LayerNames(name, None, is_table)] = of_name
        places = {name: place for place, name in enumerate(self.parameters)}
        return {one: found[one] for one in sorted(found, key=lambda one: places[one.weight])}


def _keeps_examples_apart(module: nn.Module) -> bool:
    """Return whether a batch can be run at once: a sequence of modules known to allow it."""
    if type(module) is nn.Sequential:
        return all(_keeps_examples_apart(one) for one in module)
    if isinstance(module, nn.Flatten):
        return module.start_dim == 1
    return type(module) in EXAMPLE_BY_EXAMPLE


def _joined(
    names: LayerNames, parts: Sequence[tuple[Tensor, Tensor]], weight: Tensor
) -> Gradients:
    """Return the gradients of a layer, whose calls are further positions.

    Of no call, as of an expert that the example does not reach, the gradient is 0.
    """
    if not parts:
        width = 1 if names.is_table else weight[0].numel()
        inputs = weight.new_zeros(1, 1, width)
        rows = inputs[..., 0].long() if names.is_table else inputs
        outputs = weight.shape[1] if names.is_table else len(weight)
        parts = [(rows, weight.new_zeros(1, 1, outputs))]
    inputs, slopes = parts[0]
    if len(parts) > 1:
        inputs = torch.cat([one for one, _ in parts], 1)
        slopes = torch.cat([one for _, one in parts], 1)
    if names.is_table:
        return _each_row_once(len(weight), inputs, slopes)
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
