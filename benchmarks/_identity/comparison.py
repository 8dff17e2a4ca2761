"""Attacks compared in equal views; settings are chosen on other seeds than figures."""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from _identity.case import Case
from _identity.grids import (
    AS_PUBLISHED,
    GRIDS,
    METADATA,
    OURS,
    IdentityAttack,
    with_linking,
)
from _identity.lineup import every_update
from _identity.observed_run import ObservedRun, Precision, observe_run
from overheard.archive.atomic import write_text
from overheard.auditing.inputs import Resources
from overheard.plans.plugin_field import plugin_label
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn

TUNING_SEEDS = (100, 101)
"""Seeds on which settings are chosen; no figure is reported on them."""

View = Literal["one update", "with linking and assignment"]
"""What a claim rests on: the update itself alone, or all updates of the run."""


@dataclass(frozen=True, slots=True)
class ComparedAttack:
    """One row of the comparison.

    Args:
        attack: the attack with its settings.
        view: what its claims rest on.
        is_tuned: whether its settings were chosen from a grid; else they are as published.
        precisions: its precision on each reported seed, in their order.

    """

    attack: IdentityAttack
    view: View
    is_tuned: bool
    precisions: tuple[Precision, ...]

    @property
    def is_rival(self) -> bool:
        """Whether it is another attack that reads updates, as Overheard's does."""
        return self.attack.name not in (OURS, METADATA)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All attacks on one case.

    Args:
        about: description of the case.
        tuning: mean average precision of every setting on the tuning seeds.
        rows: the compared attacks.
        seeds: the reported seeds.

    """

    about: str
    tuning: Mapping[IdentityAttack, float]
    rows: tuple[ComparedAttack, ...]
    seeds: tuple[int, ...]

    @property
    def best_rival(self) -> ComparedAttack:
        """The rival with the highest mean average precision on the reported seeds."""
        return max(
            (row for row in self.rows if row.is_rival),
            key=lambda row: sum(one.average_precision for one in row.precisions),
        )

    @property
    def metadata(self) -> ComparedAttack:
        """The attack on what is sent beside the updates."""
        return next(row for row in self.rows if row.attack.name == METADATA)

    def ours(self, view: View) -> ComparedAttack:
        """Return Overheard's attack in one of its views."""
        return next(row for row in self.rows if row.attack.name == OURS and row.view == view)


def compare(
    case: Case,
    folder: Path,
    resources: Resources,
    seeds: Sequence[int],
    on_step: Callable[[str], None],
) -> Comparison:
    """Tune all attacks on `TUNING_SEEDS`, and measure the chosen settings on other seeds.

    Every measurement is stored at once, so an interrupted comparison resumes. On one plan and
    seed all attacks share the simulated updates of known users.

    Raises:
        ValueError: if a reported seed is a tuning seed.

    """
    if set(seeds) & set(TUNING_SEEDS):
        raise ValueError(f"the seeds {TUNING_SEEDS} choose settings: report others")
    settings = [attack for grid in GRIDS.values() for attack in grid]
    tuning = [
        _measure(case, folder, resources, seed, settings, on_step) for seed in TUNING_SEEDS
    ]
    means = {
        attack: sum(measured[repr(attack)].average_precision for measured in tuning)
        / len(tuning)
        for attack in settings
    }
    chosen = {name: max(grid, key=lambda one: means[one]) for name, grid in GRIDS.items()}
    ours = chosen[OURS]
    assert isinstance(ours, ReidentifyWccn)
    linked = with_linking(ours)
    attacks: list[tuple[IdentityAttack, View, bool]] = [
        *((attack, "one update", False) for attack in AS_PUBLISHED),
        *((attack, "one update", True) for attack in chosen.values()),
        (linked, "with linking and assignment", True),
    ]
    reported = [
        _measure(case, folder, resources, seed, [one for one, _, _ in attacks], on_step)
        for seed in seeds
    ]
    rows = tuple(
        ComparedAttack(
            attack,
            view,
            is_tuned,
            tuple(measured[repr(attack)] for measured in reported),
        )
        for attack, view, is_tuned in attacks
    )
    return Comparison(case.about, means, rows, tuple(seeds))


_STORED = TypeAdapter(dict[str, Precision])


def _measure(
    case: Case,
    folder: Path,
    resources: Resources,
    seed: int,
    attacks: Iterable[IdentityAttack],
    on_step: Callable[[str], None],
) -> Mapping[str, Precision]:
    """Return the precision of each attack on one seed, by repr; what is stored is reused."""
    # The attacks of a case's own threats do not affect the run, so they are no part of the key.
    plan = replace(case, threats=(every_update(AS_PUBLISHED),), arms=()).plan((seed,))
    digest = hashlib.sha256(plan.toml().encode()).hexdigest()[:12]
    path = folder / f"seed_{seed}_{digest}.json"
    stored = _STORED.validate_json(path.read_bytes()) if path.exists() else {}
    missing = [attack for attack in attacks if repr(attack) not in stored]
    if not missing:
        return stored
    run_folder = folder / "runs" / f"{seed}_{digest}"
    run: ObservedRun = observe_run(plan, seed, run_folder, resources)
    for attack in missing:
        on_step(f"{case.about}, seed {seed}: {plugin_label(attack)}")
        stored[repr(attack)] = run.precision(attack)
        write_text(path, _STORED.dump_json(stored, indent=1).decode())
    shutil.rmtree(run_folder, ignore_errors=True)
    return stored
