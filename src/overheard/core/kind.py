"""A kind of part, such as attacks or defenses, and where its parts are found."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import Generic, TypeVar, final

from overheard.core.discover import concrete_class, discover, module_names

T = TypeVar("T")


@final
@dataclass(frozen=True)
class Kind(Generic[T]):
    """Parts of one contract, each found by its file.

    Args:
        name: of the kind, in the plural, such as "attacks".
        contract: the class that each part implements.
        package: dotted name of the package in which they stand, one a file.
        room: where the package has a folder a question: the package or module in each of these
            folders in which the parts stand. Of a module the folder names the part.

    """

    name: str
    contract: type[T]
    package: str
    room: str = ""

    def parts(self) -> Mapping[str, type[T]]:
        """Return the parts by name, in the order of the alphabet.

        Raises:
            TypeError: if a module defines no part or several, or two parts have one name.

        """
        return _parts(self)


# One answer for each kind, as long as Python runs: what stands in a folder does not change.
@cache
def _parts(kind: Kind[T]) -> Mapping[str, type[T]]:
    package = import_module(kind.package)
    if not kind.room:
        return MappingProxyType(discover(package, kind.contract))
    found: dict[str, type[T]] = {}
    for folder, room in _rooms(package, kind.room):
        parts = (
            discover(room, kind.contract)
            if hasattr(room, "__path__")
            else {folder: concrete_class(room, kind.contract, folder)}
        )
        if found.keys() & parts.keys():
            raise TypeError(f"{room.__name__}: {sorted(found.keys() & parts.keys())} twice")
        found |= parts
    return MappingProxyType(dict(sorted(found.items())))


def _rooms(package: ModuleType, room: str) -> Iterator[tuple[str, ModuleType]]:
    for folder in module_names(package):
        place = f"{package.__name__}.{folder}.{room}"
        if find_spec(place) is not None:
            yield folder, import_module(place)
