"""What an audit is about, for its judgement: a plan, or a recording and its fit to the data."""

from dataclasses import dataclass, replace
from typing import final

from overheard.archive.excerpt import printable_excerpt
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.inputs import AuditInputs
from overheard.auditing.judging.judge import AuditSubject
from overheard.auditing.recorded_tensors.data_trial import try_data
from overheard.auditing.recording import CheckedRecording
from overheard.core.transcript import Transcript
from overheard.core.true_facts.record_owners import BoundDigest, OfferedCanaries
from overheard.data.dataset import Dataset
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.reading.folder import data_folder
from overheard.data.reading.scales import Scale
from overheard.data.summary import summarise_data
from overheard.disk.digests import is_store_trusted
from overheard.learning.models.unknown import Unknown

TRUSTED = (
    "Stored files were not compared with their SHA-256 (--trust-store): results may rest on "
    "files that were altered."
)
"""What an audit says that was told to trust what is stored."""

USUAL = ""
"""The digest of canaries of older versions, which had no choices: that of the usual ones."""

UNSTATED = "not stated"
"""The digest of canaries for which none was stated: no choices have it."""


def audit_subject(audit_inputs: AuditInputs, description: str) -> AuditSubject:
    """Return what is audited, as far as it is not a recording.

    Args:
        audit_inputs: the plan and its data.
        description: one sentence that describes it.

    """
    plan, is_trusted = audit_inputs.plan, is_store_trusted()
    return AuditSubject(
        plan,
        # findings.json has this sentence, and no warnings about data.
        f"{description}; not compared with its SHA-256" if is_trusted else description,
        audit_inputs.dataset.task.class_names,
        data=tuple(summarise_data(audit_inputs.dataset, plan.data.split)),
        data_warnings=(TRUSTED,) if is_trusted else (),
        bound_settings=plan.bound_settings(),
    )


def recorded_subject(
    checked: CheckedRecording, run: AuditedRun, description: str
) -> AuditSubject:
    """Return the recording that is audited, and what it shows of the plan's data.

    Args:
        checked: the recording.
        run: its run.
        description: one sentence that describes it.

    """
    subject = audit_subject(checked.audit_inputs, description)
    fit = check_data(checked, run.observed.transcript)
    truth = run.truth.truth
    stated = None if truth is None else truth.facts.get(BoundDigest)
    has_offers = truth is not None and truth.facts.get(OfferedCanaries) is not None
    digest = UNSTATED if has_offers else USUAL
    return replace(
        subject,
        is_recorded=True,
        is_auxiliary_separate=bool(checked.manifest.data),
        data=(*subject.data, *fit.notes),
        data_warnings=(*fit.warnings, *run.warnings, *subject.data_warnings),
        recording=run.observed.recording,
        bound_settings=checked.plan.bound_settings(digest if stated is None else stated.digest),
    )


@final
@dataclass(frozen=True, slots=True)
class DataFit:
    """What a recording shows of the plan's data: whether scale and order of classes fit.

    Args:
        notes: sentences on what was found.
        warnings: sentences on what does not fit, or is assumed and was not checked.
        fitting_scale: a scale that the plan can set and that fits clearly better; None = none.

    """

    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    fitting_scale: Scale | None = None


def check_data(checked: CheckedRecording, transcript: Transcript) -> DataFit:
    """Compare the plan's data with a recording: with what it states, and with its last model.

    Args:
        checked: the recording.
        transcript: its messages, with the tensors of the plan's model only.

    """
    plan, dataset = checked.plan, checked.audit_inputs.dataset
    if not dataset.task.has_classes or isinstance(plan.data.source, NoExamples):
        return DataFit()
    folder = data_folder(checked.audit_inputs.resources.data)
    trial = try_data(plan, dataset, transcript, folder)
    is_stated = checked.manifest.task is not None
    if trial is None:
        known = not isinstance(plan.training.model, Unknown)
        what = "has layers that no message has" if known else "is not known"
        why = f"The network {what}, so the plan's data could not be tried on it."
        return DataFit((why,), () if is_stated else (_assumed_order(dataset),))
    warnings = list(trial.warnings(dataset))
    if not (is_stated or trial.is_order_seen or trial.order):
        warnings.append(_assumed_order(dataset))
    return DataFit(
        tuple(trial.notes()),
        tuple(warnings),
        trial.fitting_scale if trial.is_setting else None,
    )


def _assumed_order(dataset: Dataset) -> str:
    first, second = map(printable_excerpt, dataset.task.class_names[:2])
    return (
        "The order of the classes is assumed, and could not be checked: output 0 of the "
        f"network is taken for {first!r}, output 1 for {second!r}, and so on. In another "
        "order, claims name wrong classes."
    )
