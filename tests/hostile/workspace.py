"""A folder with one intact input of every kind, which cells of the corpus then damage."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors.torch import save_file

from overheard.archive.layout import manifest_path, truth_path
from overheard.archive.run_config import RUN_CONFIG
from overheard.archive.run_end import mark_end
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.report.evidence.write import write_evidence
from overheard.report.write import write_report
from tests.archive.recorded_run import recorded
from tests.auditing.plans import TINY
from tests.hostile.model_files import save_models
from tests.hostile.saved_datasets import save_dataset

EXPERIMENT = Path(__file__).parents[1] / "recorders" / "formats" / "experiments" / "plain"

OUTSIDE = "outside"
"""A folder beside the working directory that no command may change."""

RECEIVED_CODE = "open('RAN', 'w').close()\n\n\ndef f(*_):\n    pass\n"
"""A module that leaves a file if it is imported."""

POLICY = """\
[[leaks]]
name = "shares"
question = "label_shares"
score = "linf"
no_better_than = 0.6

[[exceptions]]
rule = "shares"
reason = "ticket 12"
expires = 2030-01-31
"""

OFFICER = 'purpose = "a study"\npeople = "patients"\ncontroller = "a clinic"\n'

PYPROJECT = """\
[project]
name = "clinic-app"
[tool.flwr.app]
publisher = "somebody"
[tool.flwr.app.components]
serverapp = "clinic_app.task:app"
clientapp = "clinic_app.task:app"
[tool.flwr.app.config]
num-server-rounds = 3
local-epochs = 1
"""

NETWORK = """\
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = nn.Flatten()
        self.weights = nn.Linear(64, 10)

    def forward(self, x):
        return self.weights(self.flat(x))


def train(net, batches):
    steps = optim.SGD(net.parameters(), lr=0.1)
    for x, y in batches:
        nn.functional.cross_entropy(net(x), y).backward()
        steps.step()
"""

ARFF = """\
@relation wards
@attribute age numeric
@attribute crp numeric
@attribute label {a,b,c}
@data
"""

ABOUT = """\
framework = "X 1"
model = "linear"
class_names = ["no", "yes"]
input_shape = [2]
rounds = 1
participation = 1.0
tensors = ["weight", "bias"]
clients = ["0", "b", "c"]
examples = { "0" = 5, b = 7 }

[recipe]
rate = 0.1
epochs = 1
batch = 4

[[defenses]]
name = "n"
settings = "N()"
enforced_at = "client"
switched_off_by = "it"

[[asked]]
round = 0
clients = ["0", "b", "c"]

[[answers]]
round = 0
client = "b"
examples = 8
metrics = { loss = 0.5 }

[[answers]]
round = 0
client = "c"
missing = "late"
"""

DATA_PLAN = """\
seeds = [0]

[data]
source = {{ kind = "own", reference = "{reference}", label = "label"{more} }}
split = "iid"
clients = 3
examples = 10
auxiliary = 20
test = 20

[training]
model = "logistic"
rounds = 2
rate = 0.1
batch = 10

