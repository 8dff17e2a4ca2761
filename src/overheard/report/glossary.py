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
        "How much better than the uninformed guess an attack is, computed client by client. It "
        "is positive for an attack that is better, whether a higher or a lower score is.",
    ),
    Term(
        "95 % interval",
        "With five runs or more, the interval of the mean over further runs of the same kind "
        "(Student’s interval over the means of runs). With fewer runs, an interval over the "
        "clients or users of these runs, which says nothing of other runs. It ends where the "
        "range of its score ends, such as at 0 %.",
    ),
    Term(
        "Test, p-value",
        "A test asks whether claims have anything to do with their targets. It compares how "
        "well they fit with how well they would fit if other targets stood in their place, "
        "such as clients that hold the same data in another order. The p-value is the share of "
        "such pairings that fit as well. It is adjusted for the number of attacks, so the best "
        "of many has no advantage (Westfall and Young 1993). What targets have in common fits "
        "all pairings alike, and is no leak in this sense. Label shares of a simulation are "
        "compared with partitions drawn anew instead. There, to know the labels of all clients "
        "together counts as a leak too.",
    ),
    Term(
        "Margin",
        "The smallest gain over guessing that matters, stated by the plan or, by default, by "
        "the question.",
    ),
    Term(
        "Verdicts",
        "“Leaks”: the p-value of an attack is 0.025 or less, and it gains over guessing. “No "
        "leak above the margin”: the upper end of the gain’s interval is below the margin for "
        "every attack. “Inconclusive”: neither was shown. “Nothing to read”: guessing errs by "
        "less than the margin. “Not enough to judge”: there are too few targets and runs for "
        "any p-value of 0.025, or there is no test.",
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
