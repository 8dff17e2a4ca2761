"""The statements of Whispers of Data, and the statistics that decide whether they hold."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import final

import numpy as np

from overheard.core.parties import SERVER, Party
from overheard.plans.plan import UNDEFENDED
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.estimates import select_findings
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Conclusion
from overheard_studies.whispers.setting import (
    DECAF,
    DISTANCES,
    PPA,
    RAMAKRISHNA,
    SIZE_FACTOR,
    UNIFORM_GUESS,
    WHISPERS,
    Method,
    build_finding_filter,
)

AS_CLOSE = 0.02
"""Largest excess over a published L1 of 0.06 to 0.26 that counts as being as close."""

NEGLIGIBLE = 0.05
"""Largest rise of the L1 that counts as negligible; the paper's is 0.02 at epsilon 5."""

DRASTIC = 0.2
"""Least loss of accuracy that counts as drastic; the paper's is 0.35."""

WEAK_NOISE = 5.0
"""The smallest epsilon at which the paper calls the effect on the attack small."""

NEAR_SIZE = 0.5
"""Largest |log2(estimated / true)| of a size that counts as estimated: a factor of 1.4."""

RIVALS = (DECAF, RAMAKRISHNA, PPA)
"""The attacks with which the paper compares its own."""

Errors = Mapping[tuple[int, Party], float]
"""A distance by seed and client."""

Statistics = Mapping[str, Estimate | None]


@final
@dataclass(frozen=True, slots=True)
class Distances:
    """The distances of every method in the audits of a study.

    Args:
        runs: the finished audits.
        methods: the methods, in the order of the plans.

    """

    runs: StudyRuns
    methods: Sequence[Method]

    def of(
        self,
        method: Method,
        panel: str,
        arm: str = UNDEFENDED,
        score: str = "l1",
        guess: str = "",
    ) -> Errors:
        """Return a distance of each client, from the claims of a method or from a guess.

        There are none if the arm was not run.
        """
        if arm not in [one.name for one in self.runs.plans[panel].arms]:
            return {}
        number = [one.key for one in self.methods].index(method.key)
        selected = build_finding_filter(self.runs.plans[panel], number, arm)
        return {
            (finding.cell.seed, finding.target): one.uninformed[guess] if guess else one.value
            for finding in select_findings(self.runs.audits[panel], selected)
            for one in finding.scores
            if one.name == score
        }

    @property
    def published(self) -> list[Method]:
        """The paper's rivals and its own attack, as far as they were run."""
        keys = [one.key for one in self.methods]
        return [one for one in (*RIVALS, WHISPERS) if one.key in keys]

    def rivals(self, panel: str, arm: str = UNDEFENDED, score: str = "l1") -> list[Errors]:
        """Return the distances of the paper's rivals, the closest first."""
        errors = [self.of(one, panel, arm, score) for one in self.published[:-1]]
        return sorted(errors, key=lambda one: sum(one.values()))


def difference(first: Errors, second: Errors, factor: float = 1.0) -> Estimate | None:
    """Return the mean of the first minus `factor` times the second, over clients and seeds."""
    if not first.keys() & second.keys():
        return None
    keys = sorted(first.keys() & second.keys(), key=lambda key: (key[0], str(key[1])))
    values = np.array([first[key] - factor * second[key] for key in keys])
    return estimate_mean(values, np.array([seed for seed, _ in keys]))


def excess(errors: Errors, published: float) -> Estimate | None:
    """Return how far the mean is above a published one."""
    return difference(errors, dict.fromkeys(errors, published))


Compare = Callable[[Distances], Statistics]


def _conclusion(
    methods: Sequence[Method],
    key: str,
    statement: str,
    compare: Compare,
    above: float | None = None,
    below: float | None = None,
    audits: tuple[str, ...] = (),
) -> Conclusion:
    margin = above if below is None else below
    assert margin is not None, key
    return Conclusion(
        key,
        statement,
        lambda runs, values: compare(Distances(runs, methods)),
        "above" if below is None else "below",
        margin,
        audits=audits,
    )


