"""A delta that allows to reveal whole units."""

from typing import final

from overheard.core.mechanism import UNITS
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
)


@final
class DeltaTooLarge(RunRule):
    """Delta is not below one divided by the number of units."""

    name = "delta-too-large"
    severity = "theoretical"
    title = "delta is not below 1 / number of units"
    mend = "State epsilon at a delta well below 1 / number of units."
    reference = (
        "Dwork and Roth 2014, section 2.3: a mechanism that publishes whole records of a few "
        "people has delta 1 / n"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare each delta with the number of clients, or of a client's examples."""
        if not run.mechanisms:
            return None
        faults, hidden = list[Fault](), list[str]()
        for one in run.mechanisms:
            units = _units(run, one)
            if units is None:
                hidden.append(f"{one.name}: the number of units is not known")
            elif one.mechanism.delta >= 1 / units:
                faults.append(
                    Fault(
                        f"Delta {one.mechanism.delta:g} is not below 1 / {units:,}.",
                        one.name,
                        f"the unit is {UNITS[one.mechanism.unit]}; there are {units:,} of them",
                    )
                )
        return tuple(faults) if faults or not hidden else Hidden("; ".join(hidden))


def _units(run: RunEvidence, one: StatedMechanism) -> int | None:
    units = run.clients if one.mechanism.unit == "client" else run.examples
    return units or None
