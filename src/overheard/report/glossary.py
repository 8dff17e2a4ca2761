"""The terms that every report explains, whatever its questions."""

from overheard.drawing.sections import Term

TERMS = (
    Term(
        "Arm",
        "One variant of the federation: the same data and training, with its own defenses or "
        "none.",
    ),
    Term(
        "Observer",
        "The party whose view an attack is given. The view contains the messages that the "
        "party can read, and nothing else. Several observers pool their views.",
    ),
    Term(
        "Guessing, uninformed guess",
        "A baseline that never sees the run, such as “all classes equally frequent”. If there "
        "are several, the best one counts.",
    ),
    Term(
        "Informed guess",
        "A baseline that knows a part of the ground truth, such as which classes a client "
        "holds at all. An attack can reveal a leak without beating it; a strong attack does "
        "beat it.",
    ),
    Term(
        "Gain",
        "How much better than the uninformed guess an attack is, computed client by client. A "
        "positive gain means a leak, whether a higher or a lower score is better.",
    ),
    Term(
        "95 % interval",
        "A bootstrap confidence interval: runs, and clients within a run, are resampled with "
        "replacement. “Leaks” means that the whole interval of the gain lies above 0. “Not "
        "significant” means that it contains 0. “No better than guessing” means that no part "
        "of it lies above 0.",
    ),
)
"""Terms for leakage."""

COST_TERMS = (
    Term(
        "Sent",
        "The bytes of all tensors in the messages of one run, each number at its own width, "
        "mean over runs. What the server sends counts once for each client that can read it. "
        "Metadata is not counted. Compression, or leaving out zeros, would need fewer bytes. "
        "Under secure aggregation each client sends a masked message as large as the sum.",
    ),
    Term(
        "Time, CPU time",
        "How long the training of one run took, with all clients on one machine, mean over "
        "runs. Runs that were trained together share the time evenly. For an interrupted run, "
        "the unfinished round is not counted. CPU time adds up all busy cores. Both compare "
        "arms of one audit; over a network, sending takes additional time.",
    ),
    Term(
        "Defenses compared",
        "A defense is said to help only if the intervals of the best attack with and without "
        "it do not overlap. Its cost is the loss in accuracy of the last global model, in "
        "percentage points below the arm without defenses.",
    ),
)
"""Terms for the cost of an arm and the effect of its defenses."""
