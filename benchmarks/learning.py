"""Compare the speed of training and evaluating cohorts with that of a plain torch loop.

Each row interleaves both sides and takes the median of the ratios, as the speed of a shared
machine drifts. Rows on one core count CPU seconds; the row on two cores counts wall-clock time.
Both sides use the same examples in the same order.

    python benchmarks/learning.py            five repeats or more; some minutes
    python benchmarks/learning.py --short    the training rows with three repeats; one minute
    python benchmarks/learning.py --quick    a smoke test without meaningful figures
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from _pairs import compare, consume
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.batches import epoch_order
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mobilenet import MobileNet
from overheard.learning.models.shift_census import ShiftCensus
from overheard.learning.models.text_bag import TextBag
from overheard.learning.threads import available_cores
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask

SEED = Seed(0)
BATCH = 64

IMAGES = Task((1, 28, 28), tuple("0123456789"))
CENSUS = Task((14,), ("<=50K", ">50K"))
TEXTS = Task((40,), ("world", "sports", "business", "science"), vocabulary=20_000)
WINDOWS = Task((10,), tuple(str(word) for word in range(5000)), vocabulary=5000)


def plain_decaf() -> nn.Module:
    """Return Decaf's network in plain torch: convolution, ReLU, pool."""
    return nn.Sequential(
        nn.Conv2d(1, 10, 3),
        nn.ReLU(),
        nn.Conv2d(10, 20, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2880, 50),
        nn.ReLU(),
        nn.Linear(50, 10),
    )


def plain_census() -> nn.Module:
    """Return the census network in plain torch."""
    widths = (14, 64, 32, 16, 8)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(8, 2))


def plain_text() -> nn.Module:
    """Return the text classifier in plain torch, with dense embedding gradients."""
    return nn.Sequential(
        nn.EmbeddingBag(20_000, 64, mode="mean", padding_idx=0),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 4),
    )


class PlainReader(nn.Module):
    """The language model in plain torch, with texts packed by length."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5000, 100, padding_idx=0)
        self.recurrence = nn.LSTM(100, 64, batch_first=True)
        self.last = nn.Linear(64, 5000)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits from the state after the last word."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.table(tokens), (tokens != 0).sum(1), batch_first=True, enforce_sorted=False
        )
        _, (state, _) = self.recurrence(packed)
        logits: Tensor = self.last(state[0])
        return logits


@dataclass(frozen=True, slots=True)
class Cohort:
    """A cohort to train on both sides."""

    build_model: BuildModel
    plain_model: Callable[[], nn.Module]
    pool: Examples
    members: tuple[ClientTask, ...]
    recipe: Recipe

    def start(self) -> Weights:
        """Return the initial weights of every member."""
        return initial_weights(self.build_model, SEED)

    def train_plainly(self) -> Iterator[Weights]:
        """Train in a plain torch loop and yield each member's weight changes."""
        start = list(self.start().values())
        model = self.plain_model()
        parameters = dict(model.named_parameters())
        for member in self.members:
            with torch.no_grad():
                for parameter, weight in zip(parameters.values(), start, strict=True):
                    parameter.copy_(weight)
            optimizer = torch.optim.SGD(model.parameters(), lr=self.recipe.rate)
            for epoch in range(self.recipe.epochs):
                order = epoch_order(SEED, 0, member.name, epoch, len(member.rows))
                for batch in torch.split(member.rows[order], self.recipe.batch):
                    optimizer.zero_grad()
                    logits = model(self.pool.inputs[batch])
                    functional.cross_entropy(logits, self.pool.labels[batch]).backward()
                    optimizer.step()
            yield {
                name: parameter.detach() - weight
                for (name, parameter), weight in zip(parameters.items(), start, strict=True)
            }

    def train(self, engine: Engine) -> Iterator[Weights]:
        """Train with this engine and yield each member's weight changes."""
        for trained in train_cohort(
            self.build_model,
            self.start(),
            self.pool,
            self.members,
            self.recipe,
            seed=SEED,
            round=0,
            engine=engine,
        ):
            yield trained.delta


