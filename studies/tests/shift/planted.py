"""Measures by round without a run, for experiments whose audits have no findings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.findings.audit import Audit
from overheard_studies.pages.experiment_page import PaperStatement
from overheard_studies.runs import StudyRuns
from overheard_studies.shift import studies as module
from overheard_studies.shift.measured import MeasuredSeries
from overheard_studies.shift.setting import LeakageMeasure
from overheard_studies.study import Study

WOBBLE = {**dict.fromkeys(range(9), 1.0), 2: 1.1}


def empty_runs(
    experiment: Study,
    folder: Path,
    seeds: Sequence[int] = (0, 1),
    without: str = "",
) -> StudyRuns:
    """Make the runs of a quick size, without findings and without one of the audits."""
    plans = {
        name: plan.model_copy(update={"seeds": tuple(seeds)})
        for name, plan in experiment.plans(quick=True).items()
        if name != without
    }
    audits = {
        name: Audit("", "", (), (), (), (), plan.toml(), {}) for name, plan in plans.items()
    }
    for name in plans:
        (folder / name).mkdir(exist_ok=True)
    return StudyRuns(audits, plans, folder)


def plant_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run of seed n diverge from its trend by about n + 1, and its control by 0."""

    def measure(
        runs: StudyRuns, name: str, measures: Sequence[LeakageMeasure]
    ) -> tuple[MeasuredSeries, ...]:
        shifted = tuple({**WOBBLE, 6: 2.0 + seed} for seed in runs.plans[name].seeds)
        return tuple(
            MeasuredSeries(one, 6, shifted, (WOBBLE,) * len(shifted)) for one in measures
        )

    monkeypatch.setattr(module, "load_series", measure)


def judge(
    monkeypatch: pytest.MonkeyPatch,
    study: Study,
    measured: Mapping[str, Sequence[MeasuredSeries]],
) -> Mapping[str, PaperStatement]:
    """Judge a study's conclusions by these measures of its audits, as if all had been run."""
    audits = {key: module.AuditMeasurements(tuple(one)) for key, one in measured.items()}
    monkeypatch.setattr(module, "measure_audits", lambda *_, **__: audits)
    runs = StudyRuns({}, {}, Path())
    return {one.key: replace(one, audits=()).judge(runs, ()) for one in study.conclusions}
