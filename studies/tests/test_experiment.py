from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.auditing.progress import ProgressStep
from overheard.core.errors import DataError, OutputError, PlanError
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard_studies import portion as portion_module
from overheard_studies import study as module
from overheard_studies.decaf.setting import FER2013, DecafBenchmark, DecafSize, build_plan
from overheard_studies.portion import Portion
from overheard_studies.study import Panel, PanelRun, Study
from overheard_studies.values import ReproducedValue

RESOURCES = Resources(engine="sequential")


def counting(benchmark: DecafBenchmark, second: DecafBenchmark | None = None) -> Study:
    """Return a study that counts the findings of two audits of one round."""

    def plan(one: DecafBenchmark, quick: bool) -> Plan:
        size = DecafSize(rounds=1, seeds=(0,) if quick else (0, 1), test=50)
        return build_plan(one, size, (MeanSoftmax(),))

    def read(run: PanelRun) -> Iterator[ReproducedValue]:
        count = float(len(run.audit.findings))
        yield ReproducedValue(run.key, "", count, None, None, None, "higher")

    audits = {"first": benchmark, "second": second or benchmark}
    panels = [Panel(key, "Digits", partial(plan, one), read) for key, one in audits.items()]
    return Study("counting", "Findings", "No paper counts them.", tuple(panels))


