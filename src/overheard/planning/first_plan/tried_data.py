"""Tries the data of a first plan on the recorded model."""

from dataclasses import replace
from pathlib import Path

from overheard.auditing.inputs import AuditInputs, Resources
from overheard.auditing.recording import check_recording
from overheard.auditing.subject import DataFit, check_data
from overheard.data.datasets.custom import Own
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.summary import summarise_data
from overheard.planning.first_plan.draft import load_draft
from overheard.planning.first_plan.plan_facts import PlanFacts


def with_tried_data(
    facts: PlanFacts, audit_inputs: AuditInputs, resources: Resources
) -> tuple[PlanFacts, tuple[str, ...]]:
    """Take the scale of the data that fits the recorded model; also say what was read.

    Without a recording, or without data, there is nothing to try.
    """
    if isinstance(facts.source, NoExamples):
        return facts, ()
    recording = facts.recording
    if recording is None:
        return facts, summarise_data(audit_inputs.dataset)
    fit = _fit_of_data(audit_inputs, recording)
    if fit.fitting_scale is not None and isinstance(facts.source, Own):
        facts = replace(facts, source=replace(facts.source, scale=fit.fitting_scale))
        audit_inputs = load_draft(facts, resources)
        fit = _fit_of_data(audit_inputs, recording)
    told = (*fit.warnings, *fit.notes)
    return replace(facts, data_notes=told), (*summarise_data(audit_inputs.dataset), *told)


def _fit_of_data(audit_inputs: AuditInputs, recording: Path) -> DataFit:
    """Return what a recording shows of the plan's data."""
    checked = check_recording(audit_inputs.plan, audit_inputs, recording)
    return check_data(checked, checked.open_run().observed.transcript)
