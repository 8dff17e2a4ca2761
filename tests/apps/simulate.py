"""Run a Flower app in one process, without Ray: python -m tests.apps.simulate NAME FOLDER.

The app is copied to FOLDER/NAME and runs there, as by `flwr run .` in that folder. An app's
`prepare.py`, such as one that stores the base model, runs first. Its `spare.py` runs last: it
writes the examples that the owner holds and no client does.
"""

import importlib
import os
import random
import runpy
import shutil
import sys
import tomllib
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from flwr.app import Context, Message, RecordDict
from flwr.common.config import flatten_dict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

APPS = Path(__file__).parent
CLIENTS = 5
FIRST_NODE = 1_000_003
"""Node ids are large numbers, as in Flower."""


class OneProcess(Grid):
    """Hands each message to a client within this process, which keeps its state."""

    def __init__(self, client_app, run_config) -> None:
        self.client_app = client_app
        self.numbers = count(1)
        self.replies = {}
        self.contexts = {
            FIRST_NODE + 7 * number: Context(
                1,
                FIRST_NODE + 7 * number,
                {"partition-id": number, "num-partitions": CLIENTS},
                RecordDict(),
                run_config,
            )
            for number in range(CLIENTS)
        }

    run = property(lambda self: SimpleNamespace(run_id=1))

    def set_run(self, run) -> None:
        raise NotImplementedError

    def create_message(self, *arguments, **named):
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = []
        for message in messages:
            name = str(next(self.numbers))
            message.metadata.__dict__["_message_id"] = name
            context = self.contexts[message.metadata.dst_node_id]
            self.replies[name] = self.client_app(message, context)
            sent.append(name)
        return sent

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.replies.pop(one) for one in message_ids]

    def send_and_receive(self, messages, *, timeout=None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))


def component(reference: str):
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def run_script(path: Path) -> None:
    if path.exists():
        runpy.run_path(str(path), run_name="__main__")


def simulate(folder: Path) -> None:
    """Run the app of the folder, which is the working directory from then on."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    run_script(folder / "prepare.py")
    stated = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    for name in ("_run_id", "_node_id", "_task_id"):
        setattr(TaskIdentity, name, 1)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - scikit-learn draws from it
    run_config = flatten_dict(stated.get("config", {}))
    grid = OneProcess(component(stated["components"]["clientapp"]), run_config)
    context = Context(1, 0, {}, RecordDict(), run_config)
    component(stated["components"]["serverapp"])(grid, context)
    run_script(folder / "spare.py")


def main() -> None:
    name, where = sys.argv[1:]
    folder = Path(where).resolve() / name
    shutil.copytree(APPS / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    simulate(folder)


if __name__ == "__main__":
    main()
