"""A transformer that classifies texts, with or without low-rank adapters."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, final

import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.custom_code.reference import OutsideName
from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import apply_update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import NotNegative, Positive
from overheard.core.task import Task
from overheard.disk.writing import write_bytes
from overheard.learning.initialization import initial_weights
from overheard.learning.input_shapes import vocabulary_size
from overheard.learning.model import Model
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

PADDING = 0
"""The token after the end of a text."""

LARGEST_PERIOD = 10_000.0
"""Of the waves that encode positions: Vaswani et al. 2017, section 3.5."""

MOST_BLOCKS = 200
"""The largest depth: building more blocks takes seconds, and no known model has as many."""

AdaptedLayer = Literal["query", "key", "value", "output", "widen", "narrow"]
"""A linear layer of a block: four of the attention, two of the feed-forward part."""


@final
@dataclass(frozen=True, slots=True)
class Transformer(Model):
    """Word vectors, blocks of attention, and a linear layer on their mean over the words.

    The blocks normalise before each part, not after it (Xiong et al. 2020, Figure 1b), which
    needs no warm-up. Positions are waves and no parameters (Vaswani et al. 2017, section 3.5).
    There is no dropout. With 5,000 words and 5,000 classes there are 4.9 million parameters.

    With a `rank`, adapters change the linear layers named in `adapted`:

        h = W x + alpha / rank  B A x        (Hu et al. 2021, section 4.1)

    Only A, B and the last layer are trained, and so only they are sent; everything else is
    frozen. B starts at 0, and A is drawn with variance 1 / inputs; the paper names no variance.

    Args:
        width: length of a word vector, divisible by `heads`.
        depth: number of blocks.
        heads: heads of the attention.
        rank: rank of the adapters; 0 = none, and all parameters are trained.
        alpha: scale of the adapters, as in the formula.
        adapted: the linear layers of each block that have adapters; the paper adapts query and
            value.
        base: file of the weights to start from, which `pretrain`
            writes; without it they are random, also those that adapters leave frozen. Give
            another file another name, since an audit's stored runs are not compared with its
            content.

    """

    width: Positive = 256
    depth: Annotated[int, Ge(1), Le(MOST_BLOCKS)] = 3
    heads: Positive = 4
    rank: NotNegative = 0
    alpha: Annotated[float, Gt(0)] = 16.0
    adapted: tuple[AdaptedLayer, ...] = ("query", "value")
    base: OutsideName = ""

    name: ClassVar[str] = "transformer"
    source: ClassVar[str] = (
        "Vaswani et al. 2017, section 3; Xiong et al. 2020; adapters: Hu et al. 2021 (LoRA)"
    )

    def check_together(self) -> None:
        """Refuse a width that cannot be divided, and ranks that fit no layer."""
        if self.width % self.heads:
            raise ValueError(
                f"width must be divisible by heads, got {self.width} and {self.heads}"
            )
        if self.width % 2:
            raise ValueError(f"width must be even, got {self.width}")
        if self.rank > self.width:
            raise ValueError(f"rank must be at most the width, {self.width}, got {self.rank}")
        if self.rank and not self.adapted:
            raise ValueError("adapted must name a layer, or rank be 0")

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights, or with those of `base`."""
        tokens = vocabulary_size(task, self.name)
        network = _Classifier(self, tokens, task)
        if self.base:
            load_pretrained(network, Path(self.base), optional=("last.weight", "last.bias"))
        if self.rank:
            _freeze_base(network)
        return network


def _freeze_base(network: nn.Module) -> None:
    """Freeze all parameters but those of adapters and of the last layer."""
    adapters = [part for part in network.modules() if isinstance(part, AdaptedLinear)]
    trained = {id(one) for part in adapters for one in (part.reduce, part.expand)}
    for name, parameter in network.named_parameters():
        if id(parameter) not in trained and not name.startswith("last."):
            parameter.requires_grad_(False)


@final
class AdaptedLinear(nn.Linear):
    """A linear layer with a low-rank adapter.

    Its own parameters have the names of a plain linear layer, so that weights which were
    trained without adapters fit.
    """

    def __init__(self, inputs: int, outputs: int, rank: int, alpha: float) -> None:
        super().__init__(inputs, outputs)
        self._scale = alpha / rank
        self.reduce = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.expand = nn.Parameter(torch.zeros(outputs, rank))

    def forward(
        self, input: Float[Tensor, "*examples inputs"]
    ) -> Float[Tensor, "*examples outputs"]:
        """Apply the layer, and add the adapter's change."""
        change = functional.linear(functional.linear(input, self.reduce), self.expand)
        return super().forward(input) + self._scale * change


