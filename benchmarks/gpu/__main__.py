"""Check on a machine with a GPU what docs/performance.md says of it: `make gpu-check`.

It compares the updates of every model with those of the CPU, measures the goals for cohorts
beside two rivals in the same run, and whole audits beside the cores. It writes a JSON
file, and fails where a goal or an equality is missed.

python benchmarks/gpu                       all sections; results go to benchmarks/gpu.json
python benchmarks/gpu --only speed audits   some sections
python benchmarks/gpu --only kernels        kernels that the product does not use yet
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
RESULTS = HERE.parent / "gpu.json"


def main() -> None:
    """Run the sections, write their results, and report what was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=USUAL)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file to write")
    parser.add_argument("--commit", default="", help="the commit, where git does not know it")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        sys.exit("gpu-check: torch finds no GPU here: run it on a machine that has one")
    results: dict[str, Any] = {"machine": machine(arguments.commit)}
    missed, began = list[str](), time.perf_counter()
    for name in arguments.only:
        start = time.perf_counter()
        try:
            results[name], found = SECTIONS[name]()
        except Exception:
            results[name], found = {"error": traceback.format_exc()[-3000:]}, ["it failed"]
        missed += [f"{name}: {one}" for one in found]
        spent = time.perf_counter() - start
        print(f"== {name}: {spent:.1f} s\n{json.dumps(results[name], indent=1)}", flush=True)
        results["missed"] = missed
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{time.perf_counter() - began:.0f} s, written to {arguments.out}")
    if missed:
        sys.exit("missed:\n" + "\n".join(missed))


def machine(commit: str) -> dict[str, object]:
    """Return what the figures depend on."""
    import torch

    from overheard.learning.engines.kernel_check import kernels_agree
    from overheard.learning.engines.triton_support import runs_triton

    try:
        import triton

        version = triton.__version__
    except ImportError:
        version = None
    gpu = torch.device("cuda")
    known = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": version,
        "kernels": runs_triton(gpu) and kernels_agree(gpu),
        "cores": len(os.sched_getaffinity(0)),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit or known.stdout.strip(),
    }


def ceilings_section() -> tuple[object, list[str]]:
    """Measure the card."""
    from speed import ceilings

    return ceilings(), []


def speed_section() -> tuple[object, list[str]]:
    """Measure cohorts and their rivals."""
    from cohorts import COHORTS
    from speed import PRECISIONS, is_missed, measure

    rows, missed = dict[str, Any](), list[str]()
    for name in COHORTS:
        for precision in PRECISIONS.get(name, ("float32",)):
            what = f"{name}, {precision}"
            try:
                rows[what] = measure(name, precision)
            except Exception:
                rows[what] = {"error": traceback.format_exc()[-1500:]}
                missed.append(f"{what} failed")
                continue
            if is_missed(rows[what]):
                missed.append(what)
    return rows, missed


def equality_section() -> tuple[object, list[str]]:
    """Compare updates of every model with the CPU's."""
    from equality import compare_all

    return compare_all()


def audits_section() -> tuple[object, list[str]]:
    """Run audits on the GPU and on cores."""
    from audits import LIRA_GOAL, built_in, by_precision, calibrate, lira

    calibration = calibrate()
    shadows, plain = lira(), built_in()
    missed = []
    if float(str(shadows["seconds"])) > LIRA_GOAL:
        missed.append(f"lira: {shadows['seconds']:.1f} s, the goal is {LIRA_GOAL} s")
    spent, changed = plain["seconds"], plain["changed"]
    assert isinstance(spent, dict)
    assert isinstance(changed, dict)
    # Two runs of one audit differ by this much on an idle machine.
    if spent["auto"] > 1.1 * spent["cpu"]:
        missed.append(f"built-in audit: {spent['auto']:.1f} s, {spent['cpu']:.1f} s on cores")
    missed += [
        f"built-in audit on {device}: {one}" for device in changed for one in changed[device]
    ]
    found = {"calibration, s by cores": calibration, "lira": shadows, "built-in": plain}
    return {**found, "precision": by_precision()}, missed


def kernels_section() -> tuple[object, list[str]]:
    """Measure kernels that the product does not use."""
    from kernels import measure_kernels

    return measure_kernels(), []


def memory_section() -> tuple[object, list[str]]:
    """Train cohorts that do not fit at once."""
    from memory import large_cohorts

    return large_cohorts(), []


def tests_section() -> tuple[object, list[str]]:
    """Run tests/test_devices.py on the real device."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider",
         "-W", "ignore::UserWarning", "tests/test_devices.py"],
        cwd=PROJECT,
        env=os.environ | {"OVERHEARD_TEST_DEVICE": "cuda"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    lines = [one for one in done.stdout.splitlines() if one.startswith(("FAILED", "ERROR"))]
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr[-500:]]
    return {"result": last[0], "failed": lines}, lines or ([] if not done.returncode else last)


Section = Callable[[], tuple[object, list[str]]]

SECTIONS: dict[str, Section] = {
    "ceilings": ceilings_section,
    "speed": speed_section,
    "audits": audits_section,
    "equality": equality_section,
    "memory": memory_section,
    "tests": tests_section,
    "kernels": kernels_section,
}

USUAL = [one for one in SECTIONS if one != "kernels"]
"""The sections of `make gpu-check`."""


if __name__ == "__main__":
    main()
