"""Shuffled batches that are accounted as Poisson samples."""

from dataclasses import replace
from typing import final

from overheard.core.accounting.accountant import account_mechanism, is_accountant_installed
from overheard.core.mechanism import INSTALL_HINT
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    RunRule,
    StatedMechanism,
)


@final
class ShuffledAsPoisson(RunRule):
    """The stated epsilon counts on Poisson samples, and batches are shuffled.

    No tight accounting of shuffled batches is known. What is printed beside: each record is
    once in an epoch, so one Gaussian an epoch, without amplification.
    """

    name = "shuffled-as-poisson"
    severity = "critical"
    title = "shuffled batches are accounted as Poisson samples"
    mend = (
        "Sample each record by itself for each step, as Opacus does by default, or state the "
        "epsilon of one Gaussian an epoch."
    )
    reference = (
        "JAX Privacy, 'Sharp edges' (McKenna and McMahan 2026), accounting and batch "
        "selection; Chua et al. 2024 (ICML)"
    )

    def examine(self, run: RunEvidence) -> Examined:
        """Compare each claim with the epsilon of shuffled batches and of Poisson samples."""
        shuffled = [one for one in run.mechanisms if _is_shuffled(run, one)]
        if not shuffled:
            return None
        if not is_accountant_installed():
            return Hidden(INSTALL_HINT)
        faults = list[Fault]()
        for one in shuffled:
            stated = one.mechanism.stated
            true = _epsilon(one, "shuffled")
            is_accounted_otherwise = one.mechanism.record_sampling == "poisson"
            if is_accounted_otherwise or (stated is not None and stated < true * 0.99):
                faults.append(_fault(one, true))
        return tuple(faults)


def _is_shuffled(run: RunEvidence, one: StatedMechanism) -> bool:
    """Return whether the batches of a mechanism are shuffled, by itself or by the recipe."""
    recipe, mechanism = run.recipe, one.mechanism
    if mechanism.unit != "record" or mechanism.record_rate is None:
        return False
    steps = None if recipe is None else recipe.private_steps
    is_by_recipe = steps is not None and steps.sampling == "shuffled"
    return mechanism.record_sampling == "shuffled" or is_by_recipe


def _epsilon(one: StatedMechanism, sampling: str) -> float:
    is_poisson = sampling == "poisson"
    mechanism = replace(
        one.mechanism,
        record_sampling="poisson" if is_poisson else "shuffled",
        is_relation_stated=True,
    )
    found = account_mechanism(mechanism, one.accounted.run).recomputed
    return 0.0 if found is None else found.against_everybody


def _fault(one: StatedMechanism, true: float) -> Fault:
    stated = one.mechanism.stated
    claim = "Poisson samples are stated" if stated is None else f"Epsilon {stated:g} is stated"
    return Fault(
        f"{claim}, and batches are shuffled: one Gaussian an epoch, without amplification, "
        f"gives {true:.2f}.",
        one.name,
        f"Poisson samples would give {_epsilon(one, 'poisson'):.2f}, which is not this run's; "
        f"{one.mechanism.steps:,} steps a round, {one.accounted.run.rounds_text}",
    )
