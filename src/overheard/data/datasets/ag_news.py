"""AG News: short news texts in four sections."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, final

import torch

from overheard.core.errors import DataError
from overheard.core.examples import Examples
from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.fetch import RemoteFile, fetch
from overheard.data.reading.folder import find_file, placement_hint
from overheard.data.reading.tables import integer_column, read_table, text_column
from overheard.data.reading.texts import TextSettings, tokenise_texts

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas

CLASS_NAMES = ("World", "Sports", "Business", "Sci/Tech")

PUBLISHED = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/"

TRAIN = RemoteFile(
    "train.csv",
    (PUBLISHED + "train.csv",),
    "76a0a2d2f92b286371fe4d4044640910a04a803fdd2538e0f3f29a5c6f6b672e",
)

TEST = RemoteFile(
    "test.csv",
    (PUBLISHED + "test.csv",),
    "521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
)

COLUMN_NAMES = ("label", "title", "description")
"""Columns of the published files, which have no header; labels there are 1 to 4."""


@final
@dataclass(frozen=True, slots=True)
class AgNews(DataSource):
    """Title and description of an article; label = section.

    120,000 training articles as published, or the subset in the data folder, whose sections
    differ in size; 7,600 test articles.

    Args:
        vocabulary: the number of words in the vocabulary.
        tokens: the number of words that are read of an article.

    """

    vocabulary: Positive = 20_000
    tokens: Positive = 40

    name: ClassVar[str] = "ag_news"
    source: ClassVar[str] = (
        "Zhang, Zhao, LeCun 2015, after the corpus of A. Gulli; non-commercial research use"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read `ag_news/*.parquet` or, without them, the published files."""
        train_file = "ag_news/ag_news_train.parquet"
        train_files = (train_file, "ag_news/ag_news_train_subset.parquet")
        test_file = "ag_news/ag_news_test.parquet"
        train_path = find_file(folder, train_files)
        test_path = find_file(folder, (test_file,))
        if train_path is not None and test_path is not None:
            train, test = read_table(train_path), read_table(test_path)
        else:
            missing = train_files[1:] if train_path is None else (test_file,)
            try:
                train_path = find_file(folder, (f"ag_news/{TRAIN.file_name}",)) or fetch(TRAIN)
                test_path = find_file(folder, (f"ag_news/{TEST.file_name}",)) or fetch(TEST)
            except DataError as failure:
                raise DataError(f"{failure}; {placement_hint(folder, missing)}") from failure
            train, test = _read_published(train_path), _read_published(test_path)
        texts = tokenise_texts(
            train_path,
            text_column(train_path, train, "text"),
            text_column(test_path, test, "text"),
            TextSettings(self.vocabulary, self.tokens),
        )
        classes = len(CLASS_NAMES)
        return Dataset(
            Examples(
                texts.train,
                torch.from_numpy(integer_column(train_path, train, "label", classes)),
            ),
            Examples(
                texts.test, torch.from_numpy(integer_column(test_path, test, "label", classes))
            ),
            Task((self.tokens,), CLASS_NAMES, texts.vocabulary),
            token_words=texts.words,
        )


def _read_published(path: Path) -> "pandas.DataFrame":
    import pandas as pd

    table = read_table(path, column_names=COLUMN_NAMES)
    numbers = integer_column(path, table, "label", len(CLASS_NAMES) + 1)
    titles, bodies = text_column(path, table, "title"), text_column(path, table, "description")
    texts = [f"{title} {body}" for title, body in zip(titles, bodies, strict=True)]
    return pd.DataFrame({"text": texts, "label": numbers - 1})
