"""The messages of an `.onnx` file that describe its tensors, found before any is parsed.

A parser makes an object of over 100 bytes of a message that takes two bytes in the file.
"""

from collections.abc import Iterator

GRAPH, INITIALIZER = 7, 5
"""The numbers of these fields, of a model and of its graph."""

MOST_FIELDS = 1_000_000
"""The most fields that are looked at: a tensor has about five."""


def find_initializers(content: bytes) -> list[memoryview]:
    """Return the messages of the initializers of the graph.

    Raises:
        ValueError: if the content is cut short, has no messages, or too many fields.

    """
    found, left = list[memoryview](), MOST_FIELDS
    for number, graph in _fields(memoryview(content), left):
        left -= 1
        for inner, message in _fields(graph, left) if number == GRAPH else ():
            left -= 1
            if inner == INITIALIZER:
                left -= sum(1 for _ in _fields(message, left))
                found.append(message)
    return found


def _fields(message: memoryview, most: int) -> Iterator[tuple[int, memoryview]]:
    """Yield the numbers of the fields of a message, with what follows each."""
    place = count = 0
    while place < len(message):
        count += 1
        if count > most:
            raise ValueError(f"it has more than {MOST_FIELDS} fields")
        key, place = _varint(message, place)
        start, kind = place, key & 7
        if kind == 0:
            _, place = _varint(message, place)
        elif kind == 2:
            length, start = _varint(message, place)
            place = start + length
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        else:
            raise ValueError("it is no file of ONNX")
        if place > len(message):
            raise ValueError("it is no file of ONNX, or was cut short")
        yield key >> 3, message[start:place]


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return a whole number, which has 7 bits of each byte, and the place after it."""
    number = 0
    for shift, byte in enumerate(message[place : place + 10]):
        number |= (byte & 127) << (7 * shift)
        if byte < 128:
            return number, place + shift + 1
    raise ValueError("it is no file of ONNX, or was cut short")
