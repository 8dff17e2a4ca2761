"""Applies all rules on recordings and plans to what is known of a run."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from overheard.core.plugin_registry import discover_plugins
from overheard.doctor.criticism import Criticism, Diagnosis, Unseen, join_diagnoses
from overheard.doctor.recorded.evidence import Hidden, RunEvidence, RunRule
from overheard.doctor.recorded.observers import protection_notes

PACKAGE = "overheard.doctor.recorded.rules"
"""Where the rules are found."""


@cache
def run_rules() -> tuple[RunRule, ...]:
    """Return all rules on recordings and plans, by name."""
    found: dict[str, type[RunRule]] = discover_plugins(PACKAGE, RunRule)
    return tuple(one() for one in found.values())


def diagnose_runs(runs: Iterable[RunEvidence]) -> Diagnosis:
    """Apply every rule to every run, such as the arms of a plan."""
    return join_diagnoses(map(diagnose_run, runs))


def diagnose_run(run: RunEvidence) -> Diagnosis:
    """Apply every rule to a run, and say who is protected from whom."""
    found = join_diagnoses(_diagnose(run, rule) for rule in run_rules())
    return replace(found, notes=tuple(f"{run.place}: {one}" for one in protection_notes(run)))


def _diagnose(run: RunEvidence, rule: RunRule) -> Diagnosis:
    about = rule.about
    match rule.examine(run):
        case Hidden(why):
            return Diagnosis((), (), (Unseen(about, f"{run.place}: {why}"),))
        case None:
            return Diagnosis((), (), ())
        case faults:
            return Diagnosis(
                tuple(
                    Criticism(about, one.what, f"{run.place}: {one.where}", one.evidence)
                    for one in faults
                ),
                () if faults else (about,),
                (),
            )
