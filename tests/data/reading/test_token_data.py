"""Texts as token ids, from arrays, tables, functions and Arrow folders."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.datasets.custom import Own
from overheard.data.reading.token_data import load_tokens, tokens_of_returned
from overheard.data.reading.token_rows import TokenSettings

IDS = [[5, 3], [4, 4, 2], [6], [5, 5, 5], [2, 3], [7, 1, 1]]
PADDED = [[*row, *[0] * (3 - len(row))] for row in IDS]


def words(text: str) -> list[int]:
    """Return the length of each word."""
    return [len(word) for word in text.split()]


def tokenizer() -> object:
    """Return what a tokenizer of Hugging Face returns for a text."""
    return lambda text: {"input_ids": words(text), "attention_mask": [1] * len(words(text))}


def ids_alone() -> torch.Tensor:
    """Return token ids of texts without labels."""
    return torch.tensor(PADDED)


def all_rows(source: Own) -> list[list[int]]:
    data = source.load(None)
    return sorted([*data.train.inputs.tolist(), *data.test.inputs.tolist()])


def name_files(folder: Path, *names: object) -> None:
    """Name the files of a folder of datasets as its state.json does."""
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))


def save_folder(folder: Path, *tables: pa.Table, compression: str | None = None) -> Path:
    """Save tables as the files of a folder of datasets."""
    folder.mkdir(exist_ok=True)
    name_files(folder, *(f"data-{number}.arrow" for number in range(len(tables))))
    options = pa.ipc.IpcWriteOptions(compression=compression)
    for number, table in enumerate(tables):
        with (
            pa.OSFile(str(folder / f"data-{number}.arrow"), "wb") as file,
            pa.ipc.new_stream(file, table.schema, options=options) as writer,
        ):
            writer.write_table(table)
    return folder


def test_texts_of_a_table_are_encoded_by_the_function_of_the_app(tmp_path: Path) -> None:
    path = tmp_path / "spare.csv"
    path.write_text("body,board\n" + "a bcd,x\nabcd a,y\n" * 5)
    for encoder in ("words", "tokenizer"):
        source = Own(
            str(path),
            label="board",
            text="body",
            token_ids=9,
            tokenizer=f"{__name__}:{encoder}",
        )
        task = source.load(None).task
        assert (task.shape, task.vocabulary, task.class_names) == ((2,), 9, ("x", "y"))
        assert all_rows(source) == [[1, 3]] * 5 + [[4, 1]] * 5


def test_a_table_without_labels_is_for_a_language_model(tmp_path: Path) -> None:
    path = tmp_path / "spare.csv"
    path.write_text("body\n" + "a bcd\nabcd a\n" * 5)
    source = Own(str(path), text="body", token_ids=9, tokenizer=f"{__name__}:words")
    assert source.load(None).task.kind == "language_modeling"


def short_words(run_config: dict[str, int]) -> object:
    """Return a tokenizer that reads a few letters of each word."""
    return lambda text: [min(len(word), run_config["letters"]) for word in text.split()]


def test_lines_of_json_are_read_by_a_tokenizer_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "spare.jsonl"
    path.write_text('{"text": "a bcd"}\n{"text": "abcd a"}\n' * 5)
    source = Own(
        str(path),
        token_ids=9,
        tokenizer=f"{__name__}:short_words",
        arguments=(("letters", 2),),
    )
    assert source.load(None).task.kind == "language_modeling"
    assert all_rows(source) == [[1, 2]] * 5 + [[2, 1]] * 5


def lines_of_json(path: Path, *labels: str) -> Own:
    path.write_text("".join(f'{{"text": "a", "label": {one}}}\n' for one in labels * 3))
    return Own(str(path), text="text", token_ids=9, tokenizer=f"{__name__}:words")


def test_labels_of_lines_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    source = lines_of_json(tmp_path / "spare.jsonl", *map(str, range(12)))
    assert source.load(None).task.class_names == tuple(map(str, range(12)))


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (("0", "1", "null"), "some lines have a 'label' and others none"),
        (("0", "[1]"), "it has list in place of a label"),
        (("0", "NaN"), "NaN"),
        (("0", "1e400"), "beyond all numbers"),
        (("0", '1, "label": 2'), "a key comes twice"),
    ],
)
def test_a_label_that_is_missing_or_none_is_told(
    tmp_path: Path, labels: tuple[str, ...], told: str
) -> None:
    with pytest.raises(DataError, match=told):
        lines_of_json(tmp_path / "spare.jsonl", *labels).load(None)


def test_a_million_lines_are_refused_before_they_are_parsed(tmp_path: Path) -> None:
    source = lines_of_json(tmp_path / "spare.jsonl", "0", "1")
    (tmp_path / "spare.jsonl").write_text("{}\n" * 10**6)
    with pytest.raises(DataError, match="more than 250,000 lines: give a part of them"):
        source.load(None)


def test_a_line_without_a_text_is_told(tmp_path: Path) -> None:
    source = lines_of_json(tmp_path / "spare.jsonl", "0", "1")
    (tmp_path / "spare.jsonl").write_text('{"text": null, "label": 0}\n')
    with pytest.raises(DataError, match="it has NoneType in place of a text"):
        source.load(None)


def test_token_ids_alone_are_for_a_language_model() -> None:
    data = load_tokens(f"{__name__}:ids_alone", TokenSettings(9))
    assert data.task.kind == "language_modeling"
    assert data.task.vocabulary == 9
    assert data.train.float_labels is not None


def test_arrays_of_token_ids_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "spare.npz"
    np.savez(path, x=np.array(PADDED), y=np.arange(6) % 2)
    assert all_rows(Own(str(path), token_ids=8)) == sorted(PADDED)


LISTS = {
    "lines": '{"text": "a bcd ef", "owner": 3}\n{"text": "abcd", "owner": null}\n',
    "table": "text,owner\na bcd ef,3\nabcd,none\n",
}


@pytest.mark.parametrize("kind", LISTS)
def test_candidate_texts_are_encoded_as_the_data_are(kind: str, tmp_path: Path) -> None:
    data, listed = tmp_path / "spare.jsonl", tmp_path / f"records.{kind}"
    listed = listed.with_suffix(".jsonl" if kind == "lines" else ".csv")
    data.write_text('{"text": "a bcd"}\n{"text": "abcd a"}\n' * 5)
    listed.write_text(LISTS[kind])
    source = Own(
        str(data),
        text="text",
        token_ids=9,
        tokenizer=f"{__name__}:words",
        candidates=str(listed),
    )
    dataset = source.load(None)
    assert dataset.listed is not None
    # The longest text is a candidate, so all texts are as long.
    assert dataset.listed.records.inputs.tolist() == [[1, 3, 2], [4, 0, 0]]
    assert dataset.listed.members == {"client/3": (0,)}
    assert dataset.task.shape == (3,)
    assert dataset.train.inputs.shape[1] == 3


def test_candidate_ids_have_the_classes_of_the_data_by_name(tmp_path: Path) -> None:
    folder = save_folder(tmp_path / "spare", pa.table({"input_ids": IDS, "label": [0, 1] * 3}))
    features = {"label": {"names": ["ham", "spam"]}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    path = tmp_path / "records.npz"
    np.savez(path, x=[[1, 2], [3, 4]], y=[1, 0], member=[1, 0])
    listed = Own(str(folder), token_ids=9, candidates=str(path)).load(None).listed
    assert listed is not None
    assert listed.records.labels.tolist() == [1, 0]
    assert not listed.are_owners_known

    table = pa.table({"input_ids": [[1], [2]], "label": [0, 1], "owner": ["client/0", ""]})
    named = save_folder(tmp_path / "records", table)
    features = {"label": {"names": ["spam", "ham"]}}
    (named / "dataset_info.json").write_text(json.dumps({"features": features}))
    listed = Own(str(folder), token_ids=9, candidates=str(named)).load(None).listed
    assert listed is not None
    assert listed.records.labels.tolist() == [1, 0]
    assert listed.members == {"client/0": (0,)}


def test_candidate_texts_without_owners_or_of_other_classes_are_refused(tmp_path: Path) -> None:
    data, listed = tmp_path / "spare.csv", tmp_path / "records.csv"
    data.write_text("text,label\n" + "a bcd,x\nabcd a,y\n" * 5)
    source = Own(
        str(data),
        text="text",
        token_ids=9,
        tokenizer=f"{__name__}:words",
        candidates=str(listed),
    )
    listed.write_text("text,label\na,x\nbcd,y\n")
    with pytest.raises(DataError, match="with a column 'owner'"):
        source.load(None)
    listed.write_text("text,label,member\na,x,1\nbcd,z,0\n")
    with pytest.raises(DataError, match="'z', which is no class of the data"):
        source.load(None)
    listed.write_text("text,member\na,1\nbcd,0\n")
    with pytest.raises(DataError, match="need labels"):
        source.load(None)


def test_a_setting_that_token_ids_have_no_place_for_is_refused(tmp_path: Path) -> None:
    source = Own(str(tmp_path / "spare.npz"), user="ward", time="day", token_ids=8)
    with pytest.raises(DataError, match="user and time cannot be set"):
        source.load(None)


def test_ids_beyond_the_vocabulary_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "spare.npz"
    np.savez(path, x=np.array(PADDED), y=np.arange(6) % 2)
    with pytest.raises(DataError, match=r"from 0 to 7, and the network has 7 tokens"):
        Own(str(path), token_ids=7).load(None)


def test_the_padding_is_that_where_the_mask_is_0() -> None:
    mask = [[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1]]
    ids = [[token or 9 for token in row] for row in PADDED]
    returned = {"input_ids": ids, "attention_mask": mask, "label": [0, 1, 0, 1, 0, 1]}
    data = tokens_of_returned(returned, "my.data:spare", Seed(0))
    assert data is not None
    assert data.reading.notes == ("The padding of the texts is token 9.",)
    assert data.task.vocabulary == 10


def test_pairs_of_texts_are_refused() -> None:
    returned = {"input_ids": PADDED, "token_type_ids": [[0, 1, 1]] * 6, "label": [0, 1] * 3}
    with pytest.raises(DataError, match="token_type_ids are not all 0"):
        tokens_of_returned(returned, "my.data:spare", Seed(0))


def test_a_folder_of_datasets_is_read_with_the_names_of_its_classes(tmp_path: Path) -> None:
    table = pa.table({"input_ids": IDS, "label": [0, 1, 0, 1, 0, 1]})
    save_folder(tmp_path, table)
    info = {"features": {"label": {"names": ["ham", "spam"], "_type": "ClassLabel"}}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))

    source = Own(str(tmp_path), token_ids=8)
    assert source.load(None).task.class_names == ("ham", "spam")
    assert all_rows(source) == sorted(PADDED)


def test_a_folder_without_token_ids_says_what_is_needed(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b"], "label": [0, 1]})
    save_folder(tmp_path, table)
    with pytest.raises(DataError, match="--text COLUMN --tokenizer "):
        Own(str(tmp_path)).load(None)


def test_offsets_beyond_the_numbers_of_a_folder_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2**30, 3], "int32").tobytes())
    rows = pa.Array.from_buffers(
        pa.list_(pa.int64()), 2, [None, offsets], children=[pa.array([1, 2, 3])]
    )
    table = pa.Table.from_arrays([rows], ["input_ids"])
    save_folder(tmp_path, table)
    with pytest.raises(DataError, match="cannot be read"):
        load_tokens(str(tmp_path), TokenSettings())
    (tmp_path / "data-0.arrow").unlink()
    os.mkfifo(tmp_path / "data-0.arrow")
    with pytest.raises(DataError, match="no regular file"):
        load_tokens(str(tmp_path), TokenSettings())


LABELS = [0, 1, 0, 1, 0, 1]

VIEWS = pa.array(["a"] * 6, pa.string_view())
"""Many views may be of one long text, which takes as long to check each time."""

RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([6], pa.int32()), pa.array([1]))


def test_columns_and_batches_that_take_more_memory_than_bytes_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fortieth of the memory is allowed here, so that small files are too large."""
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", "100MB")
    wide = {f"c{number}": pa.nulls(1) for number in range(3000)}
    folder = save_folder(tmp_path / "wide", pa.table(wide))
    with pytest.raises(DataError, match=r"the header takes .* --max-unpacked"):
        load_tokens(str(folder), TokenSettings())

    # 6,000 batches of 10 arrays: 66,000 times 512 bytes, of 25 MB for a table.
    batch = pa.record_batch([pa.nulls(0)] * 10, names=list("abcdefghij"))
    folder = save_folder(tmp_path / "batches")
    name_files(folder, "data-0.arrow")
    with pa.ipc.new_stream(str(folder / "data-0.arrow"), batch.schema) as file:
        for _ in range(6000):
            file.write_batch(batch)
    with pytest.raises(DataError, match=r"the table of 0 rows takes .* --max-unpacked"):
        load_tokens(str(folder), TokenSettings())


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"input_ids": pa.nulls(10**9)}, "table of 1000000000 rows takes .*--max-unpacked"),
        ({"input_ids": IDS, "label": [0, 1, 0, 1, 0, 10**9]}, "must have 2 to 1000: number"),
        ({"input_ids": IDS, "label": ["a", "b"] * 3}, r"class_encode_column\(\"label\"\)"),
        ({"input_ids": IDS, "label": [0, None] * 3}, "label has 3 empty values"),
        ({"input_ids": IDS, "label": [{"a": 1}] * 6}, "must have whole numbers"),
        ({"input_ids": IDS, "token_type_ids": [None] * 6}, "token_type_ids has values of type"),
        ({"input_ids": IDS, "token_type_ids": [[0], None] * 3}, "has 3 empty values"),
        ({"input_ids": IDS, "attention_mask": [[1]] * 6}, "their lengths differ"),
        ({"input_ids": [[1, 2**62]] * 6}, "may have 1048576, whose embedding fits memory"),
        ({"input_ids": [[1.5, 2.0]] * 6}, "must have a list of whole numbers"),
        ({"input_ids": [[[1], [2]]] * 6}, "must have a list of whole numbers"),
        ({"input_ids": pa.array([], pa.list_(pa.int64()))}, "there are no texts"),
        ({"input_ids": IDS, "label": LABELS, "text": VIEWS}, "type string_view, which are not"),
        ({"input_ids": IDS, "label": RUNS}, "type run_end_encoded.*, which are not read"),
    ],
)
def test_columns_that_are_no_token_ids_or_labels_are_refused(
    tmp_path: Path, columns: dict[str, list[object]], told: str
) -> None:
    folder = save_folder(tmp_path, pa.table(columns))
    with pytest.raises(DataError, match=told):
        load_tokens(str(folder), TokenSettings())


