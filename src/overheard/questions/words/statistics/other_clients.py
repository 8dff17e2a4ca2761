"""What claims about words score if held against the words of other clients."""

from collections.abc import Sequence

import numpy as np

from overheard.findings.finding import Finding

OTHER_CLIENTS = "another client's words"
"""The name of the mean score against other clients' words."""


def mean_against_others(findings: Sequence[Finding]) -> float | None:
    """Return the mean headline score of claims against all other clients; None = unknown.

    `Finding.fits` has the score against the target's words, and then those of every
    client, the target included.
    """
    means = [
        (sum(fits[1:]) - fits[0]) / (len(fits) - 2)
        for fits in (one.fits for one in findings)
        if len(fits) > 2
    ]
    return float(np.mean(means)) if means else None
