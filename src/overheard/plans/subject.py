"""Describes in one sentence what was audited."""

from overheard.archive.manifest import Manifest
from overheard.data.partition.candidates import Candidates
from overheard.data.partition.people import People, PriorKind
from overheard.data.partition.schedule import DataShift
from overheard.plans.part import label
from overheard.plans.plan import Plan

_PRIORS: dict[PriorKind, str] = {
    "random": "a random {share} of each user's examples",
    "chronological": "the earlier {share} of each user's examples",
    "chronological_within_labels": "the earlier {share} of each user's examples of each label",
    "profile": "a random {share} of all examples, as one profile per label",
}


def subject_of_plan(plan: Plan) -> str:
    """Describe the data, clients, model and training of a simulated audit."""
    data, training = plan.data, plan.training
    assert data.shared_out is not None
    split, (low, high) = data.shared_out.split, data.shared_out.sizes
    sizes = f"{low}" if low == high else f"{low} to {high}"
    if split.keeps_users:
        sizes = f"up to {high}"
    return (
        f"{data.clients} clients with {sizes} examples each of {data.source.name}, partitioned "
        f"by {label(split)}; model {label(training.model)}; {training.rounds} rounds of "
        f"FedAvg, {training.epochs} local epoch{_plural(training.epochs)} of "
        f"{training.optimizer} at learning rate {training.rate:g} with batches of "
        f"{training.batch}"
        + "".join(map(_told, data.shifts))
        + _known(data.people)
        + _put_in(data.candidates)
    )


def _told(shift: DataShift) -> str:
    verb = "are replaced" if shift.is_exchange else "shift"
    last = shift.last
    when = f"round {shift.round}" if shift.over == 1 else f"rounds {shift.round} to {last}"
    return f"; the data of client {shift.client} {verb} in {when}"


def _known(people: People | None) -> str:
    if people is None:
        return ""
    known = _PRIORS[people.prior].format(share=f"{people.share:.0%}")
    if people.records is not None:
        known += f", at most {people.records} per user"
    if people.shadow_devices:
        known += ", each on a shadow device in the run"
    if people.per_label is not None:
        known += (
            f"; users are label-matched, with {people.per_label} private examples per label"
        )
    if people.unseen:
        known += f"; it has no examples of {people.unseen} client{_plural(people.unseen)}"
    if people.holdout:
        known += (
            f"; it also has examples of {people.holdout} user{_plural(people.holdout)} known "
            "to take no part"
        )
    return f"; clients stand for users, and the attacker has {known}"


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


def subject_of_recording(plan: Plan, manifest: Manifest, parties: int, rounds: int) -> str:
    """Describe a recorded run; what its manifest does not have is taken from the plan.

    Args:
        plan: of the audit.
        manifest: of the recording.
        parties: number of parties that sent or could read a message.
        rounds: number of rounds with a reply.

    """
    training = plan.training
    run_by = "" if manifest.framework == "overheard" else f" of {manifest.framework}"
    model = manifest.model or f"not recorded, assumed to be {label(training.model)}"
    recipe = (
        f"a recipe not recorded, assumed to be {training.recipe}"
        if manifest.recipe is None
        else repr(manifest.recipe)
    )
    return (
        f"a recorded run{run_by} of {parties} parties over {rounds} rounds; model {model}; "
        f"clients trained by {recipe}; auxiliary examples from {plan.data.source.name}"
        + _known(plan.data.people)
        + _put_in(plan.data.candidates)
    )


def _put_in(candidates: Candidates | None) -> str:
    if candidates is None or not candidates.are_canaries:
        return ""
    wrong = ", each with a wrong label" if candidates.canaries == "mislabelled" else ""
    return (
        f"; canaries were assigned at random, on average {candidates.members} per client and "
        f"{candidates.outsiders} held out{wrong}"
    )
