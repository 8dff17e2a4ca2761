"""One sentence on what was audited."""

from overheard.archive.manifest import Manifest
from overheard.data.partition.candidates import Candidates
from overheard.data.partition.people import People, PriorKind
from overheard.data.partition.schedule import DataShift
from overheard.plans.part import label
from overheard.plans.plan import Plan

_PRIORS: dict[PriorKind, str] = {
    "random": "a random {share} of each one's records",
    "chronological": "the earlier {share} of each one's records",
    "chronological_within_labels": "the earlier {share} of each one's records of each label",
    "profile": "a random {share} of all records, sorted by label: a profile a label",
}


def subject_of_plan(plan: Plan) -> str:
    """What a simulated audit is about: data, clients, model, training."""
    data, training = plan.data, plan.training
    assert data.shared_out is not None
    split, (low, high) = data.shared_out.split, data.shared_out.sizes
    sizes = f"{low}" if low == high else f"{low} to {high}"
    if split.keeps_users:
        sizes = f"up to {high}"
    return (
        f"{data.clients} clients with {sizes} examples each of {data.source.name}, shared out "
        f"by {label(split)}; model {label(training.model)}; {training.rounds} rounds of "
        f"FedAvg, {training.epochs} local epoch{'s' if training.epochs > 1 else ''} of "
        f"{training.optimizer} at rate {training.rate:g} with batches of {training.batch}"
        + "".join(map(_told, data.shifts))
        + _known(data.people)
        + _put_in(data.candidates)
    )


def _told(shift: DataShift) -> str:
    verb = "are exchanged" if shift.is_exchange else "shift"
    last = shift.last
    when = f"round {shift.round}" if shift.over == 1 else f"rounds {shift.round} to {last}"
    return f"; the data of client {shift.client} {verb} in {when}"


def _known(people: People | None) -> str:
    if people is None:
        return ""
    told = _PRIORS[people.prior].format(share=f"{people.share:.0%}")
    if people.records is not None:
        told += f", {people.records} a user at most"
    if people.shadow_devices:
        told += ", each as a shadow device in the run"
    if people.per_label is not None:
        told += f"; users are label-matched, {people.per_label} private examples a label"
    if people.unseen:
        told += f"; of {people.unseen} clients it has nothing"
    if people.holdout:
        told += f"; {people.holdout} users that it has records of take no part, as it knows"
    return f"; clients stand for users, and the attacker has {told}"


def subject_of_recording(plan: Plan, manifest: Manifest, parties: int, rounds: int) -> str:
    """What the audit of a recording is about; what it does not tell is the plan's word.

    Args:
        plan: what attackers were given.
        manifest: what the recording tells of itself.
        parties: how many sent or could read something.
        rounds: in how many of them somebody answered.

    """
    training = plan.training
    run_by = "" if manifest.framework == "overheard" else f" of {manifest.framework}"
    model = manifest.model or f"not told, taken to be {label(training.model)}"
    recipe = (
        f"a recipe not told, taken to be {training.recipe}"
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
        f"; a die put {candidates.members} canaries into each client and "
        f"{candidates.outsiders} nowhere, on average{wrong}"
    )
