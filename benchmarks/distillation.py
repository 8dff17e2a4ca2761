"""Time a round of each distillation method, and of FedAvg, in turns in one process.

    python benchmarks/distillation.py [--turns 5] [--pixels 14 28]

Five clients with 2,000 random images each, `conv_net` of two blocks of 16 channels, ten
synthetic examples of each of ten classes, batches of 256. FedAvg trains an epoch of batches of
64. Turns are interleaved, so that other load on the machine affects all methods equally. The
output has the median, and its ratio to that of FLiP with one example per step. No model is
tested: `overheard reproduce flip/methods` reports accuracy over time.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import torch

from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.distillation.methods.distribution_matching import DistributionMatching
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.distillation.moments import zero_moments
from overheard.learning.distillation.synthetic import draw_noise_examples
from overheard.learning.initialization import initial_weights
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.threads import single_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

CLIENTS, EXAMPLES, CLASSES = 5, 2_000, 10

METHODS: dict[str, Distillation] = {
    "FLiP, one example a step": Flip(batch=256),
    "FLiP, ten examples a step": Flip(batch=256, at_once=10),
    "distribution matching": DistributionMatching(),
}

FEDAVG = "FedAvg, an epoch"


def rounds(pixels: int) -> dict[str, Callable[[], object]]:
    """Return a function for each method that runs one round."""
    task = Task((1, pixels, pixels), tuple(map(str, range(CLASSES))))
    build = partial(ConvNet(blocks=2, width=16).build, task)
    generator, total = Seed(0).generator(), CLIENTS * EXAMPLES
    pool = Examples(
        torch.randn(total, *task.shape, generator=generator),
        torch.randint(CLASSES, (total,), generator=generator),
    )
    members = [
        ClientTask(f"client/{number}", rows)
        for number, rows in enumerate(torch.arange(total).split(EXAMPLES))
    ]
    start = initial_weights(build, Seed(1))

    def distil(method: Distillation) -> Callable[[], object]:
        distiller = method.build_distiller(build, start)
        shared = draw_noise_examples(task, method.samples, method.first_rate, Seed(2))
        return partial(
            distiller.distil,
            shared,
            pool,
            members,
            zero_moments(shared, CLIENTS),
            round=0,
            rate_scale=1.0,
            seed=Seed(3),
        )

    def average() -> object:
        recipe = Recipe(rate=0.1, epochs=1, batch=64)
        trained = train_cohort(
            build, start, pool, members, recipe, seed=Seed(4), round=0, engine="sequential"
        )
        return list(trained)

    return {**{name: distil(method) for name, method in METHODS.items()}, FEDAVG: average}


def main() -> None:
    """Time all methods."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--pixels", type=int, nargs="+", default=[14, 28])
    arguments = parser.parse_args()
    for pixels in arguments.pixels:
        calls = rounds(pixels)
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        with single_thread():
            for call in calls.values():
                call()  # the first call records the network
            for _ in range(arguments.turns):
                for name, call in calls.items():
                    began = perf_counter()
                    call()
                    seconds[name].append(perf_counter() - began)
        base = median(seconds["FLiP, one example a step"])
        print(f"{pixels} x {pixels} pixels, a round of {CLIENTS} clients:")
        for name, taken in seconds.items():
            print(f"  {name:28} {median(taken):7.3f} s  {median(taken) / base:5.2f}")


if __name__ == "__main__":
    main()
