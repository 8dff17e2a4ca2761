"""NVFlare jobs are read as NVFlare writes them, and nothing of them runs."""

import re
from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.doctor.source.diagnose import diagnose_source
from overheard.doctor.source.hocon import parse_hocon
from overheard.doctor.source.nvflare_job import read_nvflare_job

META = """{"name": "digits", "min_clients": 2,
 "deploy_map": {"app_server": ["server"], "app_site": {"sites": ["site-1", "site-2"]}}}"""

SERVER = """
# as in NVFlare's templates
format_version = 2
model_class_path = "net.Net"
workflows = [
  {
    id = "scatter_and_gather"
    path = "nvflare.app_common.workflows.scatter_and_gather.ScatterAndGather"
    args { min_clients = 2, num_rounds = 7 // of 0 on
    }
  }
]
components = [
  {
    id = "persistor"
    path = "nvflare.app_opt.pt.file_model_persistor.PTFileModelPersistor"
    args { model { path = "{model_class_path}", args { width = 3 } } }
  }
]
"""

CLIENT = """{"executors": [{"tasks": ["train"], "executor": {
 "path": "nvflare.app_common.executors.client_api_executor.ClientAPIExecutor",
 "args": {"task_script_path": "client.py", "task_script_args": "--lr 0.05 --epochs=4"}}}],
 "task_result_filters": [{"tasks": ["train"], "filters": [
 {"path": "nvflare.app_common.filters.svt_privacy.SVTPrivacy", "args": {"fraction": 0.5}}]}]}"""

FILES = {
    "meta.json": META,
    "app_server/config/config_fed_server.conf": SERVER,
    "app_site/config/config_fed_client.json": CLIENT,
    "app_site/custom/net.py": "class Net: ...\n",
}


def written(folder: Path, **changes: str) -> Path:
    for name, text in {**FILES, **changes}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_job_states_its_parts(tmp_path: Path) -> None:
    job = read_nvflare_job(written(tmp_path))
    assert (job.name, job.min_clients, job.sites) == ("digits", 2, ("site-1", "site-2"))
    assert job.algorithm == "FedAvg"
    assert job.rounds is not None
    assert job.rounds[0] == 7
    assert job.model is not None
    # A name in braces is that of another setting.
    assert (job.model.path, job.model.args) == ("net.Net", {"width": 3})
    (found,) = job.filters
    assert (found.name, found.tasks, found.what) == ("SVTPrivacy", ("train",), "results")
    assert job.settings["lr"] == (0.05, "app_site/config/config_fed_client.json")
    assert job.settings["epochs"][0] == 4
    assert job.custom == (tmp_path / "app_site" / "custom",)
    assert len(job.texts) == 3


def test_rounds_that_are_not_stated_are_those_of_nvflare(tmp_path: Path) -> None:
    text = SERVER.replace(", num_rounds = 7", "")
    job = read_nvflare_job(
        written(tmp_path, **{"app_server/config/config_fed_server.conf": text})
    )
    assert job.rounds is not None
    assert job.rounds[0] == 5
    assert "default" in job.rounds[1]


@pytest.mark.parametrize("name", ["../outside", "/etc", "a/../../outside"])
def test_no_app_is_read_from_outside(tmp_path: Path, name: str) -> None:
    outside = written(tmp_path / "outside")
    meta = META.replace("app_server", name)
    job = read_nvflare_job(written(tmp_path / "job", **{"meta.json": meta}))
    assert job.workflows == ()
    assert "is no name of a folder" in job.unread[0]
    (tmp_path / "job" / "meta.json").write_text(META.replace("app_server", "linked"))
    (tmp_path / "job" / "linked").symlink_to(outside / "app_server")
    assert read_nvflare_job(tmp_path / "job").unread == ("linked was not read: it is a link",)


