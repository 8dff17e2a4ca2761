"""Adult: people of the 1994 census of the USA, labelled by income above 50,000 dollars."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, final

import torch

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.fetch import RemoteFile, fetch
from overheard.data.reading.folder import find_file, placement_hint
from overheard.data.reading.tables import encode_columns, read_table, require_columns

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas

CLASS_NAMES = ("<=50K", ">50K")

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
)

INCOME, HOURS = "income", "hours_per_week"

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"

TRAIN = RemoteFile(
    "adult.data",
    (UCI + "adult.data",),
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)

TEST = RemoteFile(
    "adult.test",
    (UCI + "adult.test",),
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
)


@final
@dataclass(frozen=True, slots=True)
class Adult(DataSource):
    """32,561 training and 16,281 test examples, with 14 columns of numbers and categories.

    An unknown value, written `?`, is a category of its own.

    Args:
        task: "income": the label is whether a person earns more than 50,000 dollars.
            "hours_per_week": the hours that a person works are predicted from the other columns
            and the income (regression), in deviations from their mean.

    """

    task: Literal["income", "hours_per_week"] = "income"

    name: ClassVar[str] = "adult"
    source: ClassVar[str] = "Becker, Kohavi 1996, UCI Machine Learning Repository; CC BY 4.0"

    def load(self, folder: Path | None) -> Dataset:
        """Read `adult/adult_train.csv.gz` and `..._test.csv.gz`; otherwise UCI's files."""
        file_names = ("adult/adult_train.csv.gz", "adult/adult_test.csv.gz")
        stored = [find_file(folder, (file_name,)) for file_name in file_names]
        if stored[0] is not None and stored[1] is not None:
            return self._dataset(
                stored[0], read_table(stored[0]), stored[1], read_table(stored[1])
            )
        try:
            train = find_file(folder, (f"adult/{TRAIN.file_name}",)) or fetch(TRAIN)
            test = find_file(folder, (f"adult/{TEST.file_name}",)) or fetch(TEST)
        except DataError as failure:
            missing = [
                file_name
                for file_name, path in zip(file_names, stored, strict=True)
                if not path
            ]
            raise DataError(f"{failure}; {placement_hint(folder, missing)}") from failure
        column_names = (*COLUMNS, INCOME)
        # The first line of UCI's test file is not a row.
        return self._dataset(
            train,
            read_table(train, column_names=column_names),
            test,
            read_table(test, column_names=column_names, skipped_lines=1),
        )

    def _dataset(
        self,
        train_path: Path,
        train: "pandas.DataFrame",
        test_path: Path,
        test: "pandas.DataFrame",
    ) -> Dataset:
        for path, table in ((train_path, train), (test_path, test)):
            require_columns(path, table, (*COLUMNS, INCOME))
        label = INCOME if self.task == "income" else HOURS
        columns = [name for name in (*COLUMNS, INCOME) if name != label]
        if self.task == "hours_per_week":
            train, test = (
                table.assign(**{INCOME: _income(path, table).numpy()})
                for path, table in ((train_path, train), (test_path, test))
            )
        train_inputs = encode_columns(train_path, train[columns], train[columns])
        test_inputs = encode_columns(test_path, test[columns], train[columns])
        shape = (train_inputs.shape[1],)
        if self.task == "income":
            return Dataset(
                Examples(train_inputs, _income(train_path, train)),
                Examples(test_inputs, _income(test_path, test)),
                Task(shape, CLASS_NAMES),
            )
        return Dataset(
            without_classes(
                train_inputs, encode_columns(train_path, train[[HOURS]], train[[HOURS]])
            ),
            without_classes(
                test_inputs, encode_columns(test_path, test[[HOURS]], train[[HOURS]])
            ),
            Task(shape, (HOURS,), kind="regression"),
        )


def _income(path: Path, table: "pandas.DataFrame") -> torch.Tensor:
    # UCI's test file ends each label with a full stop.
    income = table[INCOME].astype(str).str.rstrip(".")
    if not income.isin(CLASS_NAMES).all():
        raise DataError(
            f"{path}: column '{INCOME}' must be {' or '.join(CLASS_NAMES)}: get a new copy"
        )
    return torch.tensor((income == CLASS_NAMES[1]).to_numpy(int))
