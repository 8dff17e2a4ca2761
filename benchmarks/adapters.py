"""Compare re-identification of 40 bloggers from adapters with that from full updates.

    python benchmarks/adapters.py --data DATA --out DIR [--seeds 10]       two hours of one core

A transformer is pretrained on posts of other bloggers. 40 bloggers then train it: whole, or by
adapters of rank 8 and the last layer. A server that holds six other posts of each names the
sender of each update. The control permutes the private posts among all bloggers. The same
command resumes.
"""

import argparse
from collections import defaultdict
from functools import partial
from pathlib import Path
from statistics import mean

import torch

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.data.datasets.blogs import Blogs
from overheard.findings.audit import Audit
from overheard.learning.fitting.pretrained import pretrain
from overheard.learning.models.transformer import Transformer
from overheard.plans.plan import parse_plan

WINDOWS = 64_000
"""Windows of other bloggers' posts for the pretraining."""

PLAN = """
title = "Re-identification of bloggers, rank {rank}"
seeds = {seeds}
[data]
source = {{ kind = "blogs", task = "next_word" }}
split = "by_user"
clients = 40
examples = 96
test = 500
[data.people]
prior = "random"
share = 0.5
records = 6
[training]
model = {{ kind = "transformer", rank = {rank}, base = "{base}" }}
rounds = 2
rate = 0.001
batch = 16
optimizer = "adam"
[[arms]]
name = "no defense"
[[threats]]
attacks = [{attacks}]
pseudonyms = "run"
by_round = false
"""

ATTACK = '{{ kind = "reidentify_wccn", most_rounds = 2{layers} }}'

PARTS = {
    0: {"three parts combined": "", "last layer": "[-1]", "all that is sent": '["all"]'},
    8: {
        "three parts combined": "",
        "last layer": "[-1]",
        "all that is sent": '["all"]',
        "adapters alone": "[0, 1, 2, 3, 4, 5]",
    },
}
"""By the rank, the parts of an update that an attack reads; "" is the attack's default."""


def main() -> None:
    """Pretrain, audit both federations, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    given = parser.parse_args()
    base = given.out / "base.safetensors"
    if not base.exists():
        _pretrain(given.data, base)
    for rank, parts in PARTS.items():
        attacks = [
            ATTACK.format(layers=f", layers = {layers}" if layers else "")
            for layers in parts.values()
        ]
        text = PLAN.format(
            rank=rank,
            base=base.as_posix(),
            attacks=", ".join(attacks),
            seeds=list(range(given.seeds)),
        )
        resources = Resources(data=given.data, device="cpu", workers=1)
        found = audit(
            parse_plan(text, "benchmark"), given.out / f"rank-{rank}", resources=resources
        )
        _print_rows(found, rank, list(parts))


def _pretrain(data: Path, base: Path) -> None:
    blogs = Blogs(task="next_word").load(data)
    assert blogs.background is not None
    rows = torch.randperm(len(blogs.background), generator=Seed(0).generator())[:WINDOWS]
    recipe = Recipe(rate=0.001, epochs=1, batch=64, optimizer="adam")
    build = partial(Transformer().build, blogs.task)
    pretrain(build, blogs.background.take(rows), recipe, base, seed=Seed(0))


def _print_rows(found: Audit, rank: int, parts: list[str]) -> None:
    """Print the share of bloggers named first, for each part, with its control."""
    settings = list(dict.fromkeys(one.cell.settings for one in found.findings))
    values = defaultdict[tuple[str, bool, int], list[float]](list)
    for one in found.findings:
        (first,) = (score.value for score in one.scores if score.name == "top1")
        values[one.cell.settings, one.cell.is_control, one.cell.seed].append(first)
    for setting, part in zip(settings, parts, strict=True):
        for is_control in (False, True):
            seeds = [
                mean(firsts)
                for (found_setting, control, _), firsts in sorted(values.items())
                if (found_setting, control) == (setting, is_control)
            ]
            name = "control" if is_control else "run"
            print(
                f"rank {rank}  {part:22} {name:8} {mean(seeds):.3f}",
                *map("{:.3f}".format, seeds),
            )


if __name__ == "__main__":
    main()
