"""Reproduction of a paper's experiment by name."""

from collections.abc import Sequence
from pathlib import Path

from overheard.auditing.inputs import Resources
from overheard.auditing.progress import OnStep
from overheard_studies.portion import Portion
from overheard_studies.registry import find_experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.values_file import write_values


def reproduce(
    experiment: str,
    folder: Path,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    arms: Sequence[str] = (),
    seeds: Sequence[int] = (),
    rerun: bool = False,
    resources: Resources | None = None,
    on_step: OnStep | None = None,
) -> tuple[ReproducedValue, ...]:
    """Reproduce a table or figure of a paper and return its values with the published ones.

    Writes `figures.json`, `figures.html` and the reports of the audits to the folder. Results
    that are already in the folder are reused.

    Args:
        experiment: name, such as "decaf/table3".
        folder: folder of the results.
        quick: whether to run a smaller size, in minutes.
        only: names of the audits to run, such as the columns of a table; none = all.
        arms: names of the arms to run, such as one defense; none = all. The arm without
            defenses is always run.
        seeds: seeds that replace the experiment's own; none = its own. With fewer seeds the
            values count as of a reduced size, and are not compared with the published ones.
        rerun: whether to train runs of the selected audits anew that other code made;
            otherwise they are refused.
        resources: data folder, device and workers.
        on_step: called after each finished step.

    Raises:
        AuditError: if an audit fails; the message says what to change. Finished work is kept.

    """
    chosen = find_experiment(experiment)
    portion = Portion(tuple(only), tuple(seeds), tuple(arms))
    values = chosen.run(
        folder,
        quick=quick,
        resources=resources or Resources(),
        on_step=on_step,
        portion=portion,
        rerun=rerun,
    )
    is_reduced = chosen.is_reduced(folder, quick=quick, portion=portion)
    write_values(chosen, values, folder, quick=is_reduced)
    return values
