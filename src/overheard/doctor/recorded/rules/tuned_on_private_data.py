"""Several runs on the same private data, of which one is chosen."""

from typing import final

from overheard.doctor.recorded.evidence import Examined, Fault, RunEvidence, RunRule


@final
class TunedOnPrivateData(RunRule):
    """The claim is that of one run, and it was chosen among several on the same data."""

    name = "tuned-on-private-data"
    severity = "critical"
    title = "several runs on the same data, and the epsilon of one"
    mend = (
        "Compose the epsilon of all runs, or choose a random number of runs and account for "
        "the choice (Papernot and Steinke 2022)."
    )
    reference = (
        "Papernot and Steinke 2022 (ICLR), Hyperparameter tuning with Renyi differential "
        "privacy; Liu and Talwar 2019 (STOC)"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Look at the number of runs that is stated."""
        stated = [one for one in run.mechanisms if one.mechanism.stated is not None]
        if not stated or run.tuning_runs is None:
            return None
        if run.tuning_runs == 1:
            return ()
        return tuple(
            Fault(
                f"Epsilon {one.mechanism.stated:g} is that of one run, and it was chosen among "
                f"{run.tuning_runs} runs on the same private data.",
                one.name,
                f"tuning_runs = {run.tuning_runs}",
            )
            for one in stated
        )
