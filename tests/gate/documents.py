"""Minimal findings in the format of an audit, for tests to change."""

import json
from pathlib import Path

from overheard.findings.document import FindingsDocument

JsonObject = dict[str, object]


def estimate(low: float | None, high: float | None, mean: float | None = None) -> JsonObject:
    if mean is None and low is not None and high is not None:
        mean = (low + high) / 2
    return {"mean": mean, "low": low, "high": high}


def summary_row(
    low: float | None = 0.5, high: float | None = 0.6, **changes: object
) -> JsonObject:
    """Return a row with an AUC, for which a coin gets .5, unless changed."""
    gain = None if low is None or high is None else estimate(low - 0.5, high - 0.5)
    blinds = changes.get("blinds", {"a coin": 0.5})
    assert isinstance(blinds, dict)
    blind = next((value for value in blinds.values() if value is not None), None)
    return {
        "arm": "bare",
        "observers": ["server"],
        "attack": "lira",
        "question": "membership",
        "about": "clients",
        "rounds": [0, 1],
        "score": "membership_auc",
        "better": "higher",
        "value": estimate(low, high),
        "blinds": blinds,
        "references": {},
        "blind": blind,
        "gain": None if blind is None else gain,
        "targets": 4,
        "seeds": 2,
    } | changes


def verdict_row(
    verdict: str = "leaks", p_value: float | None = 0.001, **changes: object
) -> JsonObject:
    """Return a verdict on membership, with a gain of 0.1, or 0.01 if it is below the margin."""
    is_unjudged = verdict in {"unchecked", "unmeasured"}
    is_below = verdict == "no leak above margin"
    gain = estimate(-0.01, 0.03) if is_below else estimate(0.05, 0.15)
    return {
        "arm": "bare",
        "observers": ["server"],
        "question": "membership",
        "about": "clients",
        "verdict": verdict,
        "attack": "lira",
        "p_value": None if is_unjudged else p_value,
        "smallest_p_value": None if is_unjudged or p_value is None else 0.001,
        "gain": None if is_unjudged else gain,
        "margins": {"membership_auc": 0.05},
        "is_below_margin": is_below,
        "why": "",
        "score": "membership_auc",
        "sentence": f"Members: {verdict}.",
        "shared_gains": {},
    } | changes


def refusal(**changes: object) -> JsonObject:
    return {
        "arm": "bare",
        "seed": 0,
        "observers": ["server"],
        "attack": "lira",
        "settings": "Lira()",
        "question": "membership",
        "rounds": [0, 1],
        "is_control": False,
        "part": "lira",
        "label": "lira",
        "is_adaptive": False,
        "control": "",
        "control_number": 0,
        "target": "client/0",
        "missing": ["a model"],
    } | changes


def bound(at_least: float, attack: str = "peek") -> JsonObject:
    """Return a lower bound of epsilon from guesses about canaries."""
    return {
        "at_least": at_least,
        "attack": attack,
        "above": 0.5,
        "below": None,
        "said_in": 20,
        "said_out": 0,
        "right": 18,
        "members": 30,
        "outsiders": 30,
    }


def epsilon_row(verdict: str = "holds", **changes: object) -> JsonObject:
    """Return an epsilon row: at most 2 claimed, 0.5 or 2.5 proven, if the verdict allows it."""
    is_bounded = verdict not in {"flawed", "outside guarantee", "unaccounted"}
    is_measured = verdict not in {"not tested", "refused", "not exchangeable", "unchecked"}
    proven = 2.5 if verdict in {"violated", "contradicted", "estimate"} else 0.5
    is_false = verdict == "false"
    return {
        "arm": "noisy",
        "defense": "LocalDp(clip=1.0)",
        "observers": ["server"],
        "verdict": verdict,
        "flaw": "it adds no noise" if verdict == "flawed" else "",
        "noised_at": "client",
        "bounded_at": "client",
        "switched_off_by": "the client itself",
        "unit": "client",
        "noise_multiplier": 1.0,
        "clip": 1.0,
        "moves": 2.0,
        "delta": 1e-5,
        "rounds": 2,
        "steps": 1,
        "sampling_rate": 1.0,
        "claimed": 0.1 if is_false else None,
        "claimed_for": "run" if is_false else None,
        "is_recomputed": False,
        "pld": None,
        "rdp": None,
        "drawn": None,
        "ceiling": 2.0 if is_bounded else None,
        "measured": bound(proven) if is_measured else None,
    } | changes


def run(arm: str = "bare", seed: int = 0, **changes: object) -> JsonObject:
    return {
        "arm": arm,
        "seed": seed,
        "defenses": [],
        "accuracy": {"0": 0.1, "2": 0.9, "1": 0.5},
        "is_control": False,
        "control": "",
        "control_number": 0,
        "has_truth": True,
        "are_defenses_known": True,
        "in_clear": [],
        "utility": "accuracy",
        "answers": 8,
        "missing": 0,
        "bytes": {"up": 1000, "down": 500, "answers": 8, "heard": 10},
        "seconds": {"wall": 2.5, "cores": None},
    } | changes


def document(*rows: JsonObject, **changes: object) -> JsonObject:
    return {
        "format": "overheard findings",
        "version": 2,
        "title": "Two clients",
        "subject": "digits",
        "made_on": "",
        "is_recorded": False,
        "is_auxiliary_separate": True,
        "release": {},
        "class_names": ["0", "1"],
        "arms": [run()],
        "summary": list(rows),
        "verdicts": [],
        "epsilon": [],
        "findings": [],
        "refusals": [],
        "plan": "",
        "versions": {},
    } | changes


def write_document(folder: Path, content: JsonObject, name: str = "findings.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def findings(*rows: JsonObject, **changes: object) -> FindingsDocument:
    return FindingsDocument.model_validate_json(json.dumps(document(*rows, **changes)))
