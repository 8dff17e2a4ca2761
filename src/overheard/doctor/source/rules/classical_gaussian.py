"""The classical Gaussian formula above an epsilon of 1."""

from math import log, sqrt
from typing import final

from overheard.core.accounting.accountant import gaussian_epsilon, is_accountant_installed
from overheard.core.mechanism import INSTALL_HINT
from overheard.doctor.source.code import keyword
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode

ROUNDING = 0.01
"""How much a stated epsilon may be below the exact one, as a share."""


@final
class ClassicalGaussianInCode(SourceRule):
    """Noise of sqrt(2 ln(1.25/delta))/epsilon is proven for an epsilon of at most 1 only."""

    name = "classical-gaussian"
    severity = "critical"
    title = "the classical Gaussian formula beyond its range"
    mend = "Choose the noise by the exact Gaussian mechanism (Balle and Wang 2018, theorem 8)."
    reference = "flwr.clientapp.mod.LocalDpMod; Dwork and Roth 2014, theorem 3.22"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether there is a `LocalDpMod`."""
        return any(site.last == "LocalDpMod" for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Recompute the epsilon of the noise of one message."""
        for site in app.code.calls:
            if site.last != "LocalDpMod":
                continue
            given = keyword(site.call, "epsilon", 2), keyword(site.call, "delta", 3)
            known = [app.code.constant(one, site.function) for one in given]
            values = [one.value for one in known if one is not None]
            numbers = [float(one) for one in values if isinstance(one, int | float)]
            if len(numbers) < 2:
                yield UnclearCode(
                    f"Epsilon or delta of {app.places(site.call)[0]} is a value of run time."
                )
                continue
            epsilon, delta = numbers
            if not (1 < epsilon < 1000 and 0 < delta < 1):
                continue
            if not is_accountant_installed():
                yield UnclearCode(INSTALL_HINT)
                continue
            noise = sqrt(2 * log(1.25 / delta)) / epsilon
            true = gaussian_epsilon(noise, 1, delta)
            if true > epsilon * (1 + ROUNDING):
                yield CodeFault(
                    f"The formula gives noise for epsilon {epsilon:g}, at delta {delta:g}; the "
                    f"epsilon of that noise is {true:.2f}, for one message and a neighbour "
                    "that lacks the client.",
                    app.places(site.call),
                )
