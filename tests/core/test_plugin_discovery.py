"""Plugins in a package are found, and misnamed ones refused."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

import pytest

from overheard.core.defense import Defense
from overheard.core.plugin_discovery import discover_plugins, plugin_classes
from overheard.plans.registries import REGISTRIES

PACKAGE = Path(__file__).parents[2] / "src" / "overheard"

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


def test_skips_a_private_module(shop: Shop):
    shop.put("_shelf", "raise RuntimeError('imported')")
    assert discover_plugins(shop.open(), Defense) == {}


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


def test_finds_the_module_of_every_plugin_whose_class_name_is_its_own():
    imported = [
        (plugin.__name__, plugin.__module__)
        for kind in REGISTRIES
        for name, plugin in kind.plugins().items()
        if kind.origin(name) is None
    ]
    names = [name for name, _ in imported]
    found = plugin_classes(PACKAGE)
    assert len(found) > 90
    assert {name: f"overheard.{module}" for name, module in found.items()} == {
        name: module for name, module in imported if names.count(name) == 1
    }


def test_finds_a_new_plugin_and_no_other_class(tmp_path: Path):
    (tmp_path / "defenses").mkdir()
    (tmp_path / "defenses" / "blur.py").write_text(
        "class _Helper:\n    size: int\nclass Blur:\n    name = 'blur'\n", encoding="utf-8"
    )
    assert plugin_classes(tmp_path) == {"Blur": "defenses.blur"}
