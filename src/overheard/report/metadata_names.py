"""Headings of the kinds of metadata, for the first page and for the annex."""

METADATA_NAMES = {
    "examples": "Numbers of examples",
    "metrics": "Figures of the training",
    "evaluations": "Evaluations",
    "config": "Settings",
    "times": "Times",
    "names": "Names of senders",
    "missing": "Missing updates",
}
"""Kinds by their name in `findings.metadata`."""
