"""Folders of recordings, which must not leave the job's folder."""

from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.workspace import Workspace
from nvflare.app_common.filters.exclude_vars import ExcludeVars

from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.recorders.nvflare import (
    FRAMEWORK,
    RecordingFilter,
    RecordingWidget,
    encode_run_info,
    is_later_round,
    last_run_folder,
    resolve_folder,
)
from overheard.recorders.nvflare_defenses import defenses_of
from overheard.recorders.run_info import RunInfo


class Engine:
    """The part of NVFlare's engine that gives the job's folder."""

    def __init__(self, root: Path) -> None:
        self.workspace = Workspace(str(root))

    def get_workspace(self) -> Workspace:
        return self.workspace


@pytest.fixture
def context(tmp_path: Path) -> FLContext:
    for folder in ("startup", "local"):
        (tmp_path / folder).mkdir()
    context = FLContext()
    context.put(ReservedKey.ENGINE, Engine(tmp_path), private=True, sticky=False)
    context.put(ReservedKey.RUN_NUM, "simulate_job", private=True, sticky=False)
    return context


def test_a_relative_folder_is_inside_the_jobs_folder(
    context: FLContext, tmp_path: Path
) -> None:
    assert resolve_folder("recording", context) == tmp_path / "simulate_job" / "recording"
    assert resolve_folder(str(tmp_path / "elsewhere"), context) == tmp_path / "elsewhere"


def test_refuses_a_relative_folder_outside_the_jobs_folder(context: FLContext) -> None:
    with pytest.raises(ValueError, match="is outside the job"):
        resolve_folder("../another", context)


def test_finds_the_last_folder_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert last_run_folder(run) == run
    run.mkdir()
    (tmp_path / "run-2").mkdir()
    assert last_run_folder(run) == tmp_path / "run-2"


def test_a_round_is_later_if_it_is_not_the_first() -> None:
    task = Shareable()
    assert not is_later_round(task)
    task.set_header("start_round", 3)
    task.set_header("current_round", 3)
    assert not is_later_round(task)
    task.set_header("current_round", 4)
    assert is_later_round(task)


def test_run_info_survives_serialisation_in_a_job_file() -> None:
    facts = RunInfo(
        FRAMEWORK,
        "mlp",
        Task((1, 8, 8), ("a", "b")),
        Recipe(0.1, 2, 16),
        defenses_of([ExcludeVars("^head")]),
    )
    assert encode_run_info(encode_run_info(facts)) == encode_run_info(facts)
    assert RecordingWidget("run", facts).facts == encode_run_info(facts)
    with pytest.raises(ValueError, match="validation error"):
        encode_run_info('{"framework": 3}')


def test_a_filter_passes_results_on_even_if_recording_fails() -> None:
    shareable = Shareable({"a": 1})
    recorder = RecordingFilter("run", "after")
    recorder.handle_event("_after_task_data_filter", FLContext())
    assert recorder.process(shareable, FLContext()) is shareable
    assert shareable["a"] == 1
