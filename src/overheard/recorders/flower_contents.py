"""Contents of Flower messages: arrays, and the metadata in clear text beside them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from overheard.recorders.flower_api import (
    ArrayRecord,
    ConfigRecord,
    MetricRecord,
    RecordDict,
)
from overheard.recorders.flower_arrays import PackedArray, count_bytes
from overheard.recorders.replies.differences import UnstorableError
from overheard.recorders.replies.limits import (
    CopiedValues,
    ReplyLimits,
    check_names,
    check_records,
    check_values,
    copy_values,
)
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


def extract_reply_arrays(content: RecordDict, limits: ReplyLimits) -> dict[str, PackedArray]:
    """Extract the arrays of a reply, after a check of their number and sizes.

    Raises:
        UnstorableError: if they are beyond the limits.

    """
    check_records(len(content))
    records = array_records(content)
    check_names(records)
    limits.check_count(sum(map(len, records.values())))
    for record in records.values():
        check_names(record)
    arrays = extract_arrays(content)
    if any(type(part.data) is not bytes for part in arrays.values()):
        raise UnstorableError("an array in it is not serialized as bytes", "other")
    limits.check_bytes(count_bytes(arrays))
    return arrays


def extract_arrays(content: RecordDict) -> dict[str, PackedArray]:
    """Extract the arrays of a message now, as strategies may replace them later.

    Names are those in the array record, or `record/name` if there are several records.
    """
    records = array_records(content)
    is_single = len(records) == 1
    return {
        name if is_single else f"{key}/{name}": PackedArray(
            array.dtype, array.stype, array.data
        )
        for key, record in records.items()
        for name, array in record.items()
    }


def array_records(content: RecordDict) -> dict[str, ArrayRecord]:
    """Return the records of arrays; Flower's own property takes ten times as long."""
    return {name: one for name, one in content.items() if isinstance(one, ArrayRecord)}


Values = Mapping[str, Mapping[str, object]]
"""The values of a message beside its arrays, by record and name."""


def copy_reply_values(content: RecordDict) -> CopiedValues:
    """Copy the values of a reply, after a check of their number.

    Raises:
        UnstorableError: if they are beyond the limits.

    """
    check_records(len(content))
    records = _value_records(content)
    check_values(sum(map(len, records.values())))
    # A record of Flower is no dict, and copied much faster by its items.
    return copy_values({name: dict(record.items()) for name, record in records.items()})


def read_copied_values(copied: CopiedValues) -> Values:
    """Return the copied values of a reply by record."""
    return {name: one for name, one in copied.values.items() if isinstance(one, dict)}


def read_answer_metadata(values: Values, sizes: tuple[str, ...] = SIZE_KEYS) -> AnswerMetadata:
    """Read the numbers in a reply's metrics and configuration; `name[0]`, ... for lists.

    Args:
        values: the values of the reply.
        sizes: names of the number of examples; the first valid one is used.

    """
    return separate_values(_name_values(values), sizes)


def read_config(content: RecordDict) -> dict[str, str]:
    """Read all metadata of a broadcast as text; bytes are replaced by their number."""
    return describe_values(_name_values(_value_records(content)))


def find_value(content: RecordDict, key: str) -> object:
    """Return the value under a key of the metadata; None if it has none."""
    check_records(len(content))
    records = _value_records(content)
    return next((record[key] for record in records.values() if key in record), None)


def read_numbers(values: Values, record: str) -> dict[str, float]:
    """Return the finite numbers of one record of the metadata; none if there is none."""
    return dict(separate_values(values.get(record, {}).items(), ()).metrics)


def _value_records(content: RecordDict) -> dict[str, Mapping[str, object]]:
    """Return all records of values but those that Flower itself adds."""
    return {
        name: one
        for kind in (MetricRecord, ConfigRecord)
        for name, one in content.items()
        if isinstance(one, kind) and name not in FLOWERS_RECORDS
    }


def _name_values(records: Values) -> Iterator[tuple[str, object]]:
    """Yield every value with its name, or with `record/name` if two records have the name."""
    counts = Counter(name for record in records.values() for name in record)
    for key, record in records.items():
        for name, value in record.items():
            label = sanitize_text(name if counts[name] == 1 else f"{key}/{name}")
            if isinstance(value, list | tuple):
                yield from ((f"{label}[{place}]", one) for place, one in enumerate(value))
            else:
                yield label, value
