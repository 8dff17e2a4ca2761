"""More examples out of few: altered copies that bear the label of the original."""

import math

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from overheard.core.examples import Examples
from overheard.core.seeds import Seed

LARGEST_TURN = math.radians(10)
LARGEST_ZOOM = 0.1
LARGEST_SHIFT = 0.1
"""Of an image: so little that a 6 stays a 6; the shift is relative to half its width."""

DROPPED = 0.1
"""The chance with which a token is left out."""

JUMP = 1.5
"""In places: by up to so many a token may fall back before those that follow it."""

LEAST_OWN = 0.5
"""The smallest share that an example of a table keeps in a mixture with another."""

JITTER = 0.05
"""Noise on a mixture, in standard deviations of each column within the class."""


def augmented(examples: Examples, per_class: int, seed: Seed) -> Examples:
    """These examples, followed by altered copies until each class has so many.

    A class that has enough, or none, is left as it is. Images are turned, zoomed and shifted a
    little; texts lose a few tokens and swap neighbours; tables are mixed with others of their
    class, with a little noise. Whatever is made says nothing that the originals did not say: it
    keeps virtual clients from learning a handful of examples by heart, which no client with
    hundreds of its own would do. Whether copies resemble real examples enough is not promised:
    a mirrored sense of a text or an impossible row of a table may well come out.
    """
    counts = examples.labels.bincount()
    origins = []
    for label in (counts > 0).nonzero().flatten().tolist():
        rows = (examples.labels == label).nonzero().flatten()
        missing = max(0, per_class - len(rows))
        origins.append(rows.repeat(-(-missing // len(rows)))[:missing])
    origin = torch.cat(origins) if origins else torch.arange(0)
    if not len(origin):
        return examples
    labels = examples.labels[origin]
    copies = _altered(examples, origin, seed.generator())
    return Examples(torch.cat((examples.inputs, copies)), torch.cat((examples.labels, labels)))


def _altered(
    examples: Examples, origin: Int[Tensor, " copies"], generator: torch.Generator
) -> Shaped[Tensor, "copies ..."]:
    inputs = examples.inputs[origin]
    if not inputs.is_floating_point():
        return _reworded(inputs, generator)
    if inputs.dim() == 4:
        return _moved_about(inputs, generator)
    return _mixed(examples, origin, generator)


def _moved_about(
    images: Float[Tensor, "copies channels height width"], generator: torch.Generator
) -> Float[Tensor, "copies channels height width"]:
    draws = 2 * torch.rand(len(images), 4, generator=generator) - 1
    turn, zoom = draws[:, 0] * LARGEST_TURN, 1 + draws[:, 1] * LARGEST_ZOOM
    shift = draws[:, 2:] * LARGEST_SHIFT
    sine, cosine = turn.sin() * zoom, turn.cos() * zoom
    rows = (
        torch.stack((cosine, -sine, shift[:, 0]), 1),
        torch.stack((sine, cosine, shift[:, 1]), 1),
    )
    maps = torch.stack(rows, 1).to(images)  # (copies, 2, 3)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    # The border goes on outside: 0 would be a grey frame, as images are standardised.
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _reworded(
    texts: Int[Tensor, "copies tokens"], generator: torch.Generator
) -> Int[Tensor, "copies tokens"]:
    """Sort by place plus noise, what is dropped and the padding last."""
    dropped = torch.rand(texts.shape, generator=generator) < DROPPED
    said = texts != 0
    # A text that would lose all its tokens keeps them.
    kept = said & ~(dropped & (said & ~dropped).any(1, keepdim=True))
    places = torch.arange(texts.shape[1]) + JUMP * torch.rand(texts.shape, generator=generator)
    order = places.where(kept, torch.inf).argsort(dim=1, stable=True)
    return texts.where(kept, 0).gather(1, order)


def _mixed(
    examples: Examples, origin: Int[Tensor, " copies"], generator: torch.Generator
) -> Float[Tensor, "copies ..."]:
    inputs, labels = examples.inputs, examples.labels
    partner, spread = torch.empty_like(origin), torch.empty_like(inputs[origin])
    for label in torch.unique(labels[origin]).tolist():
        rows = (labels == label).nonzero().flatten()
        mine = labels[origin] == label
        drawn = torch.randint(len(rows), (int(mine.sum()),), generator=generator)
        partner[mine] = rows[drawn]
        spread[mine] = inputs[rows].std(0, correction=0)
    own = LEAST_OWN + (1 - LEAST_OWN) * torch.rand(len(origin), generator=generator)
    own = own.view(-1, *[1] * (inputs.dim() - 1)).to(inputs)
    noise = torch.randn(spread.shape, generator=generator).to(inputs)
    return own * inputs[origin] + (1 - own) * inputs[partner] + JITTER * spread * noise
