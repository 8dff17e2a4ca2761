"""Who stands behind a target, as the ground truth has it."""

from overheard.core.errors import NeedsError
from overheard.core.parties import Party
from overheard.core.truth import GroundTruth


def true_user(truth: GroundTruth, target: Party) -> str:
    """Who a target is.

    Raises:
        NeedsError: if the truth does not say.

    """
    if target not in truth.users:
        raise NeedsError(
            f"who {target} is, the ground truth does not say: give the run's clients users "
            "(data.people in a plan, `users` in the truth of a recording), or ask another "
            "question"
        )
    return truth.users[target]
