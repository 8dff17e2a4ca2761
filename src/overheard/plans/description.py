"""Describes in one sentence what was audited."""

from overheard.algorithms.fed_avg import FedAvg
from overheard.archive.manifest import SIMULATION, UNTOLD_FRAMEWORK, Manifest
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.partition.schedule import DataShift
from overheard.federation.sampling import Sampling
from overheard.plans.plan import Plan, TrainingPlan
from overheard.plans.plugin_field import plugin_label

_PRIOR_PHRASES: dict[PriorKind, str] = {
    "random": "up to {share} of each user's examples, at random",
    "chronological": "up to {share} of each user's examples, the earlier ones",
    "chronological_within_labels": (
        "up to {share} of each user's examples, the earlier ones of each label"
    ),
    "profile": "a random {share} of all examples, as one profile per label",
}

_SAMPLING_PHRASES: dict[Sampling, str] = {
    "fixed": "without replacement",
    "poisson": "each by itself",
    "with_replacement": "with replacement",
}


def describe_plan(plan: Plan) -> str:
    """Describe the data, clients, model and training of a simulated audit."""
    data, training = plan.data, plan.training
    assert data.split_settings is not None
    split, (low, high) = data.split_settings.split, data.split_settings.sizes
    sizes = f"{low}" if low == high else f"{low} to {high}"
    if split.has_own_sizes:
        sizes = f"up to {high}"
    return (
        f"{data.clients} clients with {sizes} examples each of {data.source.name}, partitioned "
        f"by {plugin_label(split)}; model {plugin_label(training.model)}; {training.rounds} "
        f"rounds of {_describe_algorithm(training)}, {_describe_epochs(training)} of "
        f"{training.optimizer} at learning rate {training.rate:g} with batches of "
        f"{training.batch}"
        + _describe_precision(training)
        + "".join(map(_describe_shift, data.shifts))
        + _describe_known_users(data.people)
        + _describe_canaries(data.candidates)
    )


def _describe_algorithm(training: TrainingPlan) -> str:
    is_fed_avg = training.algorithm == FedAvg()
    name = "FedAvg" if is_fed_avg else f"the algorithm {plugin_label(training.algorithm)}"
    if training.sampling == "fixed":
        return name
    return f"{name}, clients sampled {_SAMPLING_PHRASES[training.sampling]}"


def _describe_epochs(training: TrainingPlan) -> str:
    text = f"{training.epochs} local epoch{_plural(training.epochs)}"
    if training.epochs_range is not None:
        low, high = training.epochs_range
        text = f"{low} to {high} local epochs"
    if training.straggler_rate:
        text += f" (fewer with probability {training.straggler_rate:g})"
    return text


def _describe_precision(training: TrainingPlan) -> str:
    precision = training.recipe.precision
    return "" if precision == "float32" else f", in {precision} where a GPU computes"


def _describe_shift(shift: DataShift) -> str:
    verb = "are replaced" if shift.is_refresh else "shift"
    last = shift.last_round
    when = f"round {shift.round}" if shift.over == 1 else f"rounds {shift.round} to {last}"
    return f"; the data of client {shift.client} {verb} in {when}"


def _describe_known_users(known_users: KnownUserSettings | None) -> str:
    if known_users is None:
        return ""
    known = _PRIOR_PHRASES[known_users.prior].format(share=f"{known_users.share:.0%}")
    if known_users.records is not None:
        known += f", at most {known_users.records} per user"
    if known_users.shadow_devices:
        known += ", each on a shadow device in the run"
    if known_users.per_label is not None:
        known += (
            f"; users are label-matched, with {known_users.per_label} private examples per "
            "label"
        )
    if known_users.unseen:
        known += (
            f"; it has no examples of {known_users.unseen} client{_plural(known_users.unseen)}"
        )
    if known_users.holdout:
        known += (
            f"; it also has examples of {known_users.holdout} "
            f"user{_plural(known_users.holdout)} known to take no part"
        )
    return f"; clients stand for users, and the attacker has {known}"


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


def describe_recording(plan: Plan, manifest: Manifest, parties: int, rounds: int) -> str:
    """Describe a recorded run; what its manifest does not have is taken from the plan.

    Args:
        plan: the plan of the audit.
        manifest: the manifest of the recording.
        parties: number of parties that sent or could read a message.
        rounds: number of rounds with a reply.

    """
    training = plan.training
    is_told = manifest.framework not in (SIMULATION, UNTOLD_FRAMEWORK)
    run_by = f" of {manifest.framework}" if is_told else ""
    model = manifest.model or f"not recorded, assumed to be {plugin_label(training.model)}"
    recipe = (
        f"a recipe not recorded, assumed to be {training.recipe}"
        if manifest.recipe is None
        else repr(manifest.recipe)
    )
    return (
        f"a recorded run{run_by} of {parties} parties over {rounds} rounds; model {model}; "
        f"clients trained by {recipe}; auxiliary examples from {plan.data.source.name}"
        + _describe_known_users(plan.data.people)
        + _describe_canaries(plan.data.candidates)
    )


def _describe_canaries(candidates: CandidateSettings | None) -> str:
    if candidates is None or not candidates.are_canaries:
        return ""
    kinds = {
        "mislabelled": ", each with a wrong label",
        "crafted": ", each with a gradient of its own coordinates in place of its own",
    }
    return (
        f"; canaries were assigned at random, on average {candidates.members} per client and "
        f"{candidates.outsiders} held out{kinds.get(candidates.canaries, '')}"
    )


def describe_bound(plan: Plan) -> tuple[str, ...]:
    """Return a sentence on how epsilon is bounded from canaries; () = there are none."""
    candidates, settings = plan.data.candidates, plan.bound_settings()
    if candidates is None or not candidates.are_canaries:
        return ()
    attack = settings.attack or "the best attack on half of the canaries"
    share = (
        "30 % of up to 500 canaries and 15 % from 1,000 on"
        if settings.guesses is None
        else f"{settings.guesses:.3g} of the canaries"
    )
    return (
        f"Epsilon is bounded by {attack}. It guesses {share}, at a level of "
        f"{settings.level:g} over all claims (digest {settings.digest}). If this is changed "
        "after the canaries are drawn, the bound becomes an estimate.",
    )
