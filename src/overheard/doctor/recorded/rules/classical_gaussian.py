"""The classical formula of the Gaussian mechanism, where it does not hold."""

from math import log, sqrt
from typing import final

from overheard.core.accounting.accountant import (
    TOLERANCE,
    gaussian_epsilon,
    is_accountant_installed,
)
from overheard.core.mechanism import INSTALL_HINT
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
    round_down,
)

ROUNDING = 0.01
"""How much a stated epsilon may be below the exact one, as a share."""


@final
class ClassicalGaussian(RunRule):
    """Noise of sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, for an epsilon above 1.

    The formula is proven for epsilon up to 1. Above, the exact epsilon of this noise decides.
    """

    name = "classical-gaussian"
    severity = "critical"
    title = "noise by the classical Gaussian formula, where it is too small"
    mend = (
        "Compute the noise with dp-accounting, or by Balle and Wang 2018, from the epsilon of "
        "all rounds."
    )
    reference = (
        "Dwork and Roth 2014, theorem A.1, for epsilon below 1; Balle and Wang 2018 (ICML); "
        "Flower's LocalDpMod uses the formula for every epsilon"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare each epsilon that the formula gives with the exact one of its noise."""
        found = [
            (one, epsilon)
            for one in run.mechanisms
            if (epsilon := _by_formula(one)) is not None and epsilon > 1
        ]
        if not found:
            return None
        if not is_accountant_installed():
            return Hidden(INSTALL_HINT)
        faults = list[Fault]()
        for one, epsilon in found:
            delta = one.mechanism.delta
            noise = sqrt(2 * log(1.25 / delta)) / epsilon
            removed = gaussian_epsilon(noise, 1, delta)
            if removed - TOLERANCE <= epsilon * (1 + ROUNDING):
                continue
            faults.append(
                Fault(
                    f"Epsilon {epsilon:g} is stated by the classical formula. Its noise gives "
                    f"{round_down(removed)} for a unit that is added or removed, and "
                    f"{gaussian_epsilon(noise / 2, 1, delta):.2f} for one that is replaced.",
                    one.name,
                    f"noise of {noise:.3g} sensitivities, delta {delta:g}, one round",
                )
            )
        return tuple(faults)


def _by_formula(one: StatedMechanism) -> float | None:
    """Return the epsilon that the formula turned into the noise of a mechanism; None = none."""
    if one.name == "LocalDpMod":
        return one.number("epsilon")
    return None
