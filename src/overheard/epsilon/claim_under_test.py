"""What a claim of differential privacy says about one canary: a curve, or one epsilon."""

from overheard.core.accounting.accountant import MOST_NOISE, AccountedMechanism
from overheard.core.accounting.sampled_accountant import MAX_DRAWS_ABOVE, PoissonNoise
from overheard.core.mechanism import Mechanism
from overheard.epsilon.trade_off import CurveFamily, GaussianFamily, SampledFamily


def claimed_family(
    accounted: AccountedMechanism, *, is_sample_secret: bool
) -> CurveFamily | None:
    """Return the mechanisms of which the claim is one; None = it is a bare epsilon.

    It follows from the settings alone. A claim is bare if it states less than its settings
    give, or if no curve is computed for its sampling.

    Args:
        accounted: the mechanism in its run.
        is_sample_secret: whether the observers do not know which clients were sampled.

    """
    mechanism, run, found = accounted.mechanism, accounted.run, accounted.recomputed
    is_refuted = accounted.claim in ("false", "not confirmed")
    if found is None or is_refuted or run.is_open or mechanism.noise_multiplier == 0:
        return None
    noise = min(mechanism.noise_multiplier / mechanism.moves, MOST_NOISE)
    draws, rate = run.rounds * mechanism.steps, mechanism.record_rate
    is_poisson = mechanism.record_sampling == "poisson"
    if is_sample_secret and found.subsampled is not None:
        draws, rate, is_poisson = run.rounds, run.sampling_rate, run.sampling == "poisson"
    elif mechanism.record_sampling == "shuffled":
        rate = None  # one draw an epoch, without amplification
    if rate in (None, 1):
        return GaussianFamily()
    if is_poisson and 0 < draws <= MAX_DRAWS_ABOVE:
        return SampledFamily(PoissonNoise(noise, rate, draws, mechanism.relation))
    return None


def steps_of_relation(mechanism: Mechanism) -> int:
    """Return how many steps of the claimed relation lead from a canary in to one out.

    The data of a client that get a canary are replaced by others: one step if that is the
    relation, else one out and one in. A record that gets in is added: one step if that is the
    relation and no other record moves. Where others move, as in shuffled batches, or where
    only a replacement is covered, it takes two.
    """
    is_replaced = mechanism.relation == "replace-one"
    if mechanism.unit == "client":
        return 1 if is_replaced else 2
    moves_others = mechanism.record_sampling not in ("none", "poisson")
    return 2 if is_replaced or moves_others else 1
