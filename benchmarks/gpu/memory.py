"""Cohorts that do not fit on the card at once."""

from dataclasses import replace

import torch
from cohorts import COHORTS, Cohort
from speed import seconds_of

from overheard.learning.training_job import ClientTask


def large_cohorts() -> dict[str, dict[str, float | int]]:
    """Train them, and return clients, seconds and the most memory in GiB."""
    many = COHORTS["conv_net 1x28x28"]()
    some = many.clients[0].rows[:32]
    clients = tuple(ClientTask(f"client/{number}", some) for number in range(2000))
    cohorts = {
        "2,000 conv_net": replace(many, clients=clients, recipe=replace(many.recipe, epochs=1)),
        "conv_net 3x32x32, batch 250": replace(
            COHORTS["conv_net 3x32x32"]().first(128),
            recipe=replace(many.recipe, epochs=1, batch=250),
        ),
    }
    return {name: _measure(one) for name, one in cohorts.items()}


def _measure(cohort: Cohort) -> dict[str, float | int]:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    spent = seconds_of(lambda: cohort.train("cuda"))
    return {
        "clients": len(cohort.clients),
        "s": spent,
        "peak, GiB": torch.cuda.max_memory_allocated() / 2**30,
    }