class _Classifier(nn.Module):
    def __init__(self, settings: Transformer, tokens: int, task: Task) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, settings.width, padding_idx=PADDING)
        self.positions: Tensor
        waves = _position_waves(task.shape[0], settings.width)
        self.register_buffer("positions", waves, persistent=False)
        self.blocks = nn.ModuleList(_Block(settings) for _ in range(settings.depth))
        self.norm = nn.LayerNorm(settings.width)
        self.last = nn.Linear(settings.width, task.outputs)

    def forward(self, tokens: Int[Tensor, "examples tokens"]) -> Tensor:
        """Return logits: (examples, classes)."""
        is_word = tokens != PADDING
        states = self.table(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            states = block(states, is_word)
        weights = is_word / is_word.sum(1, keepdim=True).clamp(min=1)  # (examples, tokens)
        mean = torch.einsum("nt,ntw->nw", weights.to(states.dtype), self.norm(states))
        logits: Tensor = self.last(mean)
        return logits


class _Block(nn.Module):
    """Attention and a feed-forward part, each added to its inputs."""

    def __init__(self, settings: Transformer) -> None:
        super().__init__()
        width = settings.width
        self._heads = settings.heads
        self.attention_norm = nn.LayerNorm(width)
        self.query = _linear(settings, "query", width, width)
        self.key = _linear(settings, "key", width, width)
        self.value = _linear(settings, "value", width, width)
        self.output = _linear(settings, "output", width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.widen = _linear(settings, "widen", width, 4 * width)
        self.narrow = _linear(settings, "narrow", 4 * width, width)

    def forward(
        self,
        states: Float[Tensor, "examples tokens width"],
        is_word: Bool[Tensor, "examples tokens"],
    ) -> Float[Tensor, "examples tokens width"]:
        normed = self.attention_norm(states)
        query, key, value = (
            self._by_head(layer(normed)) for layer in (self.query, self.key, self.value)
        )
        # A text without words attends to its padding, so that no row is empty.
        is_read = is_word | ~is_word.any(1, keepdim=True)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=is_read[:, None, None, :]
        )
        states = states + self.output(mixed.transpose(1, 2).flatten(2))
        change: Tensor = self.narrow(functional.gelu(self.widen(self.feed_norm(states))))
        return states + change

    def _by_head(
        self, states: Float[Tensor, "examples tokens width"]
    ) -> Float[Tensor, "examples heads tokens _"]:
        examples, tokens, _ = states.shape
        return states.view(examples, tokens, self._heads, -1).transpose(1, 2)


def _linear(settings: Transformer, place: AdaptedLayer, inputs: int, outputs: int) -> nn.Linear:
    if settings.rank and place in settings.adapted:
        return AdaptedLinear(inputs, outputs, settings.rank, settings.alpha)
    return nn.Linear(inputs, outputs)


def _position_waves(tokens: int, width: int) -> Float[Tensor, "tokens width"]:
    """Return sine and cosine of each position, of falling frequency."""
    half = torch.arange(0, width, 2) / width
    angles = torch.arange(tokens)[:, None] / LARGEST_PERIOD**half  # (tokens, width / 2)
    return torch.stack((angles.sin(), angles.cos()), 2).flatten(1)


def pretrain(
    build_model: BuildModel,
    examples: Examples,
    recipe: Recipe,
    path: Path,
    *,
    seed: Seed,
    device: torch.device | str = "cpu",
) -> float:
    """Train a model as one client would, and write its weights; return the last mean loss.

    Give it public examples, such as a data set's `background`: those of no client.

    Args:
        build_model: builds the model; all that it sends is written.
        examples: what it trains on.
        recipe: how it trains.
        path: the file to write, in the format safetensors.
        seed: root of the initial weights and of the order of batches.
        device: where to compute.

    Raises:
        PlanError: if the training diverges.
        OutputError: if the file cannot be written.

    """
    start = initial_weights(build_model, seed.child("initial"))
    client = ClientTask("pretraining", torch.arange(len(examples)))
    (trained,) = train_cohort(
        build_model, start, examples, [client], recipe, seed=seed, round=0, device=device
    )
    weights = apply_update(start, trained.delta)
    if not all(bool(one.isfinite().all()) for one in weights.values()):
        raise PlanError("the pretraining diverged: lower the rate")
    content = save({name: one.contiguous() for name, one in weights.items()})
    write_bytes(path, content, inside=path.parent, is_private=False)
    return trained.loss


def load_pretrained(network: nn.Module, path: Path, optional: tuple[str, ...]) -> None:
    """Copy the weights of a file into a network, in place.

    Parameters that only the network has, such as those of adapters, stay as they are.

    Args:
        network: the network.
        path: a file that `pretrain` wrote.
        optional: parameters that also stay if their shape differs, such as a last layer of
            other classes.

    Raises:
        PlanError: if the file is missing or damaged, or does not fit the network.

    """
    parameters = dict(network.named_parameters())
    try:
        stored = {name: one.float() for name, one in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise PlanError(f"model: base: {path} cannot be read: {error}") from error
    if not all(bool(one.isfinite().all()) for one in stored.values()):
        raise PlanError(f"model: base: {path} has NaN or infinity: train it again")
    unknown = sorted(stored.keys() - parameters.keys())
    if unknown:
        raise PlanError(
            f"model: base: {path} has {', '.join(unknown[:3])}, which the model has not: take "
            "the settings with which it was trained"
        )
    with torch.no_grad():
        for name, weight in stored.items():
            if parameters[name].shape == weight.shape:
                parameters[name].copy_(weight)
            elif name not in optional:
                raise PlanError(
                    f"model: base: {name} has the shape {tuple(weight.shape)} in {path}, and "
                    f"{tuple(parameters[name].shape)} in the model: take the settings and the "
                    "vocabulary with which it was trained"
                )
