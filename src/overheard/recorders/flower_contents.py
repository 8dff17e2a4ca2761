"""Contents of Flower messages: arrays, and the metadata in clear text beside them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from overheard.recorders.flower_api import ArrayRecord, RecordDict
from overheard.recorders.flower_arrays import PackedArray
from overheard.recorders.replies.secure_aggregation import SECURE_RECORD
from overheard.recorders.reply_values import (
    SIZE_KEYS,
    AnswerMetadata,
    describe_values,
    sanitize_text,
    separate_values,
)

FLOWERS_RECORDS = (SECURE_RECORD, "fitres.status", "evaluateres.status")
"""Records that Flower itself adds, which are no metadata of the app: keys and shares of secure
aggregation, and the status of a reply of the older API."""


def extract_arrays(content: RecordDict) -> dict[str, PackedArray]:
    """Extract the arrays of a message now, as strategies may replace them later.

    Names are those in the array record, or `record/name` if there are several records.
    """
    records: Mapping[str, ArrayRecord] = content.array_records
    is_single = len(records) == 1
    return {
        name if is_single else f"{key}/{name}": PackedArray(
            array.dtype, array.stype, array.data
        )
        for key, record in records.items()
        for name, array in record.items()
    }


def read_answer_metadata(
    content: RecordDict, sizes: tuple[str, ...] = SIZE_KEYS
) -> AnswerMetadata:
    """Read the numbers in a reply's metrics and configuration; `name[0]`, ... for lists.

    Args:
        content: content of the reply.
        sizes: names of the number of examples; the first valid one is used.

    """
    return separate_values(_values(content), sizes)


def read_config(content: RecordDict) -> dict[str, str]:
    """Read all metadata of a broadcast as text; bytes are replaced by their number."""
    return describe_values(_values(content))


def find_value(content: RecordDict, key: str) -> object:
    """Return the value under a key of the metadata; None if it has none."""
    records: dict[str, Mapping[str, object]] = {
        **content.metric_records,
        **content.config_records,
    }
    return next((record[key] for record in records.values() if key in record), None)


def read_numbers(content: RecordDict, record: str) -> dict[str, float]:
    """Return the finite numbers of one record of the metadata; none if there is none."""
    records: dict[str, Mapping[str, object]] = {
        **content.metric_records,
        **content.config_records,
    }
    return dict(separate_values(records.get(record, {}).items(), ()).metrics)


def _values(content: RecordDict) -> Iterator[tuple[str, object]]:
    """Yield every value with its name, or with `record/name` if two records have the name."""
    records: dict[str, Mapping[str, object]] = {
        **content.metric_records,
        **content.config_records,
    }
    for name in FLOWERS_RECORDS:
        records.pop(name, None)
    counts = Counter(name for record in records.values() for name in record)
    for key, record in records.items():
        for name, value in record.items():
            label = sanitize_text(name if counts[name] == 1 else f"{key}/{name}")
            if isinstance(value, list):
                yield from ((f"{label}[{place}]", one) for place, one in enumerate(value))
            else:
                yield label, value
