"""Search for a setting in which the Whispers paper's own attack is as close as published.

    python benchmarks/whispers.py search --out DIR    one change at a time, on a tuning seed
    python benchmarks/whispers.py grid --out DIR      the chosen setting, on another seed
    python benchmarks/whispers.py floor --out DIR     how close its accuracies allow to come
    python benchmarks/whispers.py leaks --out DIR     settings that tell too much
    python benchmarks/whispers.py grid --out DIR --report    the table of existing results

The numbers are mean L1 distances between claimed and true label shares. The paper reports 0.06
to 0.08. Every result is stored immediately, so an interrupted run resumes with the same
command. A row of the search takes about half a minute of one core, a row of the grid two
minutes. A result is measured again if its file is deleted or its setting changed; changes of
code are not detected.
"""

import argparse
from pathlib import Path

import torch

from _whispers.estimators import ESTIMATORS, FAST
from _whispers.page import markdown
from _whispers.setting import FLOOR, GRID, LEAKS, SEARCH
from _whispers.store import Store

TUNING_SEEDS = (100,)
"""Seeds on which settings are chosen."""

REPORTED_SEEDS = (0,)
"""Seeds of the grid."""

PARTS = {
    "search": (SEARCH, TUNING_SEEDS, ("LSTM", *FAST)),
    "grid": (GRID, REPORTED_SEEDS, ("wider LSTM", *FAST)),
    "floor": (FLOOR, TUNING_SEEDS, tuple(ESTIMATORS)),
    "leaks": (LEAKS, REPORTED_SEEDS, ("LSTM", *FAST)),
}


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of the usual ones")
    parser.add_argument("--only", help="only the row of this name")
    parser.add_argument("--report", action="store_true", help="only print existing results")
    arguments = parser.parse_args()
    settings, usual_seeds, chosen = PARTS[arguments.part]
    estimators = tuple(name for name in ESTIMATORS if name in chosen)
    seeds = tuple(arguments.seeds or usual_seeds)
    store = Store(arguments.out, arguments.data)
    torch.set_num_threads(1)
    for seed in () if arguments.report else seeds:
        for name, setting in settings.items():
            if arguments.only in (None, name):
                store.measure(setting, seed, estimators)
                print(name, seed, store.errors(setting, seed), flush=True)
    print(markdown(settings, seeds, estimators, store))


if __name__ == "__main__":
    main()