[[threats]]
observers = ["server"]
attacks = ["bias_inversion"]
"""


JOB = {
    "meta.json": """{"name": "digits", "min_clients": 2, "resource_spec": {},
 "deploy_map": {"app": ["site-1", "server", {"name": "x"}]}}""",
    "app/config/config_fed_server.json": """{"format_version": 2, "rounds": 3,
 "workflows": [{"id": "controller", "path": "nvflare.app_common.workflows.fedavg.FedAvg",
 "args": {"num_clients": 2, "num_rounds": "{rounds}"}}],
 "components": [{"id": "persistor",
 "path": "nvflare.app_opt.pt.file_model_persistor.PTFileModelPersistor",
 "args": {"model": {"path": "job_net.Net", "args": {}}}}],
 "task_result_filters": [{"tasks": ["train"], "filters": [{"path": "x.Own", "args": {}}]}]}""",
    "app/config/config_fed_client.conf": """{
  format_version = 2  # as NVFlare's templates have it
  executors = [{ tasks = ["train"], executor { path = "x.Executor", args { lr = 0.05 } } }]
  task_result_filters = [{
    tasks = ["train"]
    filters = [{ path = "nvflare.app_common.filters.svt_privacy.SVTPrivacy"
                 args { fraction = 0.5 } }]
  }]
}
""",
    "app/custom/job_net.py": NETWORK,
}
"""The files of an NVFlare job."""


def build(folder: Path) -> Path:
    """Make all inputs in a folder; return it."""
    folder.mkdir(parents=True)
    recorded(folder / "recording")
    mark_end(folder / "recording")
    here = Resources(device="cpu", workers=1)
    found = audit(TINY, folder / "audit", resources=here)
    write_report(found, folder / "audit")
    write_evidence(folder / "audit", folder / "audit" / "evidence", pd.Timestamp(0).date())
    run = folder / "audit" / "runs" / "no_defense-seed0"
    shutil.copytree(run, folder / "simulated")
    _make_foreign(shutil.copytree(run, folder / "foreign"))
    _make_named(folder)
    stopped = shutil.copytree(folder / "recording", folder / "stopped")
    path = manifest_path(stopped / "transcript")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rounds": None}))
    (folder / "made").mkdir()
    _write_export(folder / "exported")
    save_models(folder)
    shutil.copytree(EXPERIMENT, folder / "experiment")
    _write_data(folder)
    _write_job(folder / "job")
    app = folder / "app" / "clinic_app"
    app.mkdir(parents=True)
    texts = {
        "plan.toml": TINY.toml(),
        "policy.toml": POLICY,
        "received.py": RECEIVED_CODE,
        "audit/evidence/officer.toml": OFFICER,
        "app/pyproject.toml": PYPROJECT,
        "app/clinic_app/__init__.py": "",
        "app/clinic_app/task.py": NETWORK,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("recording", "foreign", "audit"):
        (folder / name / "received.py").write_text(RECEIVED_CODE)
    return folder


def _make_foreign(recording: Path) -> None:
    """Make a simulated run one of Flower, with a configuration and the mark of its end."""
    truth_path(recording).unlink()
    path = manifest_path(recording / "transcript")
    stated = {
        "data": "",
        "seed": None,
        "task": {"shape": [1, 8, 8], "class_names": list("0123456789"), "vocabulary": None},
        "model": "Logistic()",
        "recipe": None,
        "framework": "flower",
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | stated))
    (recording / RUN_CONFIG).write_text(
        json.dumps({"learning-rate": 0.1, "local-epochs": 1, "optimizer": "sgd"})
    )


def _make_named(folder: Path) -> None:
    """Name the clients of a foreign recording, with a list of records by these names."""
    named = shutil.copytree(folder / "foreign", folder / "named")
    (named / "node_names.json").write_text(
        json.dumps({"client/0": "ward a", "client/1": "ward b", "client/2": "ward c"})
    )
    draw = np.random.default_rng(1)
    pixels = draw.integers(0, 256, (300, 8, 8), np.uint8)
    np.savez(folder / "digits.npz", x=pixels, y=np.arange(300) % 10)
    owners = np.array(["ward a", "ward b", "none"] * 20)
    np.savez(
        folder / "listed.npz",
        x=draw.integers(0, 256, (60, 8, 8), np.uint8),
        y=np.arange(60) % 10,
        owner=owners,
    )


def _write_job(folder: Path) -> None:
    """Write an NVFlare job, with settings in JSON and in HOCON."""
    for name, text in JOB.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _write_export(folder: Path) -> None:
    tensors = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    for number in (0, 1):
        (folder / f"round-000{number}").mkdir(parents=True)
        save_file(tensors, folder / f"round-000{number}" / "global.safetensors")
    save_file(tensors, folder / "round-0000" / "b.safetensors")
    np.savez(folder / "round-0000" / "0.npz", **{k: v.numpy() for k, v in tensors.items()})
    (folder / "about.toml").write_text(ABOUT, encoding="utf-8")


def _write_data(folder: Path) -> None:
    draw = np.random.default_rng(0)
    labels = np.arange(120) % 3
    np.savez(folder / "spare.npz", x=draw.random((120, 8), dtype=np.float32), y=labels)
    table = pd.DataFrame(
        {
            "age": draw.integers(20, 80, 120),
            "crp": draw.random(120).round(3),
            "ward": [f"ward {number % 4}" for number in range(120)],
            "sex": ["f" if number % 4 % 2 else "m" for number in range(120)],
            "note": [f"words of note {number}" for number in range(120)],
            "label": [("a", "b", "c")[number] for number in labels],
        }
    )
    content = table.to_csv(index=False).encode()
    (folder / "table.csv").write_bytes(content)
    table[["age", "crp", "label"]].to_csv(folder / "table.data", sep=" ", index=False)
    (folder / "table.csv.gz").write_bytes(gzip.compress(content))
    table.to_parquet(folder / "table.parquet")
    table.drop(columns="note").to_excel(folder / "table.xlsx", index=False)
    table[["age", "crp", "label"]].to_csv(folder / "rows", index=False, header=False)
    rows = (folder / "rows").read_text(encoding="utf-8")
    (folder / "table.arff").write_text(ARFF + rows, encoding="utf-8")
    (folder / "rows").unlink()
    rows = draw.random((120, 8)).round(3).tolist()
    user_data = {
        user: {"x": rows[start : start + 60], "y": [0, 1] * 30}
        for start, user in ((0, "f01"), (60, "f02"))
    }
    document = {"users": ["f01", "f02"], "num_samples": [60, 60], "user_data": user_data}
    lines = [json.dumps({"text": f"a day of {n}", "label": n % 2}) for n in range(120)]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "leaf.json").write_text(json.dumps(document), encoding="utf-8")
    for number in range(120):
        image = folder / "images" / "ab"[number % 2] / f"{number // 2}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (3, 4), np.uint8)).save(image)
    save_dataset(folder / "saved")
    plans = {
        "npz.toml": ("spare.npz", ""),
        "csv.toml": ("table.csv", ', user = "ward", attributes = ["sex"]'),
        "texts.toml": ("table.csv", ', text = "note"'),
        "lines.toml": ("texts.jsonl", ', text = "text", tokenizer = "os:fsencode"'),
        "data.toml": ("table.data", ""),
        "leaf.toml": ("leaf.json", ""),
        "images.toml": ("images", ""),
        "saved.toml": ("saved", ""),
        "gz.toml": ("table.csv.gz", ""),
        "xlsx.toml": ("table.xlsx", ""),
        "arff.toml": ("table.arff", ""),
        "parquet.toml": ("table.parquet", ', user = "ward"'),
    }
    mnist = DATA_PLAN.replace(
        'kind = "own", reference = "{reference}", label = "label"{more}', 'kind = "mnist"'
    )
    for name in ("mnist", "cifar10"):
        text = mnist.format().replace("mnist", name)
        (folder / f"{name.removesuffix('10')}.toml").write_text(text, encoding="utf-8")
    for name, (reference, more) in plans.items():
        text = DATA_PLAN.format(reference=reference, more=more)
        if name in ("texts.toml", "lines.toml"):
            text = text.replace('"logistic"', '{ kind = "text_bag", hidden = 8 }')
        (folder / name).write_text(text, encoding="utf-8")
