"""The images that no client holds, as the attacker's data set in an audit."""

from digits_app.task import CLIENT_IMAGES, digits
from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset

SPARE = 250
"""Number of the 300 images for the training part; the rest are the test part."""


def nobodys() -> Dataset:
    """Return the images that no client holds."""
    inputs, labels = (part[CLIENT_IMAGES:] for part in digits())
    return Dataset(
        Examples(inputs[:SPARE], labels[:SPARE]),
        Examples(inputs[SPARE:], labels[SPARE:]),
        Task((1, 8, 8), tuple("0123456789")),
    )
