"""All experiments, and what a folder stores of each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from overheard_studies.how_run import SECONDS_OF_AN_HOUR, HowRun
from overheard_studies.reproduce import find_papers
from overheard_studies.study import LEFT_OUT, PAGE_FILE, Study
from overheard_studies.values import VALUES_FILE, StoredValues, load_values


@final
@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment, and what a folder stores of it.

    Args:
        name: its name on the command line, such as "decaf/table3".
        study: the experiment.
        stored: its values; None = it was not run.
        link: path of its own page below the folder; "" = there is none.
        quick_run: what is stored of a run by `--quick`, if this is the full size.

    """

    name: str
    study: Study
    stored: StoredValues | None
    link: str = ""
    quick_run: "StoredExperiment | None" = None

    @property
    def size(self) -> str:
        """The size of what was run, in words: "full" only if it is the paper's."""
        if self.stored is None and self.study.reason_not_run:
            return f"cannot be run here: {self.study.reason_not_run}"
        rest = f"{self.study.hours:g} core hours" if self.study.hours else ""
        if self.stored is None:
            return f"not run: {rest}" if rest else "not run"
        size = "full" if self.study.is_paper_size else "own size"
        size = "reduced" if self.stored.quick else "part" if self._is_part else size
        return f"{size}; not run: {rest}" if rest else size

    def is_complete(self, *, quick: bool) -> bool:
        """Whether all of it is stored at its full size, or at that of a quick run."""
        if self.stored is None or self._is_part:
            return False
        return quick or not self.stored.quick

    @property
    def _is_part(self) -> bool:
        values = () if self.stored is None else self.stored.values
        return any(one.value is None and one.name.endswith(LEFT_OUT) for one in values)

    @property
    def how_run(self) -> HowRun | None:
        """How its values were measured; None if that is not known."""
        return None if self.stored is None else self.stored.how_run

    @property
    def hours_spent(self) -> float:
        """Core hours that its values took, as far as that is known."""
        spent = None if self.how_run is None else self.how_run.core_seconds
        of_quick_run = 0.0 if self.quick_run is None else self.quick_run.hours_spent
        return (spent or 0.0) / SECONDS_OF_AN_HOUR + of_quick_run


def all_experiments() -> Iterator[tuple[str, Study]]:
    """Yield every experiment with its name on the command line, such as "decaf/table3"."""
    for paper, library in find_papers().items():
        for name, experiment in library.studies().items():
            yield f"{paper}/{name}", experiment


def experiment_folder(name: str, *, quick: bool) -> str:
    """Return the name of the folder of an experiment, such as "decaf-table3-quick"."""
    return name.replace("/", "-") + ("-quick" if quick else "")


def load_experiment(name: str, study: Study, folder: Path, *, quick: bool) -> StoredExperiment:
    """Return an experiment with what a sub-folder of this one stores of it, at one size.

    Raises:
        OutputError: if the file with values is damaged.

    """
    place = experiment_folder(name, quick=quick)
    if not (folder / place / VALUES_FILE).exists():
        return StoredExperiment(name, study, None)
    link = f"{place}/{PAGE_FILE}" if (folder / place / PAGE_FILE).exists() else ""
    return StoredExperiment(name, study, load_values(folder / place), link)


def load_experiments(folder: Path) -> Iterator[StoredExperiment]:
    """Yield every experiment with what sub-folders of this one store of it.

    Where it was run at its full size and by `--quick`, it is the one of the full size, with the
    other one as its `quick_run`.

    Raises:
        OutputError: if a file with values is damaged.

    """
    for name, study in all_experiments():
        full, short = (
            load_experiment(name, study, folder, quick=quick) for quick in (False, True)
        )
        if full.stored is None:
            yield short
        else:
            yield replace(full, quick_run=None if short.stored is None else short)
