"""Measure which words of 40 bloggers, and of clients with news, a server infers.

    python benchmarks/words.py --data DATA --out DIR           about half an hour of one core

Bloggers train a transformer to name the next word: whole, by adapters of rank 8 and the last
layer, or by the adapters alone. Clients with news train a bag of word vectors to name the
section. Each is tried with defenses. A base for the transformer may be given, as
`benchmarks/adapters.py` makes it. A run of whole transformers takes 1 GB of disk, so runs are
removed once they are attacked.
"""

import argparse
import shutil
from collections import defaultdict
from pathlib import Path
from statistics import mean

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.findings.finding import ArmRun, Finding, Refusal
from overheard.plans.plan import parse_plan

BLOGS = """
title = "Words of bloggers, rank {rank}"
seeds = [{seed}]
[data]
source = {{ kind = "blogs", task = "next_word" }}
split = "by_user"
clients = {clients}
examples = 96
test = 500
[training]
model = {{ kind = "transformer", rank = {rank}{base} }}
rounds = 1
rate = 0.001
batch = 16
optimizer = "adam"
"""

NEWS = """
title = "Words of news"
seeds = [{seed}]
[data]
source = "ag_news"
split = {{ kind = "dirichlet", alpha = 0.5 }}
clients = 10
examples = 100
auxiliary_per_class = 250
test = 1000
[training]
model = "text_bag"
rounds = 5
rate = 0.01
epochs = 2
batch = 20
optimizer = "adam"
"""

THREATS = """
[[threats]]
attacks = ["embedding_rows", "output_rows", "combined_rows"]
by_round = false
"""

ARM = """
[[arms]]
name = "{name}"
{settings}
"""

NO_DEFENSE = {"no defense": ""}

HEAD_AT_HOME = {"last layer at home": 'algorithm = "partial_sharing"'}

TABLE_AT_HOME = 'algorithm = {{ kind = "partial_sharing", stays = ["{}"] }}'

KEPT = {"a tenth is sent": 'defenses = [{ kind = "compression", keep = 0.1 }]'}

NOISY = {
    f"clip 1 noise {noise}": 'defenses = [{ kind = "local_dp", clip = 1.0, noise_multiplier = '
    f"{noise} }}]"
    for noise in (0.0005, 0.002, 0.01)
}

FEDERATIONS = {
    "bloggers, all": (
        0,
        NO_DEFENSE
        | HEAD_AT_HOME
        | {"word vectors at home": TABLE_AT_HOME.format("table.*")}
        | NOISY,
    ),
    "bloggers, rank 8": (8, NO_DEFENSE | HEAD_AT_HOME | NOISY),
    "news": (
        None,
        NO_DEFENSE | {"word vectors at home": TABLE_AT_HOME.format("0.*")} | KEPT | NOISY,
    ),
}
"""By federation, the rank of the adapters (None = no transformer) and the settings of arms."""


def main() -> None:
    """Audit all federations, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--clients", type=int, default=40, help="bloggers")
    parser.add_argument("--only", default="", help="a part of the name of a federation")
    parser.add_argument("--arms", nargs="*", help="names of arms; all of them without it")
    given = parser.parse_args()
    base = "" if given.base is None else f', base = "{given.base.as_posix()}"'
    resources = Resources(data=given.data, device="cpu", workers=1)
    for federation, (rank, arms) in FEDERATIONS.items():
        if given.only not in federation:
            continue
        chosen = {name: arms[name] for name in arms if name in (given.arms or arms)}
        audits = []
        for seed in range(3):
            parts = [
                NEWS.format(seed=seed)
                if rank is None
                else BLOGS.format(rank=rank, seed=seed, clients=given.clients, base=base),
                *(ARM.format(name=name, settings=text) for name, text in chosen.items()),
                THREATS,
            ]
            plan = "".join(parts)
            folder = given.out / f"{federation} {seed}".replace(" ", "-")
            audits.append(audit(parse_plan(plan, "benchmark"), folder, resources=resources))
            shutil.rmtree(folder)
        for arm in chosen:
            _print_rows(
                f"{federation}; {arm}",
                [one for found in audits for one in found.findings if one.cell.arm == arm],
                [one for found in audits for one in found.refusals if one.cell.arm == arm],
                [one for found in audits for one in found.arms if one.arm == arm],
            )


def _print_rows(
    where: str, findings: list[Finding], refusals: list[Refusal], runs: list[ArmRun]
) -> None:
    """Print the mean scores of each attack, with guess and other clients, and refusals."""
    groups = defaultdict[str, list[Finding]](list)
    for finding in findings:
        groups[finding.cell.part].append(finding)
    for attack, members in groups.items():
        by_seed = [
            mean(_score(one, "rare_word_precision") for one in members if one.cell.seed == seed)
            for seed in sorted({one.cell.seed for one in members})
        ]
        others = [
            (sum(one.redrawn_fits[1:]) - one.redrawn_fits[0]) / (len(one.redrawn_fits) - 2)
            for one in members
        ]
        guess = mean(
            score.best_uninformed or 0.0
            for one in members
            for score in one.scores
            if score.name == "rare_word_precision"
        )
        seeds = ", ".join(map("{:.3f}".format, by_seed))
        named = mean(_score(one, "rare_words_named") for one in members)
        print(
            f"{where}; {attack}: {mean(by_seed):.3f} ({seeds}); guess {guess:.3f}; against "
            f"others {mean(others):.3f}; first 100 named {named:.3f}",
            flush=True,
        )
    for attack, missing in sorted({(one.cell.part, one.missing) for one in refusals}):
        print(f"{where}; {attack} refused: {'; '.join(missing)}", flush=True)
    accuracy = mean(run.accuracy[max(run.accuracy)] for run in runs if run.accuracy)
    print(f"{where}; accuracy {accuracy:.3f}", flush=True)


def _score(finding: Finding, name: str) -> float:
    return next((one.value for one in finding.scores if one.name == name), 0.0)


if __name__ == "__main__":
    main()
