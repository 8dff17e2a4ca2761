"""Measure which words of 40 bloggers, and of clients with news, a server infers.

    python benchmarks/words.py --data DATA --out DIR           about half an hour of one core

Bloggers train a transformer to name the next word: whole, by adapters of rank 8 and the last
layer, or by the adapters alone. Clients with news train a bag of word vectors to name the
section. Each is tried with defenses. A base for the transformer may be given, as
`benchmarks/adapters.py` makes it. The same command resumes.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import mean

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.findings.finding import Audit, Finding
from overheard.plans.plan import parse_plan

BLOGS = """
title = "Words of bloggers, rank {rank}"
seeds = [0, 1, 2]
[data]
source = {{ kind = "blogs", task = "next_word" }}
split = "by_user"
clients = {clients}
examples = 96
test = 500
[training]
model = {{ kind = "transformer", rank = {rank}{base} }}
rounds = 2
rate = 0.001
batch = 16
optimizer = "adam"
[[threats]]
attacks = {attacks}
by_round = false
"""

NEWS = """
title = "Words of news"
seeds = [0, 1, 2]
[data]
source = "ag_news"
split = {{ kind = "dirichlet", alpha = 0.5 }}
clients = 10
examples = 100
auxiliary_per_class = 250
test = 1000
[training]
model = "text_bag"
rounds = 4
rate = 0.5
batch = 20
[[threats]]
attacks = {attacks}
by_round = false
"""

ATTACKS = ("embedding_rows", "output_rows", "combined_rows")

NO_DEFENSE = """
[[arms]]
name = "no defense"
"""

HEAD_AT_HOME = """
[[arms]]
name = "last layer at home"
algorithm = "partial_sharing"
"""

TABLE_AT_HOME = """
[[arms]]
name = "word vectors at home"
algorithm = {{ kind = "partial_sharing", stays = ["{table}"] }}
"""

KEPT = """
[[arms]]
name = "a tenth is sent"
defenses = [{ kind = "compression", keep = 0.1 }]
"""

NOISY = """
[[arms]]
name = "clip {clip} noise {noise}"
defenses = [{{ kind = "local_dp", clip = {clip}, noise_multiplier = {noise} }}]
"""


def main() -> None:
    """Audit all federations, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--clients", type=int, default=40)
    given = parser.parse_args()
    base = "" if given.base is None else f', base = "{given.base.as_posix()}"'
    noises = [NOISY.format(clip=1.0, noise=noise) for noise in (0.001, 0.01, 0.1)]
    arms = {
        0: [NO_DEFENSE, HEAD_AT_HOME, TABLE_AT_HOME.format(table="table.*"), KEPT, *noises],
        8: [NO_DEFENSE, HEAD_AT_HOME, KEPT, *noises],
    }
    attacks = str(list(ATTACKS)).replace("'", '"')
    for rank, of_rank in arms.items():
        text = BLOGS.format(rank=rank, clients=given.clients, base=base, attacks=attacks)
        _run(f"bloggers-{rank}", text + "".join(of_rank), given.data, given.out)
    of_news = [NO_DEFENSE, TABLE_AT_HOME.format(table="0.*"), KEPT, *noises]
    _run("news", NEWS.format(attacks=attacks) + "".join(of_news), given.data, given.out)


def _run(name: str, plan: str, data: Path, out: Path) -> None:
    resources = Resources(data=data, device="cpu", workers=1)
    _print_rows(name, audit(parse_plan(plan, "benchmark"), out / name, resources=resources))


def _print_rows(name: str, found: Audit) -> None:
    """Print the mean scores of each attack and arm, with guess and control, and refusals."""
    groups = defaultdict[tuple[str, str], list[Finding]](list)
    for finding in found.findings:
        groups[finding.cell.arm, finding.cell.part].append(finding)
    for (arm, attack), findings in groups.items():
        by_seed = [
            mean(
                _score(one, "rare_word_precision") for one in findings if one.cell.seed == seed
            )
            for seed in sorted({one.cell.seed for one in findings})
        ]
        others = [
            (sum(one.redrawn_fits[1:]) - one.redrawn_fits[0]) / (len(one.redrawn_fits) - 2)
            for one in findings
            if len(one.redrawn_fits) > 2
        ]
        guesses = [
            score.best_uninformed or 0.0
            for one in findings
            for score in one.scores
            if score.name == "rare_word_precision"
        ]
        named = [_score(one, "rare_words_named") for one in findings]
        print(
            f"{name:12} {arm:22} {attack:15} rare AP {mean(by_seed):.3f}",
            "(" + " ".join(map("{:.3f}".format, by_seed)) + ")",
            f"guess {mean(guesses):.3f} others {mean(others) if others else 0:.3f}",
            f"named {mean(named):.3f}",
        )
    for refused in {(one.cell.arm, one.cell.part, one.missing) for one in found.refusals}:
        print(name, "refused:", *refused)
    for arm in {one.arm for one in found.arms}:
        last = [run.accuracy[max(run.accuracy)] for run in found.arms if run.arm == arm]
        print(f"{name:12} {arm:22} accuracy {mean(last):.3f}")


def _score(finding: Finding, name: str) -> float:
    return next((one.value for one in finding.scores if one.name == name), 0.0)


if __name__ == "__main__":
    main()
