"""Measurements that take minutes, kept in a file with what they depend on."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import ValidationError

from overheard.disk.writing import write_text

T = TypeVar("T")


@runtime_checkable
class Adapter(Protocol[T]):
    """Pydantic's TypeAdapter of an origin and what was measured."""

    def validate_json(self, data: bytes, /) -> tuple[str, T]:
        """Read both."""

    def dump_json(self, instance: tuple[str, T], /, *, indent: int) -> bytes:
        """Write both."""


def load_or_measure(
    path: Path, origin: str, adapter: Adapter[T], measure: Callable[[], T]
) -> T:
    """Return what a file keeps; if it is missing, or of another origin or form, measure it.

    Args:
        path: the file; it is written atomically.
        origin: what the measurement depends on, see `StudyRuns.describe_origin`.
        adapter: reads and writes the origin and what was measured.
        measure: measures it.

    Raises:
        OutputError: if the file cannot be written.

    """
    try:
        kept_origin, kept = adapter.validate_json(path.read_bytes())
    except (ValidationError, FileNotFoundError):
        kept_origin = ""
    if kept_origin == origin:
        return kept
    measured = measure()
    text = adapter.dump_json((origin, measured), indent=1).decode() + "\n"
    write_text(path, text, inside=path.parent)
    return measured
