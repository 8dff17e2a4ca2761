"""Whole audits on the GPU, on CPU cores alone, and by precision: seconds, claims, verdicts."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

CORES = 4

LIRA_GOAL = 5.0
"""Most seconds of the audit with 64 shadow models, on an H100 or H200."""

LIRA = """
title = "Membership by shadow models, random colour images"
seeds = [0]

[data]
source = { kind = "own", reference = "noise.npz" }
split = "iid"
clients = 4
examples = 250
auxiliary_per_class = 60
candidates = { members = 100, outsiders = 200 }

[training]
model = { kind = "conv_net" }
rounds = 1
rate = 0.01
epochs = 3
batch = 32

[[arms]]
name = "no defense"

[[threats]]
observers = ["server"]
attacks = [{ kind = "lira", models = 64, most_rounds = 1 }]
by_round = false
"""

CLAIMS = """
title = "Claims by precision, random colour images"
seeds = [0]

[data]
source = { kind = "own", reference = "noise.npz" }
split = { kind = "dirichlet", alpha = 1.0 }
clients = 4
examples = 250
auxiliary_per_class = 60
candidates = { members = 100, outsiders = 200 }

[training]
model = { kind = "conv_net", blocks = 2, width = 32 }
rounds = 2
rate = 0.05
epochs = 2
batch = 32
precision = "PRECISION"

[[arms]]
name = "no defense"

