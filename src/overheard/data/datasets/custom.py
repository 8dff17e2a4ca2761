"""Custom data: a file, or the result of a function."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Le

from overheard.core.custom_code.builder_arguments import Argument
from overheard.core.custom_code.reference import OutsideName
from overheard.core.errors import DataError
from overheard.core.settings import NotNegative, Positive
from overheard.core.task import TaskKind
from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.custom_data import load_custom_data
from overheard.data.reading.custom_table import Spellings, TableSettings
from overheard.data.reading.formats.arrow_folder import (
    is_arrow_folder,
    refuse_several_datasets,
)
from overheard.data.reading.formats.image_folder import Channels, ImageSettings
from overheard.data.reading.formats.saved_images import has_images
from overheard.data.reading.scales import Scale
from overheard.data.reading.table_inputs import Decimals, InputSettings
from overheard.data.reading.texts import TextSettings
from overheard.data.reading.token_data import load_tokens
from overheard.data.reading.token_rows import TokenSettings

MAX_HEADER_LINES = 2
"""The most lines with names of columns."""

MAX_SIDE = 4096
"""The largest height and width of images, in pixels."""

UNREAD_OF_TOKENS = ("user", "time", "attributes", "more_labels")
"""Settings that are not read where inputs are token ids."""


@final
@dataclass(frozen=True, slots=True)
class Own(DataSource):
    """Your own file (.npz, .csv, .parquet, LEAF's .json, ...), folder of images, or function.

    Texts of a network with a vocabulary of its own are token ids: set `token_ids`.

    Args:
        reference: a path relative to the working directory: of a file, of a folder with LEAF's
            .json files, or of one with a folder of images (.png, .jpg) for each class, as
            ImageFolder reads it; or "package.module:function", a
            function without arguments that returns a `Dataset`, or inputs and labels as a
            `TensorDataset` or a tuple, or a table: of pandas, of Arrow, a `Dataset` of
            datasets, or a `FederatedDataset` of flwr-datasets with partitions as users. It is
            run, so name only functions that you trust.
        label: the column of the labels in a table.
        user: the column of the users; None = unknown.
        text: the column of the texts to learn from; None = all other columns are inputs, as
            numbers and categories.
        time: the column of the times, as numbers or as dates such as 2004-08-02; never an
            input. None = unknown.
        attributes: columns of sensitive attributes of the users, each with one value per user;
            never inputs.
        vocabulary: the number of words in the vocabulary of a text column.
        tokens: the number of words that are read of a text.
        task: what a table's labels are. "classification": names or numbers of classes.
            "multi_label": columns of 0 and 1, one for each label that may apply. "regression":
            columns of numbers to predict, which are standardised. A function and arrays show it
            by the form of their labels: names or whole numbers, a row of 0 and 1, or real
            numbers, which are taken as they are. With "regression", whole numbers of an .npz
            are numbers to predict.
        more_labels: further columns of labels, for "multi_label" and "regression".
        scale: how numbers of a file become inputs; take what the run's clients do. "by_255":
            divided by 255. "min_max": from 0 to 1. "as_written": as they are. "standardised",
            and omitted: minus the mean, over the deviation. Statistics are those of the
            training part.
        numbers: columns of a table that are inputs as numbers, whatever they look like; a cell
            that is no number is missing. Omitted: found out.
        categories: columns of a table that are inputs as categories, though they hold numbers.
            Omitted: found out.
        left_out: columns of a table that are no inputs, beside those that name or count rows.
        decimals: the decimal sign of a table, "dot" or "comma". Omitted: found out.
        header_lines: lines with names of columns in a .csv, 0 to 2. With 0, columns are named
            0, 1, 2, ...; with 2, the two names of a column are joined by a blank. Omitted: 1.
        spellings: what becomes of labels that differ by blanks, final dots or capitals alone:
            "merged" (one class) or "kept" (several). Omitted: they are refused.
        token_ids: the number of tokens of the network. Inputs are then token ids: of an `.npz`,
            of a function, of a folder that `datasets.Dataset.save_to_disk` wrote or, by
            `tokenizer`, of a table. Data without labels are for a language model. Omitted:
            inputs are no token ids.
        padding: the token after the end of a text. Omitted: that where the attention mask is 0,
            or 0.
        tokenizer: "package.module:function" that takes a text and returns its token ids, or
            takes nothing, or `arguments`, and returns a tokenizer. It is run. Omitted: the data
            have token ids.
        arguments: what the function of `tokenizer` takes, as the arguments of a custom model.
            Omitted: nothing.
        image_side: height and width in pixels. Images of a folder are scaled to it, and rows of
            numbers of LEAF become images of it. Omitted: images of a folder have one size, and
            rows stay rows.
        channels: of the images of a folder: 3 = colours, as ImageFolder makes of grey ones,
            too; 1 = grey. Omitted: 1 if all files are grey.
        candidates: a file of the same kind with records whose membership in a recorded run is
            asked: x and y, or the same columns, and `owner` (a client, or none) or `member` (1
            or 0). Omitted: no list.

    """

    reference: OutsideName
    label: str = "label"
    user: str | None = None
    text: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] = ()
    vocabulary: Positive = 20_000
    tokens: Positive = 40
    task: TaskKind = "classification"
    more_labels: tuple[str, ...] = ()
    scale: Scale | None = None
    numbers: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    left_out: tuple[str, ...] | None = None
    decimals: Decimals | None = None
    header_lines: Annotated[int, Ge(0), Le(MAX_HEADER_LINES)] | None = None
    spellings: Spellings | None = None
    token_ids: Positive | None = None
    padding: NotNegative | None = None
    tokenizer: OutsideName | None = None
    arguments: tuple[Argument, ...] | None = None
    candidates: OutsideName | None = None
    image_side: Annotated[int, Ge(1), Le(MAX_SIDE)] | None = None
    channels: Channels | None = None

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours, on your terms"

    def load(self, folder: Path | None) -> Dataset:
        """Read the file or call the function; the data folder is not used."""
        refuse_several_datasets(Path(self.reference))
        is_tokenised = (self.token_ids, self.tokenizer) != (None, None)
        is_saved = is_arrow_folder(self.reference) and not has_images(Path(self.reference))
        if is_tokenised or is_saved:
            self._refuse_unread()
            return load_tokens(
                self.reference,
                TokenSettings(
                    self.token_ids,
                    self.padding,
                    self.tokenizer,
                    self.tokens,
                    self.arguments or (),
                ),
                label=self.label,
                text=self.text,
                header_lines=1 if self.header_lines is None else self.header_lines,
                listed=self.candidates,
            )
        return load_custom_data(
            self.reference,
            label=self.label,
            user=self.user,
            text=self.text,
            time=self.time,
            attributes=self.attributes,
            task=self.task,
            more_labels=self.more_labels,
            listed=self.candidates,
            images=ImageSettings(self.image_side, self.channels),
            table=TableSettings(
                1 if self.header_lines is None else self.header_lines,
                self.spellings,
                InputSettings(
                    self.numbers or (),
                    self.categories or (),
                    self.left_out or (),
                    self.decimals,
                    self.scale or "standardised",
                ),
                TextSettings(self.vocabulary, self.tokens),
            ),
        )

    def _refuse_unread(self) -> None:
        """Refuse settings that say nothing of token ids, so that none is dropped unseen."""
        given = [one for one in UNREAD_OF_TOKENS if getattr(self, one)]
        if given:
            raise DataError(
                f"{self.reference}: {' and '.join(given)} cannot be set where inputs are token "
                "ids, as only texts and labels are read of them: leave out the setting"
            )
