"""Training with additional public examples of one mode (topic)."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Ge
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from overheard.core.custom_code.reference import REFERENCE, OutsideName, import_reference
from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.split import Rows
from overheard.data.reading.texts import PADDING
from overheard.defenses._background import add_background, require_background, share_count
from overheard.learning.threads import single_thread


@final
@dataclass(frozen=True, slots=True)
class MmAug(Defense):
    """Each client adds background examples of one mode, drawn for this client, to its own.

    The background is clustered into modes (k-means), once for all clients. Each client draws
    one mode uniformly, and adds alpha n of its examples to its own n (equation 9). So each
    client gets its own false bias, while `rand_aug` gives all clients the same. Mode and
    examples are drawn once per client. They are the same in every round in which the client
    holds the same examples. No example is drawn twice before all of the mode were drawn; the
    equation draws with replacement.

    Two clients may draw the same mode, the more likely the fewer modes there are. The added
    examples are the same in all rounds, so they mark the client: they hide its user, but not
    that two updates have one sender. An attacker that knows the background can try all modes on
    its auxiliary data.

    Orekondy et al. cluster features of a MobileNet trained on ImageNet. Here features come from
    the inputs (see `_features`) or from your own extractor, which may use any trained model.
    The federation's model is no option: data are mixed before the first round, when it is
    untrained.

    Args:
        alpha: background examples for each of the client's own, rounded up to whole examples.
        modes: number of clusters of the background, M; the published numbers are 100 (PIPA),
            300 (Blog, Yelp) and 500 (OpenImages). There may be fewer.
        extractor: "package.module:function", which takes inputs and returns features, one row
            per example. It is executed, so name only code that you trust. None = features of
            the inputs.

    """

    alpha: Annotated[float, Ge(0)] = 0.5
    modes: Positive = 300
    extractor: OutsideName | None = None

    name: ClassVar[str] = "mm_aug"
    source: ClassVar[str] = (
        "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (Gradient-Leaks, arXiv 1805.05838), "
        "section 7.1, equation 9, mode-specific data augmentation (mm-aug)"
    )
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "each client, for itself"

    def check_together(self) -> None:
        """Refuse a text that is not a reference to a function."""
        if self.extractor is not None and not REFERENCE.fullmatch(self.extractor):
            raise ValueError(
                "extractor: a function is given as 'package.module:function', got "
                f"{self.extractor!r}"
            )

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        """Add examples of a mode, drawn by the context's lasting seed.

        Raises:
            PlanError: if there are no background examples, or the extractor cannot be used.

        """
        background = require_background(context, self.name)
        count = share_count(len(data), self.alpha)
        if not count:
            return data
        mode_rows = find_modes(background.inputs, self.modes, self.extractor)
        generator = context.persistent_seed.child("mode").generator()
        rows = mode_rows[int(torch.randint(len(mode_rows), (), generator=generator))]
        return add_background(
            data, background, rows, count, context.persistent_seed.child("examples").generator()
        )


FEATURES = 64
"""Features per input: enough to distinguish hundreds of topics."""

EXTRA_DIRECTIONS = 8
"""Extra directions in the random projection (oversampling), dropped at the end."""

POWER_ITERATIONS = 2
"""Power iterations; 2 suffice even if singular values decay slowly."""

MIN_LENGTH = 1e-5
"""Length below which a reduced text vector, of length 1 before, is only float32 rounding."""


def compute_features(
    inputs: Shaped[Tensor, "examples ..."], extractor: str | None
) -> Float[Tensor, "examples features"]:
    """Compute features with the extractor; without one, the leading components of the inputs.

    These are up to `FEATURES` leading singular directions (Halko, Martinsson and Tropp 2011,
    algorithm 4.4, with a fixed seed) of a matrix with one row per input. Tables: columns, each
    standardized. Images: pixels minus the mean image. Texts: tf-idf word counts, scaled to
    length 1 before and after the reduction (latent semantic analysis).

    Raises:
        PlanError: if the extractor cannot be imported, or does not return valid features.

    """
    if extractor is not None:
        return _extract_features(inputs, extractor)
    if not inputs.is_floating_point():
        words = _tfidf(inputs)
        return _to_unit_length(_leading_components(words, words.t().coalesce()))
    flat = inputs.flatten(1)
    flat = flat - flat.mean(0)
    if inputs.dim() == 2:
        deviation = flat.square().mean(0).sqrt()
        flat = flat / deviation.where(deviation > 0, 1.0)
    return _leading_components(flat, flat.T)


def _extract_features(
    inputs: Shaped[Tensor, "examples ..."], reference: str
) -> Float[Tensor, "examples features"]:
    extract = import_reference(reference, "extractor", PlanError)
    if not callable(extract):
        raise PlanError(
            f"the extractor {reference} is a {type(extract).__name__}; it must be a function"
        )
    with torch.no_grad():
        features = extract(inputs)
    if not (
        isinstance(features, Tensor)
        and features.is_floating_point()
        and features.dim() == 2
        and len(features) == len(inputs)
        and bool(features.isfinite().all())
    ):
        raise PlanError(
            f"the extractor {reference} must return a matrix of finite numbers with one row "
            f"for each of the {len(inputs)} inputs, got "
            f"{tuple(features.shape) if isinstance(features, Tensor) else type(features)}"
        )
    return features.float().cpu()


def _tfidf(texts: Shaped[Tensor, "examples tokens"]) -> Float[Tensor, "examples words"]:
    """Compute sparse tf-idf vectors: count * log(texts / texts with the word), at length 1."""
    text, position = (texts != PADDING).nonzero().T
    words = torch.stack([text, texts[text, position]])
    size = (len(texts), int(texts.max()) + 1)
    counts = torch.sparse_coo_tensor(
        words, torch.ones(len(text)), size, check_invariants=False
    ).coalesce()
    text, word = counts.indices()
    rarity = (len(texts) / word.bincount(minlength=size[1]).clamp(min=1)).log()
    values = counts.values() * rarity[word]
    lengths = torch.zeros(len(texts)).index_add(0, text, values.square()).sqrt()
    values = values / lengths.where(lengths > 0, 1.0)[text]
    return torch.sparse_coo_tensor(
        counts.indices(), values, size, is_coalesced=True, check_invariants=False
    )


def _leading_components(
    matrix: Float[Tensor, "examples columns"], transposed: Float[Tensor, "columns examples"]
) -> Float[Tensor, "examples features"]:
    """Project the rows of a matrix, sparse or dense, on its leading singular directions."""
    most = min(matrix.shape)
    generator = Seed(0).child("features").generator()
    sketch = matrix @ torch.randn(
        matrix.shape[1], min(FEATURES + EXTRA_DIRECTIONS, most), generator=generator
    )
    for _ in range(POWER_ITERATIONS):
        sketch = matrix @ (transposed @ torch.linalg.qr(sketch).Q)
    basis = torch.linalg.qr(sketch).Q  # (examples, directions)
    left, sizes, _ = torch.linalg.svd((transposed @ basis).T, full_matrices=False)
    features: Tensor = basis @ (left * sizes)[:, : min(FEATURES, most)]
    return features


def _to_unit_length(
    rows: Float[Tensor, "examples features"],
) -> Float[Tensor, "examples features"]:
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > MIN_LENGTH, rows / lengths, 0.0)


SAMPLE_SIZE = 30_000
"""Examples to which centres are fitted; the others are assigned to the nearest centre."""

MAX_STEPS = 50
"""Most k-means steps; centres hardly change in the last ones."""

EXAMPLES_AT_ONCE = 4096
"""Examples assigned at once, which bounds the memory for distances."""

CACHED_CLUSTERINGS = 8
"""Clusterings cached in a process; an audit needs one or two."""

_DIGESTS = WeakTensorKeyDictionary()
"""Digests of inputs, by weak reference to the tensor."""

_MODES: dict[tuple[str, int, str | None], tuple[Rows, ...]] = {}
"""Modes by digest of the inputs and settings; the most recently used ones come last.

