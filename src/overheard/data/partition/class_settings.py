"""Settings of a partition that mean classes, and data without classes."""

from overheard.core.errors import PlanError
from overheard.core.split import Split
from overheard.core.task import Task
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import Schedule


def refuse_classes_in_settings(
    task: Task,
    split: Split | None,
    auxiliary_per_class: int | None,
    schedule: Schedule,
    known_users: KnownUserSettings | None,
    candidates: CandidateSettings | None,
) -> None:
    """Check that no setting means classes if examples have none.

    Raises:
        PlanError: naming all such settings, each with its mend.

    """
    if task.has_classes:
        return
    problems = []
    if split is not None and split.needs_classes:
        problems.append(
            f"split {split.name} deals classes to clients: choose iid, or by_user if the data "
            "name users"
        )
    if auxiliary_per_class:
        problems.append("auxiliary_per_class counts by class: set auxiliary instead")
    if any(one.shares is not None or one.weights is not None for one in schedule.shifts):
        problems.append(
            "shifts by shares or weights change the classes of a client: shift by distortion "
            "or new_user"
        )
    if known_users is not None and known_users.prior == "profile":
        problems.append("people.prior 'profile' is one profile per class: choose 'random'")
    if known_users is not None and known_users.per_label is not None:
        problems.append("people.per_label counts by class: leave it out")
    if candidates is not None and candidates.canaries == "mislabelled":
        problems.append("mislabelled canaries have another class: set canaries = 'labelled'")
    if problems:
        kind = task.kind.replace("_", "-")
        raise PlanError(f"data: a {kind} task has no classes, but " + "; ".join(problems))
