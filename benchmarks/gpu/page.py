"""Write what `make gpu-check` measured into docs/performance.md.

python benchmarks/gpu/page.py
"""

import json
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent.parent
RESULTS = PROJECT / "benchmarks" / "gpu.json"
PAGE = PROJECT / "docs" / "performance.md"
BEGIN, END = "<!-- from benchmarks/gpu.json -->\n", "<!-- end of benchmarks/gpu.json -->\n"

SECTIONS = ("ceilings", "speed", "audits", "equality", "memory", "tests")
"""What `make gpu-check` measures."""

NOT_MEASURED = """
No GPU has run this code. Not measured are the seconds of every cohort, the equality of a real
card with the CPU, the memory of large cohorts, and whole audits beside a GPU. `make gpu-check`
measures all of it on a machine with a GPU.
"""


def main() -> None:
    """Replace the section of the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + section(kept()) + END + after, encoding="utf-8")


def kept() -> dict[str, Any] | None:
    """Return what was measured; None = nothing was."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else None


def section(results: dict[str, Any] | None) -> str:
    """Return the section's text, of all that was measured."""
    if results is None:
        return NOT_MEASURED
    machine = results["machine"]
    parts = [
        f"Measured on {machine['date']} on one {machine['gpu']} with {machine['cores']} cores, "
        f"torch {machine['torch']}, Triton {machine['triton']}, by `make gpu-check` at commit "
        f"{machine['commit'][:8]}. A cohort trains by `train_cohort`, with the copy of all "
        "updates to the host. The plain loop trains one client after the other. The plain "
        "graph does so with a whole step as a CUDA graph. Both train 10 clients, and their "
        "seconds are scaled.\n"
    ]
    if not machine.get("kernels", True):
        parts.append("The kernels in Triton did not work there.\n")
    if "speed" in results:
        parts.append(_speed(results["speed"], results.get("ceilings", {})))
    if "audits" in results and "error" not in results["audits"]:
        parts.append(_audits(results["audits"]))
    if "equality" in results and "error" not in results["equality"]:
        parts.append(_equality(results["equality"]))
    if "memory" in results and "error" not in results["memory"]:
        parts.append(_memory(results["memory"]))
    if "tests" in results and "error" not in results["tests"]:
        parts.append(
            f"tests/test_devices.py on the card: {results['tests']['result'].strip('= ')}.\n"
        )
    absent = [one for one in SECTIONS if "error" in results.get(one, {"error": "not run"})]
    if absent:
        parts.append(f"Not measured: {', '.join(absent)}.\n")
    missed = results.get("missed", [])
    if missed:
        parts.append("Missed:\n\n" + "".join(f"- {one}\n" for one in missed))
    elif not absent:
        parts.append("No goal and no equality was missed.\n")
    return "\n" + "\n".join(parts) + "\n"


def _speed(rows: dict[str, Any], ceilings: dict[str, float]) -> str:
    lines = [
        "| cohort | seconds | goal | first run | plain loop | plain graph | TFLOP/s | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for what, row in rows.items():
        if "error" in row:
            lines.append(f"| {what} | failed | | | | | | |")
            continue
        goal = _seconds(row["goal, s"])
        ratio = row["goal, times the plain loop"]
        if ratio is not None:
            goal = f"{ratio:g}x the plain loop: {row['plain loop, s'] / row['s']:.1f}x"
        speed = f"{row['TFLOP/s']:.0f}" if "TFLOP/s" in row else ""
        lines.append(
            f"| {row['clients']} {what} | {_seconds(row['s'])} | {goal} "
            f"| {_seconds(row['first, s'])} | {_seconds(row['plain loop, s'])} "
            f"| {_seconds(row['plain graph, s'])} | {speed} "
            f"| {row['peak, GiB']:.1f} GiB |"
        )
    text = "\n".join(lines) + "\n"
    if ceilings and "error" not in ceilings:
        known = ", ".join(
            f"{what.replace(',', '')} {one:.3g}" for what, one in ceilings.items()
        )
        text += f"\nCeilings in the same run: {known}.\n"
    return text


def _audits(found: dict[str, Any]) -> str:
    shadows, plain = found["lira"], found["built-in"]
    spent = plain["seconds"]
    changed = {device: len(one) for device, one in plain["changed"].items()}
    return (
        "The audit with `lira` and 64 shadow models of `conv_net` took "
        f"{shadows['seconds']:.1f} s (goal {shadows['goal']:g} s). The built-in audit on 4 "
        f"cores took {spent['cpu']:.1f} s; with the GPU beside them, {spent['auto']:.1f} s; "
        f"with all training forced onto the GPU, {spent['cuda']:.1f} s. "
        f"Of its {plain['verdicts']} verdicts {changed['auto']} and "
        f"{changed['cuda']} differ from those without the GPU.\n\n"
        + _precisions(found["precision"])
    )


def _precisions(rows: dict[str, Any]) -> str:
    attacks = list(next(iter(rows.values()))["change of claims"])
    lines = [
        "The table shows one audit of a `conv_net` by precision: its seconds on the card, the "
        "verdicts that differ from those in float32, and by attack the largest change of a "
        "claim, relative to its size.\n",
        "| precision | seconds | verdicts that differ | " + " | ".join(attacks) + " |",
        "|---" * (len(attacks) + 3) + "|",
    ]
    for precision, row in rows.items():
        changes = (_difference(row["change of claims"][one]) for one in attacks)
        lines.append(
            f"| {precision} | {_seconds(row['s'])} "
            f"| {len(row['changed verdicts'])} of {row['verdicts']} | {' | '.join(changes)} |"
        )
    return "\n".join(lines) + "\n"


def _equality(found: dict[str, Any]) -> str:
    lines = [
        "The table shows how far updates on the card are from those on the CPU, relative to "
        "the size of the update.\n",
        "| what | " + " | ".join(found["columns"]) + " |",
        "|---" * (len(found["columns"]) + 1) + "|",
    ]
    for what, row in found["rows"].items():
        cells = (row.get(one) for one in found["columns"])
        lines.append(f"| {what} | " + " | ".join(_difference(one) for one in cells) + " |")
    return "\n".join(lines) + "\n"


def _memory(rows: dict[str, Any]) -> str:
    return "".join(
        f"- {what}, {row['clients']} clients: {row['s']:.1f} s, at most "
        f"{row['peak, GiB']:.1f} GiB.\n"
        for what, row in rows.items()
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def _difference(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.0e}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