[[threats]]
observers = ["server"]
virtual = { clients = 64 }
attacks = [
  { kind = "decaf" },
  { kind = "amortised" },
  { kind = "whitened_membership" },
  { kind = "lira", models = 8 },
]
by_round = false
"""
"""Attacks that read the update itself, and attacks that train on the GPU."""


def audit(plan: str | None, device: str, folder: Path, cores: int = CORES) -> float:
    """Run an audit on some cores of this machine, and return its seconds from a cold start.

    Args:
        plan: a plan; None = the built-in one.
        device: as in the command's option.
        folder: where to write; it must not exist.
        cores: cores of the processor that it may use.

    """
    command = [sys.executable, "-m", "overheard", "audit"]
    if plan is not None:
        folder.parent.joinpath("plan.toml").write_text(plan)
        command.append("plan.toml")
    command += ["--device", device, "--out", str(folder)]
    usable = sorted(os.sched_getaffinity(0))[:cores]
    began = time.perf_counter()
    done = subprocess.run(
        ["taskset", "--cpu-list", ",".join(map(str, usable)), *command],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    spent = time.perf_counter() - began
    if done.returncode not in (0, 1) or not (folder / "findings.json").exists():
        raise RuntimeError(f"the audit failed: {(done.stderr or done.stdout)[-1500:]}")
    return spent


def calibrate() -> dict[str, float]:
    """Let the product measure this machine, which it does once; return the seconds by cores.

    Else the first audit would be longer by them.
    """
    code = (
        "import sys; from overheard.learning.devices.calibration import machine_with_gpu; "
        "machine_with_gpu(int(sys.argv[1]))"
    )
    spent = dict[str, float]()
    usable = sorted(os.sched_getaffinity(0))
    for cores in sorted({min(CORES, len(usable)), len(usable)}):
        began = time.perf_counter()
        of_cores = ",".join(map(str, usable[:cores]))
        command = ("taskset", "--cpu-list", of_cores, sys.executable, "-c", code, str(cores))
        subprocess.run(command, check=True)
        spent[str(cores)] = time.perf_counter() - began
    return spent


def built_in(devices: tuple[str, ...] = ("cpu", "auto", "cuda")) -> dict[str, object]:
    """Audit the built-in plan on each device; return seconds and the verdicts that differ."""
    with TemporaryDirectory() as place:
        spent, verdicts = dict[str, float](), dict[str, dict[str, str]]()
        for device in devices:
            folder = Path(place) / device
            spent[device] = audit(None, device, folder)
            verdicts[device] = _verdicts(folder)
    first, *others = devices
    changed = {
        device: [
            f"{what}: {verdict} -> {verdicts[device].get(what)}"
            for what, verdict in verdicts[first].items()
            if verdicts[device].get(what) != verdict
        ]
        for device in others
    }
    return {"seconds": spent, "verdicts": len(verdicts[first]), "changed": changed}


def lira(repeats: int = 1) -> dict[str, object]:
    """Audit with 64 shadow models of `conv_net` on random images, on all cores and the GPU."""
    found = list[float]()
    with TemporaryDirectory() as place:
        _write_noise(Path(place) / "noise.npz")
        for number in range(repeats):
            found.append(
                audit(LIRA, "auto", Path(place) / str(number), len(os.sched_getaffinity(0)))
            )
    return {"seconds": min(found), "goal": LIRA_GOAL}


def by_precision(
    device: str = "cuda", precisions: Sequence[str] = ("float32", "tf32", "bf16")
) -> dict[str, dict[str, object]]:
    """Audit one plan in each precision, and compare with the first.

    Returns:
        By precision the seconds, the verdicts that differ, and by attack the largest change of
        a claim: the L2 norm of the difference, over that of the claim.

    """
    spent = dict[str, float]()
    claims = dict[str, dict[tuple[str, str], np.ndarray]]()
    verdicts = dict[str, dict[str, str]]()
    with TemporaryDirectory() as place:
        _write_noise(Path(place) / "noise.npz")
        for one in precisions:
            folder = Path(place) / one
            spent[one] = audit(CLAIMS.replace("PRECISION", one), device, folder)
            claims[one], verdicts[one] = _claims(folder), _verdicts(folder)
    first = precisions[0]
    for one in precisions:
        if claims[one].keys() != claims[first].keys() or not claims[one]:
            raise RuntimeError(f"{one} has other claims than {first}")
        if verdicts[one].keys() != verdicts[first].keys():
            raise RuntimeError(f"{one} has verdicts on other questions than {first}")
    return {
        one: {
            "s": spent[one],
            "verdicts": len(verdicts[first]),
            "changed verdicts": [
                what for what in verdicts[one] if verdicts[one][what] != verdicts[first][what]
            ],
            "change of claims": _largest_changes(claims[first], claims[one]),
        }
        for one in precisions
    }


def _largest_changes(
    exact: dict[tuple[str, str], np.ndarray], rounded: dict[tuple[str, str], np.ndarray]
) -> dict[str, float]:
    """Return the largest relative change by attack; NaN if a claim is not finite."""
    changes = dict[str, list[float]]()
    for what, claim in exact.items():
        size = max(float(np.linalg.norm(claim)), 1e-12)
        apart = float(np.linalg.norm(rounded[what] - claim))
        changes.setdefault(what[0], []).append(apart / size)
    # NumPy's maximum keeps NaN, which Python's would drop.
    return {attack: float(np.max(found)) for attack, found in changes.items()}


def _claims(folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """Return the claims of an audit, by attack and by what they are about."""
    content = json.loads((folder / "findings.json").read_text())
    claims = dict[tuple[str, str], np.ndarray]()
    for one in content["findings"]:
        if not one["is_control"] and one["claimed"]:
            attack = re.split(r"[,(]", one["attack"])[0]
            about = json.dumps([one["target"], one["rounds"]])
            claims[attack, about] = np.array(one["claimed"])
    return claims


def _verdicts(folder: Path) -> dict[str, str]:
    content = json.loads((folder / "findings.json").read_text())
    return {
        " | ".join((one["arm"], *one["observers"], one["question"], one["about"])): one[
            "verdict"
        ]
        for one in content["verdicts"]
    }


def _write_noise(path: Path) -> None:
    """Write random images of 3 x 32 x 32 in ten classes."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, 2600)
    means = draw.normal(0, 0.4, (10, 32, 32, 3))
    images = 128 + 40 * (means[labels] + draw.normal(0, 1, (2600, 32, 32, 3)))
    np.savez(path, x=images.clip(0, 255).astype("uint8"), y=labels)