def test_files_that_save_to_disk_does_not_write_are_refused(tmp_path: Path) -> None:
    table = pa.table({"input_ids": IDS, "label": LABELS})
    other = pa.table({"input_ids": IDS, "label": list(map(str, LABELS))})
    twice = pa.Table.from_arrays([table.column(0)] * 2, ["input_ids"] * 2)
    coded = pa.table({"input_ids": IDS, "a": pa.array(["x"] * 6).dictionary_encode()})
    linked = save_folder(tmp_path / "linked")
    save_folder(tmp_path / "outside", table)
    name_files(linked, "data.arrow")
    (linked / "data.arrow").symlink_to(tmp_path / "outside" / "data-0.arrow")
    for folder, told in (
        (save_folder(tmp_path / "two", table, other), "other columns, or other types"),
        (save_folder(tmp_path / "twice", twice), "has a column twice"),
        (save_folder(tmp_path / "packed", table, compression="zstd"), "without compression"),
        (save_folder(tmp_path / "coded", coded), "without compression and dictionaries"),
        (linked, "links to outside of its folder"),
    ):
        with pytest.raises(DataError, match=told):
            load_tokens(str(folder), TokenSettings())


def test_parts_of_a_dataset_are_read_as_one_table(tmp_path: Path) -> None:
    table = pa.table({"input_ids": IDS, "label": LABELS})
    folder = save_folder(tmp_path, table, table.slice(2, 2))
    assert all_rows(Own(str(folder), token_ids=8)) == sorted(PADDED + PADDED[2:4])


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["ham", "spam\x1b[2J"], "not a valid name"),
        (["ham", "ham"], "must be texts that differ"),
        ([{"a": 1}, None], "must be texts that differ"),
        ("hs", "must be texts that differ"),
        (["ham"], "a label is 1, but 1 classes have names"),
    ],
)
def test_names_of_classes_that_are_none_or_cannot_be_told_apart_are_refused(
    tmp_path: Path, names: object, told: str
) -> None:
    save_folder(tmp_path, pa.table({"input_ids": IDS, "label": LABELS}))
    info = {"features": {"label": {"names": names}}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    with pytest.raises(DataError, match=told):
        load_tokens(str(tmp_path), TokenSettings())


def test_features_that_are_damaged_or_lie_elsewhere_are_refused(tmp_path: Path) -> None:
    save_folder(tmp_path, pa.table({"input_ids": IDS, "label": LABELS}))
    info, outside = tmp_path / "dataset_info.json", tmp_path.parent / "outside.json"
    info.write_text('{"features": {"label": ')
    with pytest.raises(DataError, match=r"dataset_info\.json is damaged"):
        Own(str(tmp_path)).load(None)
    info.write_text('{"features": ["label"]}')
    with pytest.raises(DataError, match="must have an object of features"):
        Own(str(tmp_path)).load(None)
    info.unlink()
    outside.write_text("{}")
    info.symlink_to(outside)
    with pytest.raises(DataError, match="links to outside of its folder"):
        Own(str(tmp_path)).load(None)


def test_files_that_a_folder_does_not_name_are_not_read(tmp_path: Path) -> None:
    """`Dataset.map` leaves a file with other labels of the same texts beside them."""
    folder = save_folder(tmp_path, *[pa.table({"input_ids": IDS, "label": LABELS})] * 2)
    name_files(folder, "data-1.arrow")
    assert all_rows(Own(str(folder), token_ids=8)) == sorted(PADDED)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "must name .arrow files of its own folder"),
        (("../data-0.arrow",), "must name .arrow files of its own folder"),
        (("/etc/data.arrow",), "must name .arrow files of its own folder"),
        (("..\\data-0.arrow",), "must name .arrow files of its own folder"),
        (("\x1b[2J.arrow",), "must name .arrow files of its own folder"),
        ((f"{'x' * 300}.arrow",), "must name .arrow files of its own folder"),
        ((7,), "must name .arrow files of its own folder"),
        (("state.json",), "must name .arrow files of its own folder"),
        (("data-0.arrow",) * 2, "names a file twice"),
        (("data-9.arrow",), "data-9.arrow cannot be read"),
    ],
)
def test_a_folder_names_each_file_once_and_none_outside(
    tmp_path: Path, names: tuple[object, ...], told: str
) -> None:
    table = pa.table({"input_ids": IDS, "label": LABELS})
    save_folder(tmp_path, table)  # what "../data-0.arrow" would be
    folder = save_folder(tmp_path / "saved", table)
    name_files(folder, *names)
    with pytest.raises(DataError, match=told):
        load_tokens(str(folder), TokenSettings())


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"token_type_ids": [None] * 6}, "token_type_ids must be whole numbers"),
        ({"attention_mask": [[1]] * 6}, "their lengths differ"),
        ({"input_ids": [[0.5]] * 6}, "input_ids must be whole numbers"),
        ({"input_ids": [[2**64]] * 6}, "input_ids must be whole numbers"),
        ({"input_ids": [[[1]]] * 6}, "input_ids must be whole numbers"),
        ({"label": ["ham", "spam"] * 3}, "some are texts or empty"),
        ({"label": [0, None] * 3}, "some are texts or empty"),
        ({"label": [0, [1, 2]] * 3}, "my.data:spare: "),
    ],
)
def test_columns_of_a_function_that_are_no_token_ids_or_labels_are_refused(
    columns: dict[str, object], told: str
) -> None:
    returned = {"input_ids": IDS, "label": LABELS} | columns
    with pytest.raises(DataError, match=told):
        tokens_of_returned(returned, "my.data:spare", Seed(0))


def test_an_array_of_labels_that_are_texts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spare.npz"
    np.savez(path, x=np.array(PADDED), y=np.array(["a", "b"] * 3))
    with pytest.raises(DataError, match="y has no numbers: store the number of each class"):
        load_tokens(str(path), TokenSettings())
