"""The entry of a mechanism's epsilon in findings.json."""

from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.epsilon.threshold_bound import EpsilonBound, ThresholdRates
from overheard.findings.document import Entry, to_json_value


def epsilon_entry(line: EpsilonResult) -> Entry:
    """Return the entry of an epsilon result, with its mechanism and run."""
    mechanism, found = line.accounted.mechanism, line.accounted.recomputed
    return {
        "arm": line.arm,
        "defense": line.defense.settings,
        "observers": line.observers,
        "verdict": line.verdict,
        "flaw": mechanism.flaw,
        "noised_at": mechanism.noised_at,
        "bounded_at": mechanism.bounded_at,
        "switched_off_by": line.defense.switched_off_by,
        "unit": mechanism.unit,
        "noise_multiplier": mechanism.noise_multiplier,
        "clip": mechanism.clip,
        "moves": mechanism.moves,
        "delta": mechanism.delta,
        "rounds": line.accounted.run.rounds,
        "steps": mechanism.steps,
        "sampling_rate": line.accounted.run.sampling_rate if mechanism.is_drawn else 1.0,
        "claimed": to_json_value(mechanism.stated),
        "claimed_for": None if mechanism.stated is None else mechanism.stated_for,
        "is_recomputed": found is not None,
        "pld": None if found is None else to_json_value(found.pld),
        "rdp": None if found is None else to_json_value(found.rdp),
        "drawn": None if found is None else to_json_value(found.subsampled),
        "ceiling": to_json_value(line.upper_bound),
        "measured": None if line.lower_bound is None else _bound_entry(line.lower_bound),
    }


def _bound_entry(bound: EpsilonBound) -> Entry:
    return {
        "at_least": bound.epsilon,
        "attack": bound.attack,
        **_evidence_entry(bound),
        "members": bound.members,
        "outsiders": bound.non_members,
    }


def _evidence_entry(bound: EpsilonBound) -> Entry:
    evidence = bound.evidence
    if isinstance(evidence, ThresholdRates):
        return {
            "threshold": to_json_value(evidence.threshold),
            "found": to_json_value(evidence.true_positive_rate),
            "passed": to_json_value(evidence.false_positive_rate),
        }
    return {
        "above": to_json_value(evidence.above),
        "below": to_json_value(evidence.below),
        "said_in": evidence.counts.guessed_in,
        "said_out": evidence.counts.guessed_out,
        "right": evidence.counts.right,
    }
