"""Reproduction of a table or figure of a paper by its name."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from overheard.auditing.inputs import Resources
from overheard.auditing.progress import OnStep
from overheard.core.errors import PlanError
from overheard_studies import protocol
from overheard_studies.deanonymization import paper as deanonymization
from overheard_studies.decaf import studies as decaf
from overheard_studies.flip import paper as flip
from overheard_studies.measurements import paper as measurements
from overheard_studies.portion import Portion
from overheard_studies.prolin import paper as prolin
from overheard_studies.shift import paper as shift
from overheard_studies.study import Paper, Study
from overheard_studies.values import Values
from overheard_studies.whispers import studies as whispers


@cache
def find_papers() -> Mapping[str, Paper]:
    """Return every paper that can be reproduced, by name in alphabetical order."""
    papers = (
        deanonymization.PAPER,
        decaf.PAPER,
        flip.PAPER,
        measurements.PAPER,
        *protocol.PAPERS,
        prolin.PAPER,
        shift.PAPER,
        whispers.PAPER,
    )
    return {one.name: one for one in sorted(papers, key=lambda one: one.name)}


def find_study(name: str) -> Study:
    """Return the study with this name, such as "decaf/table3".

    Raises:
        PlanError: if there is none; the message lists the known names.

    """
    paper, _, key = name.partition("/")
    known = find_papers()
    if paper not in known:
        raise PlanError(f"unknown paper {paper!r}; known papers: {', '.join(known)}")
    studies = known[paper].studies()
    if key not in studies:
        raise PlanError(
            f"{paper} has no experiment {key!r}; use {paper}/NAME with one of: "
            + ", ".join(studies)
        )
    return studies[key]


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
) -> Values:
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
    return find_study(experiment).run(
        folder,
        quick=quick,
        resources=resources or Resources(),
        on_step=on_step,
        portion=Portion(tuple(only), tuple(seeds), tuple(arms)),
        rerun=rerun,
    )
