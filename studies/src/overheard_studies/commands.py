"""The commands of `overheard reproduce` and `overheard list papers`."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overheard.auditing.inputs import Resources
from overheard.cli.list_entries import ListEntry
from overheard.cli.progress import progress_bar
from overheard.core.errors import AuditError, OutputError
from overheard.disk.writing import write_text
from overheard_studies.conclusions_page import (
    conclusion_counts,
    conclusions_page,
    judge_stored,
    of_papers,
    state_words,
)
from overheard_studies.experiments import (
    StoredExperiment,
    all_experiments,
    experiment_folder,
    load_experiment,
    load_experiments,
)
from overheard_studies.overview import write_overview
from overheard_studies.reproduce import find_papers, find_study, reproduce
from overheard_studies.study import PAGE_FILE, Study
from overheard_studies.values import ReproducedValue

FOLDER = Path("reproduced")
"""Folder of experiments, unless another one is named."""


def list_papers() -> tuple[ListEntry, ...]:
    """Return each paper with its experiments."""
    return tuple(
        ListEntry(
            name,
            paper.title,
            tuple(
                f"{name}/{key}  {experiment.title}"
                for key, experiment in paper.studies().items()
            ),
            paper.source,
        )
        for name, paper in find_papers().items()
    )


def reproduce_study(
    name: str,
    out: Path | None,
    quick: bool,
    only: Sequence[str],
    arms: Sequence[str],
    seeds: Sequence[int],
    rerun: bool,
    resources: Resources,
    quiet: bool,
) -> None:
    """Run one experiment, and print its values."""
    experiment = find_study(name)
    folder = out or FOLDER / experiment_folder(name, quick=quick)
    with progress_bar(Console(stderr=True), quiet) as on_step:
        values = reproduce(
            name,
            folder,
            quick=quick,
            only=only,
            arms=arms,
            seeds=seeds,
            rerun=rerun,
            resources=resources,
            on_step=on_step,
        )
    if not quiet:
        print_reproduction(experiment, values, Console())
        Console().print(Text(f"Written to {folder / 'figures.json'}"))
        Console().print(Text(f"The page: {folder / PAGE_FILE}", style="bold"))


def reproduce_all(
    out: Path | None,
    quick: bool,
    seeds: Sequence[int],
    rerun: bool,
    resources: Resources,
    quiet: bool,
) -> None:
    """Run all experiments in turn, and write their page.

    One that is stored at this size is skipped, unless seeds or `rerun` are given. One that
    fails, such as for lack of data, is named and left out.
    """
    folder, failed = out or FOLDER, 0
    experiments = [
        load_experiment(name, study, folder, quick=quick) for name, study in all_experiments()
    ]
    if not (seeds or rerun):
        experiments = [one for one in experiments if not one.is_complete(quick=quick)]
    names = [one.name for one in experiments if not one.study.reason_not_run]
    if not quiet:
        hours = sum(one.hours_left for one in experiments if not quick)
        known = f"; core hours, as far as they are known: {hours:g}" if hours else ""
        Console().print(Text(f"Experiments to run: {len(names)}{known}"))
    for name in names:
        try:
            with progress_bar(Console(stderr=True), quiet) as on_step:
                reproduce(
                    name,
                    folder / experiment_folder(name, quick=quick),
                    quick=quick,
                    seeds=seeds,
                    rerun=rerun,
                    resources=resources,
                    on_step=on_step,
                )
        except AuditError as error:
            failed += 1
            Console(stderr=True).print(Text(f"{name} was left out: {error}"))
        else:
            if not quiet:
                Console().print(Text(f"{name}: done"))
    write_report_of_all(folder, None, quiet)
    if failed and not quiet:
        Console().print(Text(f"Left out: {failed} of {len(names)}, see above."))


def write_report_of_all(out: Path | None, markdown: Path | None, quiet: bool) -> None:
    """Write the page of all experiments that were run, and print the conclusions of all papers.

    Args:
        out: folder of the experiments; None = the usual one.
        markdown: file to which the conclusions are written, too; None = to none.
        quiet: whether to print nothing.

    """
    folder = out or FOLDER
    if not folder.is_dir():
        raise OutputError(
            f"{folder}: there is no such folder: run an experiment first, as in `overheard "
            "reproduce decaf/table3 --quick`"
        )
    path = write_overview(folder)
    experiments = of_papers(load_experiments(folder))
    if markdown is not None:
        write_text(markdown, conclusions_page(experiments), inside=markdown.parent)
    if not quiet:
        print_conclusions(experiments, Console())
        Console().print(Text(f"The page: {path}", style="bold"))


def print_conclusions(experiments: Sequence[StoredExperiment], console: Console) -> None:
    """Print each conclusion, whether it holds and by what, and the counts by paper."""
    for one in experiments:
        for run, each in judge_stored(one):
            console.print(Text(f"{one.name}: {state_words(run, each)}", style="bold"))
            console.print(Text(f"  {each.statement}\n  {each.evidence}"))
    counts = conclusion_counts(experiments)
    for paper, *cells in counts.rows:
        told = [
            f"{name.lower()} {cell}"
            for name, cell in zip(counts.headers[1:], cells, strict=True)
        ]
        console.print(Text(f"{paper}: {', '.join(told)}"))


def print_reproduction(
    experiment: Study, figures: Sequence[ReproducedValue], console: Console
) -> None:
    """Print one table per setting with one row per value, and the differences to the paper."""
    console.print(Text(experiment.title, style="bold"))
    for setting, values in groupby(figures, key=_shared_setting):
        console.print(Text(f"\n{setting}", style="italic"))
        table = Table(
            "value", "measured on", "reproduced", "95 % interval", "published", "better"
        )
        table.columns[0].no_wrap = True
        for figure in values:
            table.add_row(
                Text(figure.name),
                Text(figure.setting.removeprefix(setting).removeprefix("; ")),
                _number(figure.value),
                _interval(figure),
                _published(figure),
                figure.better,
            )
        console.print(table)
    console.print(Text(f"\nDifferences from the paper's setting: {experiment.differences}"))


def _shared_setting(figure: ReproducedValue) -> str:
    """Return the part before the first semicolon: the run, without what was measured on it."""
    return figure.setting.partition("; ")[0]


def _published(figure: ReproducedValue) -> str:
    if figure.published is None:
        return "" if figure.value is None else "not published"
    return _number(figure.published)


def _interval(figure: ReproducedValue) -> str:
    if figure.low is None:
        return ""
    return f"{_number(figure.low)} to {_number(figure.high)}"


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"