def _has_own(methods: Sequence[Method]) -> bool:
    return WHISPERS.key in [one.key for one in methods]


def closest(
    methods: Sequence[Method], panels: Mapping[str, str], scores: Sequence[str], arm: str
) -> Iterator[Conclusion]:
    """Yield for each panel that the paper's attack is closer than its rivals.

    Args:
        methods: the methods of the study.
        panels: names in words, by key.
        scores: the distances.
        arm: the arm of the clients.

    """
    if not _has_own(methods):
        return

    def compare(panel: str, all_of: Distances) -> Statistics:
        return {
            score: difference(
                all_of.of(WHISPERS, panel, arm, score), all_of.rivals(panel, arm, score)[0]
            )
            for score in scores
        }

    for key, name in panels.items():
        yield _conclusion(
            methods,
            f"closest_{key}",
            f"{name}: the paper's attack is closer to the true shares than its rivals, "
            f"by {', '.join(scores)}.",
            partial(compare, key),
            below=0.0,
            audits=(key,),
        )


def of_table(
    methods: Sequence[Method],
    panels: Mapping[str, str],
    published: Mapping[str, float],
    *,
    is_skewed: bool,
) -> Iterator[Conclusion]:
    """Yield the conclusions of Table 2 or 3.

    Args:
        methods: the methods of the study.
        panels: names in words, by key; of one data set, the most uneven shares first.
        published: the paper's L1 of its own attack, by panel.
        is_skewed: whether clients differ by their label shares.

    """
    if not _has_own(methods):
        return

    def surplus(panel: str, all_of: Distances) -> Statistics:
        return {"l1": excess(all_of.of(WHISPERS, panel), published[panel])}

    yield from closest(methods, panels, DISTANCES, UNDEFENDED)
    for key in published:
        yield _conclusion(
            methods,
            f"as_close_{key}",
            f"{panels[key]}: the L1 of the paper's attack is the published one, within "
            f"{AS_CLOSE:g}.",
            partial(surplus, key),
            below=AS_CLOSE,
            audits=(key,),
        )
    yield _conclusion(
        methods,
        "tells_more_than_uniform",
        "The paper's attack is closer to the true shares than equal shares are.",
        lambda all_of: {
            name: difference(
                all_of.of(WHISPERS, key), all_of.of(WHISPERS, key, guess=UNIFORM_GUESS)
            )
            for key, name in panels.items()
        },
        below=0.0,
    )
    if not is_skewed:
        return
    yield _conclusion(
        methods,
        "order_of_magnitude",
        "The paper's attack has a tenth of the L1 of the rival with the largest.",
        lambda all_of: {
            name: difference(all_of.of(WHISPERS, key), all_of.rivals(key)[-1], 0.1)
            for key, name in panels.items()
        },
        below=0.0,
    )
    yield _conclusion(
        methods,
        "uneven_is_harder",
        "All methods struggle as heterogeneity intensifies: L1 at the smallest alpha is above "
        "that at the largest.",
        lambda all_of: _uneven_against_even(all_of, panels),
        above=0.0,
    )


def _uneven_against_even(all_of: Distances, panels: Mapping[str, str]) -> Statistics:
    by_data_set: dict[str, list[str]] = {}
    for key in panels:
        by_data_set.setdefault(key.partition("_alpha_")[0], []).append(key)
    return {
        f"{data_set} {method.key}": difference(
            all_of.of(method, keys[0]), all_of.of(method, keys[-1])
        )
        for data_set, keys in by_data_set.items()
        for method in all_of.published
    }


