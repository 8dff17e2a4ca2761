"""A review with a run says what code runs, asks, runs it once, and shows the recording."""

import json
import py_compile
from pathlib import Path

import pytest

from overheard.core.custom_code.reference import NO_CODE_VARIABLE
from tests.cli.conftest import Command, assert_user_error
from tests.doctor.source.apps import Files

PYPROJECT = """
[tool.flwr.app.components]
serverapp = "tiny.server:app"
clientapp = "tiny.client:app"
[tool.flwr.app.config]
num-server-rounds = 2
"""

SERVER = """
import numpy as np
from flwr.app import ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid, context):
    strategy = FedAvg(fraction_evaluate=0.0)
    rounds = context.run_config["num-server-rounds"]
    strategy.start(grid=grid, initial_arrays=ArrayRecord([np.zeros(3)]), num_rounds=rounds)
"""

CLIENT = """
import os
from pathlib import Path
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()
Path("ran").write_text(str(os.getpid()))


@app.train()
def train(message, context):
    number = context.node_config["partition-id"]
    arrays = [one + number for one in message.content["arrays"].to_numpy_ndarrays()]
    metrics = MetricRecord({"num-examples": 10 + number, "<b>loss": 1.0})
    content = RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics})
    return Message(content, reply_to=message)
"""

APP: Files = {
    "pyproject.toml": PYPROJECT,
    "tiny/__init__.py": "",
    "tiny/server.py": SERVER,
    "tiny/client.py": CLIENT,
}


def written(folder: Path, **changes: str) -> Path:
    for name, text in {**APP, **changes}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
def test_a_run_is_recorded_and_the_page_says_what_it_shows(
    overheard: Command, tmp_path: Path
) -> None:
    app, page = written(tmp_path / "app"), tmp_path / "review.html"
    (app / ".git").mkdir()
    (app / ".git" / "HEAD").write_text("a" * 40 + "\n")
    # Python takes such a file for the code of its source, and never compares the two.
    server = app / "tiny" / "server.py"
    server.write_text("open('pwned', 'w')\n" + SERVER)
    py_compile.compile(
        str(server), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    server.write_text(SERVER)
    said = overheard("review", app, "--out", page, "--run", "--yes", "--clients", 3, "--json")
    assert said.code == 0, said
    found = json.loads(said.out)
    assert (
        f"SHA-256 of pyproject.toml and the Python files that were read: {found['sha256']}"
        in said.err
    )
    assert f"commit {'a' * 40}" in said.err
    assert "server tiny.server:app, client tiny.client:app, 3 clients" in said.err
    run = found["run"]
    assert (run["rounds"], run["ended_after"]) == (2, None)
    shown = " ".join(one["text"] for one in run["shows"])
    assert "3 senders with 10 to 12 examples" in shown
    recording = tmp_path / "review-recording"
    assert (recording / "transcript" / "manifest.json").is_file()
    assert f"init --from-recording {recording} --flower {app}" in run["next"]
    text = page.read_text()
    assert "What a simulated run shows" in text
    assert "<b>loss" not in text
    assert (app / "ran").exists()
    assert not (app / "pwned").exists()
    # Another run does not mix with it.
    again = overheard("review", app, "--out", page, "--run", "--yes")
    assert_user_error(again, "has a recording already")


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended(overheard: Command, tmp_path: Path) -> None:
    app = written(tmp_path / "app", **{"tiny/server.py": "import time\ntime.sleep(999)\n"})
    page = tmp_path / "review.html"
    said = overheard("review", app, "--out", page, "--run", "--yes", "--seconds", 1)
    assert_user_error(said, "no round was done after 1 s", "--seconds")
    assert not page.exists()


@pytest.mark.slow
def test_a_run_in_which_no_client_trains_shows_nothing(
    overheard: Command, tmp_path: Path
) -> None:
    client = CLIENT.replace("    number =", "    raise ValueError('no data')\n    number =")
    app = written(tmp_path / "app", **{"tiny/client.py": client})
    page = tmp_path / "review.html"
    said = overheard("review", app, "--out", page, "--run", "--yes", "--clients", 2)
    assert_user_error(said, "each client that was asked to train", "no data (client.py, line")
    assert not page.exists()


def test_nothing_runs_that_nobody_agreed_to(
    overheard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_CODE_VARIABLE, "")  # The command changes it.
    app = written(tmp_path / "app")
    said = overheard("review", app, "--out", tmp_path / "page.html", "--run")
    assert said.code == 2
    assert "add --yes if you trust it" in said.err
    assert "it can read and write your files, read your environment variables" in said.err
    refused = overheard(
        "review", app, "--out", tmp_path / "page.html", "--run", "--yes", "--no-code"
    )
    assert_user_error(refused, "--no-code refuses")
    assert not list(tmp_path.rglob("ran"))


def test_options_of_a_run_need_it(overheard: Command, tmp_path: Path) -> None:
    said = overheard("review", written(tmp_path / "app"), "--yes")
    assert said.code == 2
    assert "belong to --run" in said.err


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, "names no serverapp and clientapp"),
        (
            {"pyproject.toml": PYPROJECT.replace("tiny.server:app", "../x.py")},
            "'module:name': correct it",
        ),
        (
            {
                "pyproject.toml": PYPROJECT
                + "[tool.flwr.federations.local.options]\nnum-supernodes = 1000000000\n"
            },
            "states 1000000000 nodes (num-supernodes), and 1 to 10000 can be simulated",
        ),
    ],
)
def test_says_which_apps_can_run(
    overheard: Command, tmp_path: Path, changes: dict[str, str], told: str
) -> None:
    app = written(tmp_path / "app", **changes)
    said = overheard("review", app, "--out", tmp_path / "page.html", "--run", "--yes")
    assert_user_error(said, told)
