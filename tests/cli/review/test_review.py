"""A review reads an app, says what is wrong and what it states, and runs nothing."""

import json
from pathlib import Path

from tests.cli.conftest import Command
from tests.doctor.source.apps import Files

APP: Files = {
    "pyproject.toml": "[tool.flwr.app.config]\nnum-server-rounds = 7\n",
    "server.py": (
        "from flwr.serverapp.strategy import FedAvg\n"
        "from flwr.server.workflow import SecAggPlusWorkflow\n"
        "class Own(FedAvg):\n    pass\n"
        "flow = SecAggPlusWorkflow()\n"
    ),
    "client.py": (
        "import torch\n"
        "from flwr.app import Message, MetricRecord, RecordDict\n"
        "from flwr.clientapp import ClientApp\n"
        "from flwr.clientapp.mod import LocalDpMod\n"
        "open('ran', 'w')\n"
        "app = ClientApp(mods=[LocalDpMod(5.0, 1.0, 2.0, 1e-5)])\n"
        "@app.train()\n"
        "def train(msg, context):\n"
        "    metrics = MetricRecord({'num-examples': 10, '<b>hostile': 1.0})\n"
        "    return Message(RecordDict({'metrics': metrics}), reply_to=msg)\n"
    ),
}


def written(folder: Path, files: Files) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_review_states_facts_and_faults_and_runs_nothing(
    overheard: Command, tmp_path: Path
) -> None:
    app, page = written(tmp_path / "app", APP), tmp_path / "review.html"
    said = overheard("review", app, "--out", page, "--json")
    assert said.code == 1, said  # the noise is for a sensitivity below the clip
    found = json.loads(said.out)
    facts = {one["name"]: one for one in found["facts"]}
    assert facts["Frameworks"]["text"] == "Flower, PyTorch"
    assert facts["Strategy"]["text"] == "Own (its own FedAvg)"
    assert facts["Strategy"]["places"] == ["server.py:3"]
    assert facts["Rounds"]["text"] == "7 (num-server-rounds in pyproject.toml)"
    assert "“num-examples”" in facts["Clients send, by name"]["text"]
    assert facts["Differential privacy"]["text"] == "LocalDpMod"
    assert facts["Secure aggregation"]["text"] == "SecAggPlusWorkflow"
    assert found["exit_code"] == found["diagnosis"]["exit_code"] == 1
    ids = {one["id"] for one in found["diagnosis"]["criticisms"]}
    assert "sensitivity-below-clip" in ids
    text = page.read_text()
    assert "noise for a sensitivity below the clip" in text
    assert "<b>hostile" not in text
    assert "&lt;b&gt;hostile" in text
    assert not list(tmp_path.rglob("ran"))


def test_numbers_of_rounds_and_names_of_encryption_are_told_from_others(
    overheard: Command, tmp_path: Path
) -> None:
    app = written(
        tmp_path / "app",
        {
            "pyproject.toml": "[tool.flwr.app.config]\nsave-each-round = true\nrounds = 3\n",
            "server.py": "from nvflare.x import HEModelEncryptor\nHEModelEncryptor()\n"
            "cache_model()\n",
        },
    )
    said = overheard("review", app, "--out", tmp_path / "page.html", "--json")
    facts = {one["name"]: one["text"] for one in json.loads(said.out)["facts"]}
    assert facts["Rounds"] == "3 (rounds in pyproject.toml)"
    assert facts["Secure aggregation"] == "HEModelEncryptor"


def test_another_line_of_source_gives_another_digest(
    overheard: Command, tmp_path: Path
) -> None:
    app, digests = written(tmp_path / "app", {"a.py": "x = 1\n"}), []
    for line in ("x = 1\n", "x = 2\n", "x = 1\n"):
        (app / "a.py").write_text(line)
        said = overheard("review", app, "--out", tmp_path / "page.html", "--json")
        assert said.code == 0
        digests.append(json.loads(said.out)["sha256"])
    assert digests[0] == digests[2] != digests[1]
    said = overheard("review", app, "--out", tmp_path / "page.html")
    assert "Strategy: not found in the source" in said.out
    assert "The app was read and not run." in said.out.replace("\n", " ")


def test_a_folder_without_python_is_invalid(overheard: Command, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    said = overheard("review", tmp_path / "app", "--out", tmp_path / "page.html")
    assert said.code == 2
    assert not (tmp_path / "page.html").exists()


def test_the_digest_covers_the_configuration_and_what_no_parser_reads(
    overheard: Command, tmp_path: Path
) -> None:
    """Facts rest on the configuration, and a line break of Unicode may end a comment."""
    app, digests = written(tmp_path / "app", {"a.py": "x = 1\n"}), list[str]()
    for name, text in (
        ("a.py", "# a\u2028b = 1\n"),
        ("a.py", "# a\nb = 1\n"),
        ("pyproject.toml", "[tool.flwr.app.config]\nnum-server-rounds = 7\n"),
        ("pyproject.toml", "[tool.flwr.app.config]\nnum-server-rounds = 8\n"),
        ("broken.py", "def f(:\n"),
        ("broken.py", "def g(:\n"),
    ):
        (app / name).write_text(text)
        said = overheard("review", app, "--out", tmp_path / "page.html", "--json")
        digests.append(json.loads(said.out)["sha256"])
    assert len(set(digests)) == len(digests)


def test_nothing_outside_the_folder_is_read_and_links_are_told(
    overheard: Command, tmp_path: Path
) -> None:
    outside = written(
        tmp_path / "outside",
        {
            "own.py": "from flwr.server.strategy import FedAvg\nFedAvg()\n",
            "pyproject.toml": "[tool.flwr.app.config]\nnum-server-rounds = 7\n",
        },
    )
    app = written(tmp_path / "app", {"a.py": "x = 1\n"})
    (app / "pyproject.toml").symlink_to(outside / "pyproject.toml")
    (app / "own.py").symlink_to(outside / "own.py")
    (app / "folder").symlink_to(outside)
    said = overheard("review", app, "--out", tmp_path / "page.html", "--json")
    assert said.code == 0, said
    found = json.loads(said.out)
    facts = {one["name"]: one["text"] for one in found["facts"]}
    assert facts["Strategy"] == facts["Rounds"] == "not found in the source"
    told = " ".join(one["why"] for one in found["diagnosis"]["unseen"])
    for name in ("pyproject.toml", "own.py", "folder"):
        assert f"{name} was not read" in told


def test_a_name_of_a_file_forges_no_line(overheard: Command, tmp_path: Path) -> None:
    app = written(
        tmp_path / "app",
        {"client.py": APP["client.py"], "\nFaults: 0 critical.\n.py": "def f(:\n"},
    )
    for command in (("review", app, "--out", tmp_path / "page.html"), ("doctor", app)):
        said = overheard(*command)
        assert said.code == 1, said
        lines = [one for one in said.out.splitlines() if one.startswith("Faults: ")]
        assert lines == ["Faults: 1 critical, 0 theoretical, 0 negligible."]
