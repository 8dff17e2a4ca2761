"""Finds the studies: a package of its own that repeats tables and figures of papers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from overheard.auditing.inputs import Resources
from overheard.cli.list_entries import ListEntry
from overheard.core.errors import PlanError
from overheard.core.plugin_registry import load_studies


@runtime_checkable
class Studies(Protocol):
    """The commands of an installed package of studies.

    Its entry point, of the group `overheard.studies`, is a module with these functions.
    """

    def list_papers(self) -> tuple[ListEntry, ...]:
        """Return each paper with its experiments."""

    def reproduce_study(
        self,
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

    def reproduce_all(
        self,
        out: Path | None,
        quick: bool,
        seeds: Sequence[int],
        rerun: bool,
        resources: Resources,
        quiet: bool,
    ) -> None:
        """Run all experiments in turn, and write their page."""

    def write_report_of_all(self, out: Path | None, markdown: Path | None, quiet: bool) -> None:
        """Write the page of all experiments that were run, and print all conclusions."""


def find_studies() -> Studies:
    """Return the commands of the installed studies.

    Raises:
        PlanError: if no studies are installed; the message says how to install them.

    """
    found = load_studies()
    if found is None:
        raise PlanError(
            "the studies of papers are a package of their own, which is not installed: in a "
            "checkout of Overheard, run `pip install ./studies`"
        )
    return cast(Studies, found)
