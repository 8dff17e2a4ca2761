"""The example app on a real SuperLink with real SuperNodes, one of which dies."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")
from overheard.archive.layout import count_committed_rounds, manifest_path
from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, read_round, verify_transcript
from overheard.auditing.run import audit
from overheard.core.messages import Broadcast, MissingReply, Update
from overheard.core.parties import SERVER
from overheard.plans.plan import read_plan

pytestmark = pytest.mark.deployment

APP = Path(__file__).parents[2] / "examples" / "flower"
BIN = Path(sys.executable).parent

NODES = 3

TIMEOUT = 300.0
"""Seconds until the test fails; about 40 are enough on two idle cores."""


class Deployment:
    """Flower processes, each with its own process group, so that its children end with it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.groups: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "FLWR_HOME": str(home / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "OMP_NUM_THREADS": "1",
        }
        (home / "flwr").mkdir()
        (home / "flwr" / "config.toml").write_text(
            '[superlink]\ndefault = "here"\n[superlink.here]\n'
            f'address = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a process that writes its output to the file `output`."""
        with (self.home / "output").open("ab") as output:
            started = subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.groups.append(started)
        return started

    def kill(self, started: subprocess.Popen[bytes]) -> None:
        """Kill a process and its children."""
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()

    def shut_down(self, started: subprocess.Popen[bytes]) -> None:
        """End a process like a shutdown of its machine."""
        started.terminate()
        with suppress(subprocess.TimeoutExpired):
            started.wait(10)
        self.kill(started)

    def stop(self) -> None:
        """Kill all processes."""
        while self.groups:
            self.kill(self.groups.pop())

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        end = time.monotonic() + TIMEOUT
        while not is_so():
            if time.monotonic() > end:
                pytest.fail(f"timeout while waiting for {what}:\n{self.output()}")
            time.sleep(0.1)

    def output(self) -> str:
        """Return the end of the processes' output."""
        return (self.home / "output").read_text(errors="replace")[-6000:]

    def received(self) -> int:
        """Return how many training messages nodes have received."""
        return (self.home / "output").read_bytes().count(b"Receiving: train message")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    deployed = Deployment(tmp_path)
    try:
        yield deployed
    finally:
        deployed.stop()


def start_nodes(deployment: Deployment) -> list[subprocess.Popen[bytes]]:
    """Start a SuperLink and the nodes, and return the nodes."""
    deployment.start(
        "flower-superlink", "--insecure", "--disable-runtime-dependency-installation",
        "--host", "127.0.0.1", "--port", str(deployment.port),
    )  # fmt: skip
    nodes = [
        deployment.start(
            "flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{deployment.port}",
            "--host", "127.0.0.1", "--port", str(free_port()),
            "--node-config", f"partition-id={number} num-partitions={NODES}",
        )
        for number in range(NODES)
    ]  # fmt: skip
    deployment.until(lambda: is_open(deployment.port), "the SuperLink's port")
    return nodes


def test_records_and_audits_a_deployment_with_a_failing_node(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = deployment.home / "recording"
    nodes = start_nodes(deployment)
    settings = f"recording='{recording}' rounds=2 fraction-evaluate=0.0 nodes={NODES}"
    run = deployment.start("flwr", "run", str(APP), "--stream", "--run-config", settings)
    deployment.until(lambda: deployment.received() == 2 * NODES, "the second round")
    deployment.shut_down(nodes[-1])
    deployment.until(lambda: run.poll() is not None, "the end of the run")
    deployment.until(lambda: len(updates_by_round(recording)) == 3, "the last of the recording")

    manifest, messages = read_manifest(recording), open_transcript(recording).messages
    clients = set(manifest.parties) - {SERVER}
    first, second, final = updates_by_round(recording)
    assert len(clients) == NODES
    assert first == clients
    assert len(second) == NODES - 1
    assert not final
    missing = [one for one in messages if isinstance(one.body, MissingReply)]
    assert [{one.sender} for one in missing] == [clients - second]
    assert missing[0].body == MissingReply("NODE_UNAVAILABLE")
    assert [type(one.body) for one in messages if one.round == 2] == [Broadcast]
    # Each round's broadcast and updates, and the final broadcast.
    assert verify_transcript(recording) == (1 + NODES) + NODES + 1
    assert manifest.framework.startswith("flwr ")
    for one in messages:
        if isinstance(one.body, Update):
            assert one.readers == {SERVER}
            assert set(one.body.metrics) == {"train-loss", "partition-id"}
            assert one.body.examples is not None
            assert any(bool(tensor.any()) for tensor in one.body.delta.values())

    monkeypatch.syspath_prepend(APP)
    found = audit(read_plan(APP / "plan.toml"), deployment.home / "audit", recording=recording)
    claims = [one for one in found.findings if len(one.cell.rounds) == 2]
    # Three attacks make claims about each client, including the failed one.
    assert {one.target for one in claims} == clients
    assert len(claims) == 3 * NODES
    assert not found.refusals
    assert not any(one.is_checked for one in claims)


LEGACY_APP = {
    "pyproject.toml": """
[build-system]
requires = ["hatchling==1.33.0"]
build-backend = "hatchling.build"
[project]
name = "legacy-app"
version = "1.0.0"
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "somebody"
[tool.flwr.app.components]
serverapp = "legacy_app:server"
clientapp = "legacy_app:client"
[tool.flwr.app.config]
recording = ""
""",
    "legacy_app.py": """
import numpy as np
from flwr.client import ClientApp, NumPyClient
from flwr.common import ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from overheard.recorders.flower_strategy import RecordingStrategy

class Site(NumPyClient):
    def __init__(self, partition):
        self.partition = partition

    def fit(self, parameters, config):
        print("Receiving: train message", flush=True)
        trained = [one + 1 + self.partition for one in parameters]
        return trained, 10, {"partition-id": self.partition}

    def evaluate(self, parameters, config):
        return 0.5, 5, {}

def client_fn(context):
    return Site(context.node_config["partition-id"]).to_client()

def server_fn(context):
    start = ndarrays_to_parameters([np.zeros((2, 3), np.float32), np.zeros(2, np.float32)])
    strategy = FedAvg(
        min_fit_clients=3,
        min_available_clients=3,
        fraction_evaluate=0.0,
        initial_parameters=start,
    )
    strategy = RecordingStrategy(strategy, context.run_config["recording"])
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=2))

client = ClientApp(client_fn)
server = ServerApp(server_fn=server_fn)
""",
}
"""An app of Flower's older API."""


def test_records_a_legacy_app_of_a_deployment(deployment: Deployment) -> None:
    app, recording = deployment.home / "app", deployment.home / "recording"
    app.mkdir()
    for name, text in LEGACY_APP.items():
        (app / name).write_text(text)
    start_nodes(deployment)
    settings = f"recording='{recording}'"
    run = deployment.start("flwr", "run", str(app), "--stream", "--run-config", settings)
    deployment.until(lambda: run.poll() is not None, "the end of the run")
    deployment.until(lambda: len(updates_by_round(recording)) == 3, "the last of the recording")
    assert [len(one) for one in updates_by_round(recording)] == [NODES, NODES, 0]
    messages = open_transcript(recording).messages
    sent = {one.body.delta["1"][0].item() for one in messages if isinstance(one.body, Update)}
    assert sent == {1, 2, 3}
    assert '"2"' in (recording / "node_names.json").read_text()
    # Two positions, and the model that nobody evaluates.
    last = messages[-1].body
    assert list(last.weights) == ["0", "1"]
    assert last.weights["0"][0].tolist() == [4, 4, 4]


def updates_by_round(recording: Path) -> list[set[str]]:
    """Return the senders of recorded updates, by round."""
    if not manifest_path(recording / "transcript").exists():
        return []
    return [
        {one.sender for one in read_round(recording, number) if isinstance(one.body, Update)}
        for number in range(count_committed_rounds(recording))
    ]