@pytest.mark.slow
def test_each_audit_writes_its_report_and_reports_its_steps(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    steps: list[ProgressStep] = []
    experiment = counting(tiny_benchmark)
    run = experiment.run(tmp_path, quick=True, resources=RESOURCES, on_step=steps.append)
    # Ten users, one seed.
    assert [(one.name, one.value) for one in run] == [("first", 10), ("second", 10)]
    assert (tmp_path / "first" / "report.html").exists()
    assert (tmp_path / "second" / "findings.json").exists()
    assert steps[0].description.startswith("audit 1 of 2: ")
    assert steps[-1].description.startswith("audit 2 of 2: ")
    assert steps[-1].done == steps[-1].total


@pytest.mark.slow
def test_every_experiment_writes_a_page_of_its_values(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    experiment = counting(tiny_benchmark)
    experiment.run(tmp_path, quick=True, resources=RESOURCES, on_step=None)
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    # Ten findings of each audit, no figures, and a link to each report.
    assert page.count("<bdi>10</bdi>") == 2
    assert "<svg" not in page
    for name in ("first", "second"):
        assert f'href="{name}/report.html"' in page
    assert "No paper counts them." in page


@pytest.mark.slow
def test_a_second_run_in_the_same_folder_reuses_all_results(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    experiment = counting(tiny_benchmark)
    first = experiment.run(tmp_path, quick=True, resources=RESOURCES, on_step=None)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("cells/*")}
    again = experiment.run(tmp_path, quick=True, resources=RESOURCES, on_step=None)
    assert again == first
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("cells/*")}
    assert before


@pytest.mark.slow
def test_a_given_seed_replaces_the_experiments_seeds(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    experiment = counting(tiny_benchmark)
    run = experiment.run(
        tmp_path, quick=False, resources=RESOURCES, on_step=None, portion=Portion(seeds=(7,))
    )
    # Ten users with one seed; the experiment has two.
    assert [one.value for one in run] == [10, 10]
    assert (tmp_path / "first" / "runs" / "no_defense-seed7").is_dir()


@pytest.mark.slow
def test_an_audit_without_data_is_left_out_and_reported(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    experiment = counting(tiny_benchmark, second=FER2013)
    empty_folder = Resources(data=tmp_path, engine="sequential")
    first, missing = experiment.run(
        tmp_path / "out", quick=True, resources=empty_folder, on_step=None
    )
    assert (first.name, first.value) == ("first", 10)
    assert (missing.name, missing.value, missing.better) == ("second_not_measured", None, None)
    assert "fer2013_subset.npz" in missing.setting


def test_without_any_data_the_experiment_names_the_missing_file(tmp_path: Path) -> None:
    empty_folder = Resources(data=tmp_path, engine="sequential")
    with pytest.raises(DataError, match="fer2013_subset"):
        counting(FER2013).run(
            tmp_path / "out", quick=True, resources=empty_folder, on_step=None
        )


@pytest.mark.slow
def test_an_audit_that_was_not_selected_is_reported_without_a_value(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    first, left_out = counting(tiny_benchmark).run(
        tmp_path, quick=True, resources=RESOURCES, on_step=None, portion=Portion(("first",))
    )
    assert (first.name, first.value) == ("first", 10)
    assert (left_out.name, left_out.value) == ("second_not_measured", None)
    assert not (tmp_path / "second").exists()


def test_an_experiment_that_compares_its_arms_runs_none_of_them_alone(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    with pytest.raises(PlanError, match="no arms that can be run alone: leave out --arm"):
        counting(tiny_benchmark).run(
            tmp_path,
            quick=True,
            resources=RESOURCES,
            on_step=None,
            portion=Portion(arms=("no defense",)),
        )


@pytest.mark.slow
def test_values_of_an_audit_that_was_finished_earlier_stay(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    experiment = counting(tiny_benchmark)

    def run(name: str, *seeds: int) -> list[float | None]:
        values = experiment.run(
            tmp_path,
            quick=True,
            resources=RESOURCES,
            on_step=None,
            portion=Portion((name,), seeds),
        )
        return [one.value for one in values]

    assert run("first", 0, 1) == [20, None]
    assert run("second") == [20, 10]
    # An audit that was interrupted after its plan got further seeds is not finished.
    plan = tmp_path / "first" / "plan.toml"
    text, seeds = plan.read_text(), "seeds = [\n    0,\n    1,\n"
    assert seeds in text
    plan.write_text(text.replace(seeds, f"{seeds}    2,\n"))
    assert run("second") == [10, None]


@pytest.mark.parametrize(
    ("seeds", "quick", "is_reduced"),
    [((), False, False), ((), True, True), ((7,), False, True), ((7, 8, 9), False, False)],
)
def test_fewer_seeds_than_the_full_size_has_are_a_reduced_size(
    tiny_benchmark: DecafBenchmark,
    tmp_path: Path,
    seeds: tuple[int, ...],
    quick: bool,
    is_reduced: bool,
) -> None:
    experiment, portion = counting(tiny_benchmark), Portion(seeds=seeds)
    assert experiment.is_reduced(tmp_path, quick=quick, portion=portion) == is_reduced


def test_a_finished_audit_with_fewer_seeds_makes_all_a_reduced_size(
    tiny_benchmark: DecafBenchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finished(plan: Plan, folder: Path) -> Plan | None:
        return plan.model_copy(update={"seeds": (0,)}) if folder.name == "first" else None

    monkeypatch.setattr(portion_module, "_finished_plan", finished)
    experiment = counting(tiny_benchmark)
    assert experiment.is_reduced(tmp_path, quick=False, portion=Portion(("second",)))
    assert not experiment.is_reduced(tmp_path, quick=False)


def test_an_audit_of_other_code_stops_only_a_run_that_selects_it(
    tiny_benchmark: DecafBenchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited: list[tuple[str, bool]] = []

    def audit(plan: Plan, folder: Path, *, rerun: bool, **rest: object) -> Audit:
        audited.append((folder.name, rerun))
        if folder.name == "first" and not rerun:
            raise OutputError("other code made this run")
        return Audit("", "", (), (), (), (), plan.toml(), {})

    def all_are_finished(
        portion: Portion, selected: Mapping[str, Plan], plans: Mapping[str, Plan], folder: Path
    ) -> Mapping[str, Plan]:
        return plans

    monkeypatch.setattr(module, "audit", audit)
    monkeypatch.setattr(module, "write_report", lambda *_: None)
    monkeypatch.setattr(Portion, "add_finished", all_are_finished)

    def run(name: str, *, rerun: bool = False) -> tuple[ReproducedValue, ...]:
        return counting(tiny_benchmark).run(
            tmp_path,
            quick=True,
            resources=RESOURCES,
            on_step=None,
            portion=Portion((name,)),
            rerun=rerun,
        )

    second, first = run("second")
    assert (second.name, second.value) == ("second", 0)
    assert (first.name, first.value) == ("first_not_measured", None)
    assert "other code made this run" in first.setting
    assert audited == [("second", False), ("first", False)]
    with pytest.raises(OutputError, match="other code"):
        run("first")
    assert [one.name for one in run("first", rerun=True)] == ["first", "second"]
    assert audited[-2:] == [("first", True), ("second", False)]