The key is the content, because a worker process gets the same inputs as a new tensor in each
task."""


def find_modes(
    inputs: Shaped[Tensor, "examples ..."], modes: int, extractor: str | None
) -> tuple[Rows, ...]:
    """Cluster the inputs by their features, and return the rows of each nonempty cluster.

    K-means (Lloyd 1982) with k-means++ initialization (Arthur and Vassilvitskii 2007), fitted
    to `SAMPLE_SIZE` examples. The seed is fixed and one thread computes, so every party with
    the inputs finds the same modes, to the bit. There are fewer than `modes` if fewer inputs
    have distinct features, or if a cluster is empty. 300 modes of 100,000 texts of 20 words,
    or of 60,000 images of 28 x 28, take 6 s.

    Raises:
        PlanError: if the extractor cannot be used.

    """
    if inputs not in _DIGESTS:
        _DIGESTS[inputs] = _digest(inputs)
    key = (_DIGESTS[inputs], modes, extractor)
    found = _MODES.pop(key, None)
    if found is None:
        with single_thread():
            features = compute_features(inputs.cpu(), extractor)
            nearest = _k_means(features, modes, Seed(0).child("modes").generator())
        sizes = nearest.bincount()
        order = nearest.argsort(stable=True)
        found = tuple(part for part in torch.split(order, sizes.tolist()) if len(part))
        if len(_MODES) >= CACHED_CLUSTERINGS:
            del _MODES[next(iter(_MODES))]
    _MODES[key] = found
    return found


def _digest(inputs: Shaped[Tensor, "examples ..."]) -> str:
    flat = inputs.detach().cpu().contiguous().flatten()
    digest = blake2b(f"{inputs.dtype} {tuple(inputs.shape)}\n".encode(), digest_size=20)
    digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _k_means(
    features: Float[Tensor, "examples features"], modes: int, generator: torch.Generator
) -> Int[Tensor, " examples"]:
    """Return the index of the cluster of each example."""
    sample = features[torch.randperm(len(features), generator=generator)[:SAMPLE_SIZE]]
    centres = _draw_start_centres(sample, modes, generator)
    for _ in range(MAX_STEPS):
        nearest = _nearest_centres(sample, centres)
        sizes = nearest.bincount(minlength=len(centres))[:, None]
        means = torch.zeros_like(centres).index_add(0, nearest, sample) / sizes
        updated = means.where(sizes > 0, centres)
        if torch.equal(updated, centres):
            break
        centres = updated
    return _nearest_centres(features, centres)


def _draw_start_centres(
    sample: Float[Tensor, "examples features"], modes: int, generator: torch.Generator
) -> Float[Tensor, "modes features"]:
    """Draw initial centres by k-means++, with probability proportional to squared distance."""
    row = int(torch.randint(len(sample), (), generator=generator))
    rows, distances = [row], (sample - sample[row]).square().sum(1)
    while len(rows) < modes and float(distances.max()) > 0:
        row = int(distances.multinomial(1, generator=generator))
        rows.append(row)
        distances = distances.minimum((sample - sample[row]).square().sum(1))
    return sample[rows]


def _nearest_centres(
    features: Float[Tensor, "examples features"], centres: Float[Tensor, "modes features"]
) -> Int[Tensor, " examples"]:
    lengths = centres.square().sum(1)
    return torch.cat(
        [
            (lengths - 2 * part @ centres.T).argmin(1)
            for part in torch.split(features, EXAMPLES_AT_ONCE)
        ]
    )
