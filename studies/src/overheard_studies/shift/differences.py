"""The setting of the shift paper's experiments, and what the paper does not say."""

from overheard_studies.shift.scenarios import BATCH_SIZE, ShiftScenario

COMMON_DIFFERENCES = (
    "The paper gives the networks, the rounds, the round of the shift, the sizes of clients "
    "and Adam's rate (1e-4, for the centralized model; used for the federation too). It does "
    f"not give the batch size (here: {BATCH_SIZE}), the length of the trend (here: the five "
    "rounds "
    "before). Nor does it give the examples for validation and representations (here: the "
    "attacker's auxiliary examples, 100 of them for representations). It mentions no pooling "
    "layer, but without one its network for images would have 4.7 instead of 1.2 million "
    "parameters. Rounds are numbered from 0, so the paper's round 11 is round 10 here. Adam "
    "starts with new state in every round. At the round of the shift the shifting clients "
    "exchange all their examples for fresh ones. Odd labels become fewer and even ones more "
    "by the same factors, whatever was held before; nothing is exchanged earlier. The "
    "Procrustes distance is taken between parts of norm 1, so it is a function of the cosine. "
    "The central moment discrepancy is not scaled, as printed in the paper. The control is "
    "Overheard's: the same run up to the shift, at which as many examples are exchanged for "
    "fresh ones with the same label distribution. The paper has no control, so what it reads "
    "from its plots may be an effect of the exchange. Divergences are reported on the "
    "measure's own scale and in standard errors of its trend. Intervals are Student's over "
    "runs, as the runs are too few for a bootstrap; there are six runs instead of the paper's "
    "three. The plots print no values, so the paper's sentences are listed instead, with "
    "whether each of them holds here."
)

CENTRALISED = (
    "The centralized model is a federation of one client that trains one epoch per round and "
    "is observed by the server. The steps are the same, except that Adam's running means "
    "start anew with every epoch; in the paper they continue."
)


def common_differences(scenario: ShiftScenario) -> str:
    """Describe the differences from the paper for a data set."""
    return f"{COMMON_DIFFERENCES} {describe_data_budget(scenario)}"


def describe_data_budget(scenario: ShiftScenario) -> str:
    """Describe how many exchanges the data allow, and how long a full run takes."""
    held = 2 * scenario.full.examples[2]
    spare = scenario.training_examples - scenario.full.auxiliary - held
    return (
        f"{scenario.name} has {scenario.training_examples:,} training examples. The attacker "
        "validates with "
        f"{scenario.full.auxiliary:,} of them, and two clients hold {held:,}. This is enough "
        f"for {spare // held} exchanges of all that both hold; the runs make half an exchange. "
        "On two cores all runs of one setting at full size take about "
        f"{format_hours(scenario.hours)}. Those of ten clients write "
        f"{scenario.disk_gigabytes:g} GB of "
        "transcripts. Interrupted runs resume where they stopped."
    )


def format_hours(count: float) -> str:
    """Format a time in words.

    >>> format_hours(0.1), format_hours(1.0), format_hours(2.4)
    ('6 minutes', '1 hour', '2.4 hours')
    """
    if count < 1:
        return f"{60 * count:.0f} minutes"
    return f"{count:g} hour" + ("" if count == 1 else "s")
