"""Runs an experiment of a paper by its name."""

from pathlib import Path

from overheard.auditing.progress import OnStep
from overheard.auditing.supplies import Resources
from overheard.papers.figure import Figure
from overheard.papers.find import find_experiment
from overheard.papers.record import write_figures


def reproduce(
    experiment: str,
    folder: Path,
    *,
    quick: bool = False,
    seed: int | None = None,
    resources: Resources | None = None,
    on_step: OnStep | None = None,
) -> tuple[Figure, ...]:
    """Run a table or figure of a paper again, and return its figures beside the published ones.

    Leaves `figures.json`, `figures.html` and the reports of the audits in the folder. What was
    done before in the same folder is not done again.

    Args:
        experiment: such as "decaf/table3".
        folder: for all that.
        quick: a smaller size, that runs in minutes.
        seed: one in place of the experiment's own.
        resources: where the data lie and what the work is done on.
        on_step: told of each piece of work that is done.

    Raises:
        AuditError: one of its leaves, saying what to mend; what was done before stays.

    """
    chosen = find_experiment(experiment)
    figures = chosen.run(
        folder, quick=quick, resources=resources or Resources(), on_step=on_step, seed=seed
    )
    write_figures(chosen, figures, folder, quick=quick)
    return figures
