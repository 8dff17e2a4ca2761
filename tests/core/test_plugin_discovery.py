"""Plugins in a package are found, and misnamed ones refused."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

import pytest

from overheard.core.defense import Defense
from overheard.core.plugin_discovery import discover_plugins

DEFENSE = """
from overheard.core.defense import Defense

class {name}(Defense):
    name = "{says}"
"""


class Shop:
    """A package on disk to write modules into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, module: str, text: str) -> None:
        (self.folder / f"{module}.py").write_text(text)

    def open(self) -> ModuleType:
        invalidate_caches()
        return import_module("corner_shop")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    folder = tmp_path / "corner_shop"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield Shop(folder)
    for name in [name for name in sys.modules if name.split(".")[0] == "corner_shop"]:
        del sys.modules[name]


def test_finds_the_one_class_of_each_module_in_order_of_their_names(shop: Shop):
    shop.put("pear", DEFENSE.format(name="Pear", says="pear"))
    shop.put("apple", DEFENSE.format(name="Apple", says="apple"))
    found = discover_plugins(shop.open(), Defense)
    assert list(found) == ["apple", "pear"]
    assert found["pear"].__name__ == "Pear"


def test_skips_a_private_module(shop: Shop):
    shop.put("_shelf", "raise RuntimeError('imported')")
    assert discover_plugins(shop.open(), Defense) == {}


def test_an_imported_class_counts_only_where_it_is_defined(shop: Shop):
    shop.put("apple", DEFENSE.format(name="Apple", says="apple"))
    shop.put(
        "pear", "from corner_shop.apple import Apple\n" + DEFENSE.format(name="P", says="pear")
    )
    assert list(discover_plugins(shop.open(), Defense)) == ["apple", "pear"]


def test_an_abstract_class_beside_the_concrete_one_does_not_count(shop: Shop):
    abstract = (
        "from abc import ABC, abstractmethod\n"
        "from overheard.core.defense import Defense\n"
        "class Fruit(ABC, Defense):\n"
        "    @abstractmethod\n"
        "    def peel(self): ...\n"
    )
    shop.put("apple", abstract + DEFENSE.format(name="Apple", says="apple"))
    assert list(discover_plugins(shop.open(), Defense)) == ["apple"]


def test_refuses_a_module_with_two(shop: Shop):
    shop.put(
        "apple", DEFENSE.format(name="A", says="apple") + DEFENSE.format(name="B", says="b")
    )
    with pytest.raises(
        TypeError, match=r"corner_shop\.apple must define one Defense, but defines 2"
    ):
        discover_plugins(shop.open(), Defense)


def test_refuses_a_module_with_none(shop: Shop):
    shop.put("apple", "PRICE = 3")
    with pytest.raises(TypeError, match="defines 0"):
        discover_plugins(shop.open(), Defense)


def test_refuses_a_class_that_is_not_named_as_its_file(shop: Shop):
    shop.put("apple", DEFENSE.format(name="Apple", says="pear"))
    with pytest.raises(TypeError, match="defines a Defense named 'pear'"):
        discover_plugins(shop.open(), Defense)


def test_refuses_a_class_without_a_name(shop: Shop):
    nameless = "from overheard.core.defense import Defense\nclass Apple(Defense): ..."
    shop.put("apple", nameless)
    with pytest.raises(TypeError, match="named None"):
        discover_plugins(shop.open(), Defense)
