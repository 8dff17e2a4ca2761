"""A stated epsilon that is smaller than the recomputed one by rounding alone."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule


@final
class EpsilonRoundedDown(RunRule):
    """The stated epsilon is below the bound of its settings by less than what claims may round.

    `ClaimBelowAccounting` is about differences that are no rounding.
    """

    name = "epsilon-rounded-down"
    severity = "negligible"
    title = "the stated epsilon is rounded down"
    mend = "Round epsilon up."
    reference = (
        'JAX Privacy, "Common Pitfalls in DP Training" (McKenna and McMahan 2026), '
        "finite-precision numerical error"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare each stated epsilon that holds with the lower bound of its settings."""
        faults, is_known = list[Fault](), False
        for one in run.mechanisms:
            mechanism, found = one.mechanism, one.accounted.recomputed
            if mechanism.stated is None or found is None or one.accounted.claim != "holds":
                continue
            is_known = True
            lower = found.one_round_lower if mechanism.stated_for == "round" else found.lower
            if mechanism.stated < lower:
                faults.append(
                    Fault(
                        f"Epsilon {mechanism.stated:.10g} is stated for a "
                        f"{mechanism.stated_for}, and its settings give at least {lower:.10g}.",
                        one.name,
                        f"{lower - mechanism.stated:.2g} too little, which counts as rounding",
                    )
                )
        return tuple(faults) if is_known else None