def under_noise(
    methods: Sequence[Method],
    panel: str,
    arms: Mapping[float, str],
    published: Mapping[float, float],
) -> Iterator[Conclusion]:
    """Yield the conclusions of Table 4.

    Args:
        methods: the methods of the study.
        panel: key of the audit.
        arms: the arm of each epsilon.
        published: the paper's L1 of its own attack by epsilon.

    """
    if not _has_own(methods):
        return
    least, most = min(arms), max(arms)
    weak = [one for one in sorted(arms) if one >= WEAK_NOISE]

    def rises(all_of: Distances, method: Method, arm: str) -> Errors:
        without, with_noise = all_of.of(method, panel), all_of.of(method, panel, arm)
        return {key: with_noise[key] - one for key, one in without.items() if key in with_noise}

    yield from closest(methods, {panel: f"epsilon {least:g}"}, ("l1",), arms[least])
    yield _conclusion(
        methods,
        "as_close",
        f"At every epsilon, the L1 of the paper's attack is the published one, within "
        f"{AS_CLOSE:g}.",
        lambda all_of: {
            arms[one]: excess(all_of.of(WHISPERS, panel, arms[one]), published[one])
            for one in arms
            if one in published
        },
        below=AS_CLOSE,
    )
    yield _conclusion(
        methods,
        "noise_costs_the_attack",
        f"The L1 of the paper's attack is larger at epsilon {least:g} than at {most:g}.",
        lambda all_of: {
            "rise": difference(
                all_of.of(WHISPERS, panel, arms[least]), all_of.of(WHISPERS, panel, arms[most])
            )
        },
        above=0.0,
    )
    yield _conclusion(
        methods,
        "attack_withstands_noise",
        f"Noise of epsilon {WEAK_NOISE:g} or more has a negligible effect on the paper's "
        f"attack: its L1 rises by less than {NEGLIGIBLE:g}.",
        lambda all_of: {
            arms[one]: excess(rises(all_of, WHISPERS, arms[one]), 0.0) for one in weak
        },
        below=NEGLIGIBLE,
    )
    yield _conclusion(
        methods,
        "output_layer_is_more_susceptible",
        "Noise hurts the attack of Dai et al., which reads the output layer, more than the "
        f"paper's: at epsilon {least:g} its L1 rises more.",
        lambda all_of: {
            "rise over rise": difference(
                rises(all_of, DECAF, arms[least]), rises(all_of, WHISPERS, arms[least])
            )
        },
        above=0.0,
    )
    yield _conclusion(
        methods,
        "accuracy_falls",
        f"From epsilon {weak[0]:g} to {least:g} the model's accuracy falls drastically: by "
        f"more than {DRASTIC:g}.",
        lambda all_of: {
            "loss": difference(
                accuracies(all_of.runs, panel, arms[weak[0]]),
                accuracies(all_of.runs, panel, arms[least]),
            )
        },
        above=DRASTIC,
    )


def accuracies(runs: StudyRuns, panel: str, arm: str) -> Errors:
    """Return the accuracy of the last measured global model, by seed."""
    made = [one for one in runs.audits[panel].arms if one.arm == arm and not one.is_control]
    return {(one.seed, SERVER): one.accuracy[max(one.accuracy)] for one in made}


def of_sizes(
    panels: Mapping[int, str], norms: Callable[[StudyRuns, str], Errors], doubling: Method
) -> Iterator[Conclusion]:
    """Yield the conclusions of Figure 2.

    Args:
        panels: the audit of each number of examples of a client.
        norms: returns the norm of each client's first update, by audit.
        doubling: Algorithm 1.

    """
    falling = sorted(panels, reverse=True)
    yield _conclusion(
        (doubling,),
        "norm_grows_with_size",
        "The norm of an update grows with the number of examples.",
        lambda all_of: {
            f"{more} over {fewer}": difference(
                norms(all_of.runs, panels[more]), norms(all_of.runs, panels[fewer])
            )
            for more, fewer in pairwise(falling)
        },
        above=0.0,
    )
    yield _conclusion(
        (doubling,),
        "size_is_estimated",
        "Algorithm 1 finds the number of examples within a factor of 1.4.",
        lambda all_of: {
            str(size): excess(all_of.of(doubling, panel, score=SIZE_FACTOR), 0.0)
            for size, panel in panels.items()
        },
        below=NEAR_SIZE,
    )
