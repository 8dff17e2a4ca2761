"""The terms that every report needs, whatever was asked."""

from overheard.drawing.sections import Term

TERMS = (
    Term(
        "Arm",
        "One variant of the federation: the same data and training, with its own defenses or "
        "none.",
    ),
    Term(
        "Observer",
        "Who listens. It gets what it can read in the run and nothing else; several observers "
        "pool what they read.",
    ),
    Term(
        "Guessing, blind guess",
        "What one gets who heard nothing of the run, such as “all classes alike”. Where there "
        "are several, the best one counts.",
    ),
    Term(
        "Told guess",
        "A guess that was told a part of the truth, such as which classes a client holds at "
        "all. No attack has to beat it; a strong one does.",
    ),
    Term(
        "Gain",
        "How much better than the blind guess an attack is, taken client by client, whichever "
        "direction of the score is better. Above 0 the run leaked.",
    ),
    Term(
        "95 % interval",
        "Found by drawing runs, and clients within a run, again and again with replacement "
        "(bootstrap). “Leaks” means that the whole interval of the gain lies above 0; “not "
        "told apart from guessing”, that it holds 0; “no better than guessing”, that none of "
        "it lies above 0.",
    ),
)
"""On whatever is read."""

COST_TERMS = (
    Term(
        "Sent",
        "The bytes of all tensors in the messages of one run, every number at its own width, "
        "mean over runs; what the server sends counts once for each client that can read it. "
        "What travels beside the tensors is left out, and a sender that compresses, or leaves "
        "out the numbers that are 0, needs less. Behind secure aggregation each client sends a "
        "masked message as large as the sum.",
    ),
    Term(
        "Time, time of cores",
        "How long the training of one run took here, all its clients on this machine one after "
        "another or together, mean over runs; runs that were trained side by side share it "
        "evenly, and of a run that was stopped the round it was in is not counted. The time of "
        "cores adds up all that were busy. It compares arms of one audit; over a network, what "
        "is sent takes time besides.",
    ),
    Term(
        "Defenses compared",
        "A defense is said to help only where the intervals of the best attack with it and "
        "without it do not overlap. Its cost is the accuracy of the last global model, in "
        "points below the arm without defenses.",
    ),
)
"""On what an arm costs, and on what its defenses change."""
