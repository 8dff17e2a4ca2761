"""Plugins in a package are found, and those without a name of their own refused."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from overheard.core.defense import Defense
from overheard.core.plugin_discovery import plugin_classes
from overheard.core.plugin_registry import PluginRegistry, _concrete_class, discover_plugins
from overheard.plans.registries import REGISTRIES, questions

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

    def name(self) -> str:
        invalidate_caches()
        return "corner_shop"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    folder = tmp_path / "corner_shop"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield Shop(folder)
    for name in [name for name in sys.modules if name.split(".")[0] == "corner_shop"]:
        del sys.modules[name]


def test_finds_the_classes_of_all_modules_in_order_of_their_names(shop: Shop):
    pear, fig = (DEFENSE.format(name=one.title(), says=one) for one in ("pear", "fig"))
    shop.put("autumn", pear + fig)
    shop.put("winter", DEFENSE.format(name="Apple", says="apple"))
    found = discover_plugins(shop.name(), Defense)
    assert list(found) == ["apple", "fig", "pear"]
    assert found["pear"].__name__ == "Pear"


def test_skips_a_private_module(shop: Shop):
    shop.put("_shelf", "raise RuntimeError('imported')")
    assert discover_plugins(shop.name(), Defense) == {}


def test_an_abstract_class_beside_the_concrete_one_does_not_count(shop: Shop):
    abstract = (
        "from abc import ABC, abstractmethod\n"
        "from overheard.core.defense import Defense\n"
        "class Fruit(ABC, Defense):\n"
        "    @abstractmethod\n"
        "    def peel(self): ...\n"
    )
    shop.put("apple", abstract + DEFENSE.format(name="Apple", says="apple"))
    assert list(discover_plugins(shop.name(), Defense)) == ["apple"]


def test_a_folder_without_the_package_of_a_module_has_no_such_plugin(shop: Shop):
    for folder in ("apple", "pear/pages"):
        (shop.folder / folder).mkdir(parents=True)
        shop.put(f"{folder}/__init__", "")
    shop.put("pear/__init__", "")
    shop.put("pear/pages/report", DEFENSE.format(name="Pear", says="pear"))
    registry = PluginRegistry("pages", Defense, shop.name(), "pages.report")
    assert list(registry.plugins()) == ["pear"]


def test_refuses_a_name_that_occurs_twice(shop: Shop):
    shop.put("apple", DEFENSE.format(name="A", says="apple"))
    shop.put("pear", DEFENSE.format(name="B", says="apple"))
    with pytest.raises(TypeError, match="corner_shop: A and B are both named 'apple'"):
        discover_plugins(shop.name(), Defense)


def test_refuses_a_module_with_none(shop: Shop):
    shop.put("apple", "PRICE = 3")
    with pytest.raises(TypeError, match=r"corner_shop\.apple must define a Defense"):
        discover_plugins(shop.name(), Defense)


def test_refuses_a_class_without_a_name(shop: Shop):
    nameless = "from overheard.core.defense import Defense\nclass Apple(Defense): ..."
    shop.put("apple", nameless)
    with pytest.raises(TypeError, match="Apple needs a `name`"):
        discover_plugins(shop.name(), Defense)


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("apple", "fig"), "must define one Defense, but defines 2"), (("fig",), "named 'fig'")],
)
def test_a_module_for_one_plugin_has_just_that_one(
    shop: Shop, names: tuple[str, ...], reason: str
):
    shop.put("apple", "".join(DEFENSE.format(name=one.title(), says=one) for one in names))
    shop.name()
    with pytest.raises(TypeError, match=reason):
        _concrete_class(import_module("corner_shop.apple"), Defense, "apple")


def test_finds_the_module_of_every_plugin_whose_class_name_is_its_own():
    imported = [
        (plugin.__name__, plugin.__module__)
        for kind in REGISTRIES
        for name, plugin in kind.plugins().items()
        if kind.origin(name) is None
    ]
    claims = [one.scorer.claim_type for one in questions().values()]
    imported += [(claim.__name__, claim.__module__) for claim in claims]
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