def decaf(clients: int, examples: int, batch: int = BATCH, epochs: int = 1) -> Cohort:
    """Return clients with random images, as speed does not depend on content."""
    generator = SEED.child("images").generator()
    pool = Examples(
        torch.randn(examples * 4, 1, 28, 28, generator=generator),
        torch.randint(0, 10, (examples * 4,), generator=generator),
    )
    build = partial(DecafConv2().build, IMAGES)
    recipe = Recipe(rate=0.05, epochs=epochs, batch=batch)
    return Cohort(build, plain_decaf, pool, members(clients, examples, len(pool)), recipe)


def census(clients: int, examples: int) -> Cohort:
    """Return clients with random records."""
    generator = SEED.child("records").generator()
    pool = Examples(
        torch.randn(20_000, 14, generator=generator),
        torch.randint(0, 2, (20_000,), generator=generator),
    )
    build = partial(ShiftCensus().build, CENSUS)
    return Cohort(
        build,
        plain_census,
        pool,
        members(clients, examples, len(pool)),
        Recipe(rate=0.05, epochs=1, batch=BATCH),
    )


def texts(clients: int, examples: int) -> Cohort:
    """Return clients with random texts of 40 tokens."""
    generator = SEED.child("texts").generator()
    pool = Examples(
        torch.randint(1, 20_000, (5_000, 40), generator=generator),
        torch.randint(0, 4, (5_000,), generator=generator),
    )
    build = partial(TextBag().build, TEXTS)
    return Cohort(
        build,
        plain_text,
        pool,
        members(clients, examples, len(pool)),
        # With fewer epochs, both sides mostly copy a table of 1.3 million numbers per client.
        Recipe(rate=0.05, epochs=5, batch=BATCH),
    )


def windows(clients: int, examples: int) -> Cohort:
    """Return clients with random windows of up to 10 words and the next word of each."""
    generator = SEED.child("windows").generator()
    inputs = torch.randint(1, 5000, (5_000, 10), generator=generator)
    words = torch.randint(1, 11, (5_000, 1), generator=generator)
    pool = Examples(
        inputs.where(torch.arange(10) < words, 0),
        torch.randint(0, 5000, (5_000,), generator=generator),
    )
    return Cohort(
        partial(Lstm().build, WINDOWS),
        PlainReader,
        pool,
        members(clients, examples, len(pool)),
        Recipe(rate=0.05, epochs=1, batch=32),
    )


def separable(clients: int, examples: int) -> Cohort:
    """Return clients with random images, for depthwise separable convolutions."""
    build = partial(MobileNet(alpha=0.25).build, IMAGES)
    images = decaf(clients, examples, batch=32)
    return replace(images, build_model=build, plain_model=build)


def members(clients: int, examples: int, pool: int) -> tuple[ClientTask, ...]:
    """Return clients with this many random rows of the pool each."""
    # Drawn with replacement: truncated permutations of the pool would fragment memory, which
    # would count as the engine's.
    return tuple(
        ClientTask(
            f"client/{number}",
            torch.randint(pool, (examples,), generator=SEED.child("rows", number).generator()),
        )
        for number in range(clients)
    )


def evaluate_plainly(cohort: Iterable[Weights], inputs: Tensor) -> Iterator[Tensor]:
    """Evaluate models one by one in plain torch."""
    model = plain_decaf().eval()
    for weights in cohort:
        with torch.no_grad():
            model.load_state_dict(dict(zip(model.state_dict(), weights.values(), strict=True)))
            logits = torch.cat([model(part) for part in torch.split(inputs, 500)])
            yield logits


