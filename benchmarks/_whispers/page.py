"""The table of results as Markdown."""

from collections.abc import Mapping, Sequence

from _whispers.setting import Setting
from _whispers.store import Store


def markdown(
    settings: Mapping[str, Setting],
    seeds: Sequence[int],
    estimators: Sequence[str],
    store: Store,
) -> str:
    """Return one row a setting and one column an estimator: mean L1 over victims and seeds.

    A setting without results at every seed is left out.
    """
    lines = [_line(["setting", *estimators]), _line(["---"] * (1 + len(estimators)))]
    for name, setting in settings.items():
        by_seed = [store.errors(setting, seed) for seed in seeds]
        if all(set(estimators) <= set(errors) for errors in by_seed):
            cells = [
                f"{sum(errors[one] for errors in by_seed) / len(seeds):.3f}"
                for one in estimators
            ]
            lines.append(_line([name, *cells]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
