"""The row of a mechanism's epsilon in findings.json."""

from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.epsilon.threshold_bound import EpsilonBound, ThresholdRates
from overheard.findings.document_rows import IntervalEstimate
from overheard.findings.epsilon_rows import BoundByGuesses, BoundByThreshold, EpsilonRow


def epsilon_row(line: EpsilonResult) -> EpsilonRow:
    """Return the row of an epsilon result, with its mechanism and run."""
    mechanism, found = line.accounted.mechanism, line.accounted.recomputed
    run = line.accounted.run
    return EpsilonRow.of(
        mechanism,
        {
            "arm": line.arm,
            "defense": line.defense.settings,
            "observers": line.observers,
            "verdict": line.verdict,
            "switched_off_by": line.defense.switched_off_by,
            "rounds": run.rounds,
            "recorded_rounds": run.recorded,
            "sampling_rate": run.sampling_rate if mechanism.is_drawn else 1.0,
            "client_sampling": run.sampling if run.samples_clients else "none",
            "claimed": mechanism.stated,
            "claimed_for": None if mechanism.stated is None else mechanism.stated_for,
            "claim": line.accounted.claim,
            "doubt": line.accounted.doubt
            if line.verdict in ("not confirmed", "unaccounted")
            else "",
            "is_recomputed": found is not None,
            "pld": None if found is None else found.pld,
            "rdp": None if found is None else found.rdp,
            "drawn": None if found is None else found.subsampled,
            "lower": None if found is None or mechanism.stated is None else found.lower,
            "ceiling": line.upper_bound,
            "measured": None if line.lower_bound is None else _bound_row(line.lower_bound),
        },
    )


def _bound_row(bound: EpsilonBound) -> BoundByThreshold | BoundByGuesses:
    evidence = bound.evidence
    if isinstance(evidence, ThresholdRates):
        return BoundByThreshold(
            at_least=bound.epsilon,
            attack=bound.attack,
            threshold=evidence.threshold,
            found=IntervalEstimate.of(evidence.true_positive_rate),
            passed=IntervalEstimate.of(evidence.false_positive_rate),
            members=bound.members,
            outsiders=bound.non_members,
        )
    return BoundByGuesses(
        at_least=bound.epsilon,
        attack=bound.attack,
        above=evidence.above,
        below=evidence.below,
        said_in=evidence.counts.guessed_in,
        said_out=evidence.counts.guessed_out,
        right=evidence.counts.right,
        members=bound.members,
        outsiders=bound.non_members,
    )