def test_what_nvflare_may_read_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    more = (
        "app_server/config/config_fed_server.yml",
        "app_site/config/a/config_fed_client.json",
    )
    job = read_nvflare_job(written(tmp_path, **dict.fromkeys(more, "{}")))
    assert [one.partition(" was not read: there are several")[0] for one in job.unread] == [
        *more
    ]
    assert job.rounds is not None
    assert job.filters != ()


def test_an_app_that_is_not_there_is_named(tmp_path: Path) -> None:
    job = read_nvflare_job(written(tmp_path, **{"meta.json": META.replace("app_site", "app")}))
    assert job.unread == ("the app app was not read: there is no such folder",)


def test_a_class_of_the_job_passes_for_none_of_nvflare(tmp_path: Path) -> None:
    texts = {name: re.sub(r"nvflare\.\w+\.\w+\.", "own.", text) for name, text in FILES.items()}
    server = texts["app_server/config/config_fed_server.conf"].replace(", num_rounds = 7", "")
    texts["app_server/config/config_fed_server.conf"] = server
    job = read_nvflare_job(written(tmp_path, **texts))
    assert job.workflows[0].shown == "own.scatter_and_gather.ScatterAndGather"
    assert (job.algorithm, job.rounds) == ("", None)
    assert job.filters[0].shown == "own.svt_privacy.SVTPrivacy"


def test_a_filter_that_adds_noise_is_not_denied(tmp_path: Path) -> None:
    (told,) = diagnose_source(written(tmp_path)).notes
    assert "name SVTPrivacy (app_site/config/config_fed_client.json), to add noise" in told


def test_the_side_of_a_filter_is_that_of_its_file(tmp_path: Path) -> None:
    meta = META.replace("app_site", "config_fed_server.x")
    place = "config_fed_server.x/config/config_fed_client.json"
    (one,) = read_nvflare_job(written(tmp_path, **{"meta.json": meta, place: CLIENT})).filters
    assert (one.is_at("config_fed_client"), one.is_at("config_fed_server")) == (True, False)


def test_the_folder_above_jobs_is_named(tmp_path: Path) -> None:
    written(tmp_path / "digits")
    with pytest.raises(PlanError, match=r"is no NVFlare job.*such as digits in it"):
        read_nvflare_job(tmp_path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = 1", {"a": 1}),
        ("{a: 1.5, b: true, c: null}", {"a": 1.5, "b": True, "c": None}),
        ("a { b = [1, 2\n3] }", {"a": {"b": [1, 2, 3]}}),
        ('a = "x # y"  # z', {"a": "x # y"}),
        ("a = python3 -u x.py", {"a": "python3 -u x.py"}),
        ('a = """two\nlines"""', {"a": "two\nlines"}),
        ("a.b = 1, a.c.d = 2", {"a": {"b": 1, "c": {"d": 2}}}),
        ("a { b = 1 }\na.c = 2", {"a": {"b": 1, "c": 2}}),
        ('"a.b" = "\\u0041\\n"', {"a.b": "A\n"}),
        ("", {}),
    ],
)
def test_reads_settings_in_hocon(text: str, value: object) -> None:
    assert parse_hocon(text, "x.conf") == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('include "other.conf"', "line 1: an include"),
        ("a = 1\nb = ${HOME}", "line 2: "),
        ("a = " + "[" * 60, "nested too deeply"),
        ("a = 1 }", "is not read"),
        ("a", "without a value"),
        ('a = "x', "is not read"),
        # Pyhocon puts these together, so that a job would show other settings than it has.
        ("a = 1\na = 2", "line 2: 'a', which is given twice"),
        ("a = 1\na.b = 2", "line 2: 'a.b', which is given twice"),
        ("a += 1", "in place of a name"),
        ('a = ["x" "y"]', "beside a value"),
        ('a = "x" b = "y"', "beside a value"),
        ("a = {b = 1} {c = 2}", "beside a value"),
        ("a" + ".a" * 60 + " = 1", "nested too deeply"),
        ("a = [" + "b\n" * 200_000, "has more than 200000 words"),
    ],
)
def test_refuses_what_reads_other_files_and_damage(text: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        parse_hocon(text, "x.conf")