def peak(clients: int, engine: Engine) -> int:
    """Return the peak memory of a process that trains this many clients."""
    return int(
        subprocess.run(
            [sys.executable, __file__, "--peak", str(clients), "--engine", engine],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )


def print_peak(clients: int, engine: Engine) -> None:
    """Train, read each update once, and print the peak memory in KiB."""
    cohort = census(clients, 64) if engine == "stacked" else decaf(clients, 64)
    consume(cohort.train(engine))
    status = Path("/proc/self/status").read_text()
    print(status.split("VmHWM:")[1].split()[0])


def largest_difference(cohort: Cohort, engine: Engine) -> float:
    """Return the largest difference between weights of both sides."""
    pairs = zip(cohort.train_plainly(), cohort.train(engine), strict=True)
    return max(
        float((weight - plain_weight).abs().max())
        for plain, ours in pairs
        for weight, plain_weight in zip(ours.values(), plain.values(), strict=True)
    )


def measure(repeats: int, scale: int, is_short: bool) -> None:
    """Print the table; a short one leaves out rare models, evaluation and memory."""
    torch.set_num_threads(1)
    images, records, words = decaf(scale, 600), census(32 * scale, 600), texts(2 * scale, 600)
    print(
        f"torch {torch.__version__}, {available_cores()} cores, {repeats} pairs per row; "
        "differences "
        f"from the plain loop: CNN {largest_difference(images, 'sequential'):.0e}, "
        f"MLP {largest_difference(records, 'auto'):.0e}, "
        f"text {largest_difference(words, 'auto'):.0e}"
    )
    compare(
        "train, Decaf CNN, batch 64, one core",
        images.train_plainly,
        lambda: images.train("sequential"),
        1.4,
        repeats,
    )
    compare(
        "train, census MLP, batch 64, one core",
        records.train_plainly,
        lambda: records.train("auto"),
        6,
        repeats,
    )
    compare(
        "train, text, batch 64, one core, against dense gradients",
        words.train_plainly,
        lambda: words.train("auto"),
        1.8,
        repeats,
    )
    if available_cores() > 1:
        many = decaf(8 * scale, 600)
        compare(
            f"train, Decaf CNN, batch 64, {available_cores()} cores, wall clock",
            many.train_plainly,
            lambda: many.train("processes"),
            2.4,
            repeats,
            time.perf_counter,
        )
    if not is_short:
        measure_others(repeats, scale, images)


def measure_others(repeats: int, scale: int, images: Cohort) -> None:
    """Print the rows of rare models, of evaluation and of memory."""
    reading, narrow = windows(scale, 600), separable(scale, 100)
    compare(
        "train, LSTM, batch 32, one core, against packed and dense",
        reading.train_plainly,
        lambda: reading.train("sequential"),
        1.4,
        repeats,
    )
    compare(
        "train, MobileNet of a quarter width, batch 32, one core",
        narrow.train_plainly,
        lambda: narrow.train("sequential"),
        1.0,
        repeats,
    )
    models = [images.start()] * scale
    inputs = torch.randn(2000, 1, 28, 28, generator=SEED.child("told").generator())
    compare(
        "evaluate, Decaf CNN, 2,000 images per model, one core",
        lambda: evaluate_plainly(models, inputs),
        lambda: logits_of_models(images.build_model, models, inputs),
        1.5,
        repeats,
    )
    for engine in ("sequential", "processes", "stacked"):
        large, small = peak(50 * scale * 5, engine), peak(50, engine)
        print(
            f"peak memory, {50 * scale * 5} clients against 50, {engine:<22} "
            f"{large / small:6.2f}x  {small / 1024:.0f} MiB, {large / 1024:.0f} MiB   <= 1.3x  "
            f"{'reached' if large <= 1.3 * small else 'MISSED'}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peak", type=int)
    parser.add_argument("--engine", default="sequential")
    arguments = parser.parse_args()
    if arguments.peak:
        print_peak(arguments.peak, arguments.engine)
    elif arguments.short:
        measure(3, 4, is_short=True)
    else:
        measure(*((2, 1) if arguments.quick else (7, 4)), is_short=False)
