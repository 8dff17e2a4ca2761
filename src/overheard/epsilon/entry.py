"""The entry of a mechanism's epsilon in findings.json."""

from overheard.epsilon.bound import EpsilonBound, Rates
from overheard.epsilon.epsilon import EpsilonLine
from overheard.findings.document import Entry, plain


def epsilon_entry(line: EpsilonLine) -> Entry:
    """Return the entry of an epsilon result, with its mechanism and run."""
    mechanism, found = line.accounted.mechanism, line.accounted.recomputed
    return {
        "arm": line.arm,
        "defense": line.defense.settings,
        "observers": line.observers,
        "verdict": line.standing,
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
        "claimed": plain(mechanism.stated),
        "claimed_for": None if mechanism.stated is None else mechanism.stated_for,
        "is_recomputed": found is not None,
        "pld": None if found is None else plain(found.pld),
        "rdp": None if found is None else plain(found.rdp),
        "drawn": None if found is None else plain(found.drawn),
        "ceiling": plain(line.ceiling),
        "measured": None if line.bound is None else _bound(line.bound),
    }


def _bound(bound: EpsilonBound) -> Entry:
    return {
        "at_least": bound.epsilon,
        "attack": bound.attack,
        **_evidence(bound),
        "members": bound.members,
        "outsiders": bound.outsiders,
    }


def _evidence(bound: EpsilonBound) -> Entry:
    evidence = bound.evidence
    if isinstance(evidence, Rates):
        return {
            "threshold": plain(evidence.threshold),
            "found": plain(evidence.found),
            "passed": plain(evidence.passed),
        }
    return {
        "above": plain(evidence.above),
        "below": plain(evidence.below),
        "said_in": evidence.tally.inside,
        "said_out": evidence.tally.outside,
        "right": evidence.tally.right,
    }
