"""Writes the tables of docs/membership.md from stored values.

`python -m overheard_studies.membership_tables` in the root of a checkout. A table stands
between `<!-- table NAME -->` and `<!-- end of table -->`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from overheard.disk.writing import write_text
from overheard_studies.measurements.whitened import (
    CONVOLUTIONS,
    DEFENDED,
    MLPS,
    OURS,
    PROTOTYPE,
)
from overheard_studies.measurements.whitened_grid import (
    BATCHES,
    COMBINED,
    COMBINED_WORLDS,
    EPOCHS,
    JOINT_WORLDS,
    RATES,
    ROUNDS,
    SINGLE,
    SOURCES,
    SUMS,
)
from overheard_studies.values import ReproducedValue, load_values

PAGE = Path("docs/membership.md")
STORED = Path("studies/reproduced")

BLOCK = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Found = Mapping[str, ReproducedValue]

Tables = Mapping[str, tuple[str, Callable[[Found], Iterator[str]]]]
"""By name in a page: the folder of the stored values, and the lines of the table."""

WORLDS = {
    "mnist_1_no_defense": "MNIST, 1 epoch",
    "mnist_10_no_defense": "MNIST, 10 epochs",
    "mnist_10_local_DP": "MNIST, 10 epochs, local DP",
    "mnist_skewed_no_defense": "MNIST, Dirichlet 0.5",
    "fashion_adam_no_defense": "Fashion-MNIST, Adam",
    "adult_no_defense": "Adult",
    "wisdm_no_defense": "WISDM",
    "ag_news_no_defense": "AG-News",
    "cifar_mlp_no_defense": "CIFAR-10, MLP",
    "cifar_conv_no_defense": "CIFAR-10, convolutions",
}
"""Worlds of the study `membership_worlds`: the start of the names of values, and a title."""

NETWORKS_OF_LAYERS = {
    "lstm": "LSTM",
    "transformer": "transformer",
    "adapters": "adapters of rank 4",
}
"""Audits of the study `whitened_layers`, and their titles."""

ROW_TITLES = {
    OURS: "`whitened_membership`",
    PROTOTYPE: "prototype",
    "gradient_membership": "`gradient_membership`",
    "lira_pooled": "`lira_pooled`",
    "fed_mia": "`fed_mia`",
    "loss": "`loss_membership`",
}


def main() -> None:
    """Write the page anew."""
    write_text(PAGE, with_tables(PAGE.read_text("utf-8"), STORED, TABLES), inside=PAGE.parent)


def with_tables(page: str, stored: Path, tables: Tables) -> str:
    """Return a page with its tables made from the values in this folder."""

    def block(match: re.Match[str]) -> str:
        study, table = tables[match[2]]
        lines = table({one.name: one for one in load_values(stored / study).values})
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return BLOCK.sub(block, page)


def _compared(worlds: Sequence[str], found: Found) -> Iterator[str]:
    """Yield a row for each attack in each world, with the paired gain of the whitened test."""
    yield from _head("world", "attack", "AUC", "at 1 %", "at 0.1 %", "whitened less this", "s")
    for world in worlds:
        for row, title in ROW_TITLES.items():
            if f"{world}_{row}_auc" not in found:
                continue
            figures = ("auc", "tpr_at_1_percent", "pooled")
            cells = [_number(found.get(f"{world}_{row}_{one}")) for one in figures]
            gain = _interval(found.get(f"{world}_over_{row}"))
            seconds = _tenths(found.get(f"{world}_{row}_seconds"))
            yield _line(world.replace("_", " "), title, *cells, gain, seconds)


def _strengths(found: Found) -> Iterator[str]:
    """Yield how well strength tells the members that are found, in each world."""
    yield from _head("world", "rank correlation", "found of the top 1 %, over all")
    for world in MLPS:
        rank, top = (found.get(f"{world}_strength_{one}") for one in ("rank", "top"))
        yield _line(world.replace("_", " "), _number(rank), _tenths(top))


def _by_world(found: Found) -> Iterator[str]:
    """Yield a row for each attack, with four figures in each world."""
    names = [one for one in found if one.endswith("_membership_auc")]
    measured = {key: title for key, title in WORLDS.items() if any(key in one for one in names)}
    attacks = dict.fromkeys(
        one.removeprefix(f"{key}_").removesuffix("_membership_auc")
        for key in measured
        for one in names
        if one.startswith(f"{key}_")
    )
    yield from _head("attack", *measured.values())
    for attack in sorted(attacks):
        yield _line(f"`{attack}`", *(_of_attack(found, key, attack) for key in measured))


def _of_attack(found: Found, key: str, attack: str) -> str:
    start = f"{key}_{attack}"
    auc = found.get(f"{start}_membership_auc")
    if auc is None:
        return NOTHING
    rates = [_number(found.get(f"{start}_tpr_at_{one}_percent")) for one in ("1", "0.1")]
    run = key.removesuffix("_no_defense").removesuffix("_local_DP")
    seconds = _tenths(found.get(f"{run}_{attack}_seconds"))
    return " · ".join((_number(auc), *rates, seconds))


def _layers(found: Found) -> Iterator[str]:
    """Yield a row for each attack in each network of the study `whitened_layers`."""
    yield from _head("network", "attack", "AUC", "at 1 %", "this less `whitened_membership`")
    for key, title in NETWORKS_OF_LAYERS.items():
        start, end = f"{key}_no_defense_", "_membership_auc"
        names = [one for one in found if one.startswith(start) and one.endswith(end)]
        for attack in sorted(one.removeprefix(start).removesuffix(end) for one in names):
            figures = (
                f"{start}{attack}_{one}" for one in ("membership_auc", "tpr_at_1_percent")
            )
            cells = [_number(found.get(one)) for one in figures]
            gap = _interval(found.get(f"{start}{attack}_gap"))
            yield _line(title, f"`{attack.partition('(')[0]}`", *cells, gap)


def _grid(found: Found) -> Iterator[str]:
    """Yield a row for each rate and number of epochs, with three batches."""
    yield from _head("data", "rate", "epochs", *(f"batch {one}" for one in BATCHES))
    for source in SOURCES:
        for rate in RATES:
            for epochs in EPOCHS:
                starts = [f"{source}_rate_{rate:g}_batch_{b}_epochs_{epochs}" for b in BATCHES]
                cells = [_three(found, one) for one in starts]
                if any(one != NOTHING for one in cells):
                    yield _line(source, f"{rate:g}", str(epochs), *cells)


def _settings(found: Found) -> Iterator[str]:
    """Yield a row for each round, and for each source of auxiliary examples."""
    yield from _head("setting", "`whitened_membership`", "`fed_mia`", "`loss_membership`")
    starts = {f"{one}_round_{n}": f"{one}, round {n}" for one in SOURCES for n in ROUNDS}
    starts |= {
        f"mnist_auxiliary_{one}": f"mnist, auxiliary examples of {one}"
        for one in ("mnist", "fashion_mnist")
    }
    for start, title in starts.items():
        cells = [_three(found, start, row) for row in (OURS, "fed_mia", "loss")]
        if any(one != NOTHING for one in cells):
            yield _line(title, *cells)


def _joint(found: Found) -> Iterator[str]:
    """Yield a row for each world, with claims record by record and joint ones."""
    yield from _head("world", "each record by itself", "joint", "joint less single", "s", "s")
    yield from _pairs("joint", (*JOINT_WORLDS, *SUMS), SINGLE, (SINGLE, OURS), found)


def _combined(found: Found) -> Iterator[str]:
    """Yield a row for each world, with the test alone and beside the confidence."""
    yield from _head("world", "alone", "with the confidence", "alone less both", "s", "s")
    yield from _pairs("combined", COMBINED_WORLDS, COMBINED, (OURS, COMBINED), found)


def _pairs(
    kind: str, worlds: Iterable[str], other: str, rows: Sequence[str], found: Found
) -> Iterator[str]:
    """Yield a row for each world that was run, with both rows and their difference."""
    for world in worlds:
        start = f"{kind}_{world}"
        if f"{start}_{other}_auc" not in found:
            continue
        cells = [_three(found, start, row) for row in rows]
        seconds = [_tenths(found.get(f"{start}_{row}_seconds")) for row in rows]
        gap = _interval(found.get(f"{start}_over_{other}"))
        yield _line(world.replace("_", " "), *cells, gap, *seconds)


def _three(found: Found, start: str, row: str = OURS) -> str:
    """Return AUC and both rates."""
    auc = found.get(f"{start}_{row}_auc")
    if auc is None:
        return NOTHING
    rates = (
        _number(found.get(f"{start}_{row}_{one}")) for one in ("tpr_at_1_percent", "pooled")
    )
    return " · ".join((_number(auc), *rates))


TABLES: Tables = {
    "mlps": ("overheard-whitened_membership", lambda found: _compared(tuple(MLPS), found)),
    "local_dp": (
        "overheard-whitened_membership",
        lambda found: _compared(tuple(DEFENDED), found),
    ),
    "strengths": ("overheard-whitened_membership", _strengths),
    "convolutions": (
        "overheard-whitened_membership",
        lambda found: _compared(tuple(CONVOLUTIONS), found),
    ),
    "layers": ("overheard-whitened_layers", _layers),
    "worlds": ("overheard-membership_worlds", _by_world),
    "grid": ("overheard-whitened_grid", _grid),
    "joint": ("overheard-whitened_grid", _joint),
    "combined": ("overheard-whitened_grid", _combined),
    "settings": ("overheard-whitened_grid", _settings),
}

NOTHING = "–"


def _head(*titles: str) -> Iterator[str]:
    yield _line(*titles)
    yield "|" + "---|" * len(titles)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: ReproducedValue | None) -> str:
    return NOTHING if value is None or value.value is None else _plain(value.value)


def _tenths(value: ReproducedValue | None) -> str:
    return NOTHING if value is None or value.value is None else f"{value.value:.1f}"


def _plain(number: float) -> str:
    """Return a number as the page writes it, without the 0 before the point."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{number:.3f}")


def _interval(value: ReproducedValue | None) -> str:
    if value is None or value.value is None:
        return NOTHING
    if value.low is None or value.high is None:
        return _plain(value.value)
    return f"{_plain(value.value)} ({_plain(value.low)} to {_plain(value.high)})"


if __name__ == "__main__":
    main()
