"""The images that no client holds, as an attacker's data set for an audit."""

from digits_app.task import HELD, digits
from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset

SPARE = 250
"""Of the 300 images so many are drawn from; the rest are to test on."""


def nobodys() -> Dataset:
    """Give the images after those that clients hold."""
    inputs, labels = (part[HELD:] for part in digits())
    return Dataset(
        Examples(inputs[:SPARE], labels[:SPARE]),
        Examples(inputs[SPARE:], labels[SPARE:]),
        Task((1, 8, 8), tuple("0123456789")),
    )
