"""Small data sets of users, for expected values worked out by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import strategies as st

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset

CLASSES = 3
TASK = Task((1,), ("a", "b", "c"))


def user_dataset(
    users: Sequence[int],
    labels: Sequence[int],
    *,
    times: Sequence[int] | None = None,
    records: Sequence[int] | None = None,
    inputs: Sequence[float] | None = None,
    test: Sequence[float] = (-1.0,),
    task: Task = TASK,
) -> Dataset:
    """Return examples of these users; the single input of each is its own number, from 0.

    They are in the order of time, unless times are given.
    """
    numbers = torch.arange(float(len(users))) if inputs is None else torch.tensor(inputs)
    return Dataset(
        Examples(numbers[:, None], torch.tensor(labels)),
        Examples(torch.tensor(test)[:, None], torch.zeros(len(test), dtype=torch.int64)),
        task,
        torch.tensor(users),
        times=torch.arange(len(users)) if times is None else torch.tensor(times),
        records=None if records is None else torch.tensor(records),
    )


@dataclass(frozen=True)
class _Record:
    user: int
    time: int
    labels: tuple[int, ...]


_RECORDS = st.builds(
    _Record,
    st.integers(0, 4),
    st.integers(0, 9),
    st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=3).map(tuple),
)


@st.composite
def records(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Draw the examples of records of one user and one time each, in any order.

    Each example is given as user, label, time and record.
    """
    drawn = draw(st.lists(_RECORDS, min_size=1, max_size=40))
    flat = [
        (record.user, label, record.time, number)
        for number, record in enumerate(drawn)
        for label in record.labels
    ]
    return draw(st.permutations(flat))


def dataset_of(examples: list[tuple[int, int, int, int]]) -> Dataset:
    """Return the data set of drawn records, outside the strategy, as type checks draw too."""
    users, labels, times, numbers = zip(*examples, strict=True)
    return user_dataset(users, labels, times=times, records=numbers)
