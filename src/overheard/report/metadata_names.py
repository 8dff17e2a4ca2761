"""Headings of the kinds of metadata, for the first page and for the annex."""

METADATA_NAMES = {
    "labels": "Numbers of examples of each class",
    "examples": "Numbers of examples",
    "metrics": "Figures of the training",
    "evaluations": "Evaluations",
    "config": "Settings",
    "times": "Times",
    "names": "Names of senders",
    "texts": "Texts",
    "unstored": "Replies that are not stored",
    "absent": "Tensors that replies lack",
    "missing": "Missing updates",
}
"""Kinds by their name in `findings.metadata`."""
