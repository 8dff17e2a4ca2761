"""Plugins of installed packages are found; those that do not fit cause one warning."""

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from overheard.core.own_code.reference import NO_CODE_VARIABLE
from overheard.core.plugin_registry import (
    PluginOrigin,
    PluginRegistry,
    PluginWarning,
    _find_plugins,
    _installed_entry_points,
)

FRUIT = """
from dataclasses import dataclass
from tests_core_fruit import Fruit

@dataclass(frozen=True)
class {name}(Fruit):
    name = "{says}"

    def taste(self):
        return "sweet"
"""

BUILT_IN = FRUIT.format(name="Apple", says="apple")


class Fruit(ABC):
    """The contract."""

    name: ClassVar[str]

    @abstractmethod
    def taste(self) -> str: ...


class Market:
    """A folder on the import path to install packages into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, entries: str, *, version: str = "1.2", **modules: str) -> None:
        """Write modules and a distribution with these entry points."""
        for module, text in modules.items():
            (self.folder / f"{module}.py").write_text(text)
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(entries)
        invalidate_caches()

    def fruits(self, check: Callable[[type[Fruit]], object] = bool) -> PluginRegistry[Fruit]:
        """Return a new registry of fruits."""
        return PluginRegistry("fruits", Fruit, "tests_core_orchard", check=check)


@pytest.fixture
def market(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Market]:
    fruit = ModuleType("tests_core_fruit")
    vars(fruit)["Fruit"] = Fruit
    monkeypatch.setitem(sys.modules, "tests_core_fruit", fruit)
    monkeypatch.syspath_prepend(tmp_path)
    orchard = tmp_path / "tests_core_orchard"
    orchard.mkdir()
    (orchard / "__init__.py").touch()
    (orchard / "apple.py").write_text(BUILT_IN)
    _installed_entry_points.cache_clear()
    yield Market(tmp_path)
    _installed_entry_points.cache_clear()
    _find_plugins.cache_clear()
    for module in [
        module for module in sys.modules if module.startswith(("market_", "tests_core_"))
    ]:
        del sys.modules[module]


def names_and_warnings(
    market: Market, **kind: Callable[[type[Fruit]], object]
) -> tuple[list[str], list[str]]:
    """Return the names of all fruits and all warnings of two look-ups."""
    fruits = market.fruits(**kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names = list(fruits.plugins())
        assert list(fruits.plugins()) == names
    assert all(one.category is PluginWarning for one in caught)
    return names, [str(one.message) for one in caught]


def test_finds_built_in_plugins_and_those_of_installed_packages_with_their_origin(
    market: Market,
):
    market.install(
        "fruit-basket",
        "[overheard.fruits]\nplum = market_plum:Plum\n[overheard.pans]\niron = no.such:Pan\n",
        market_plum=FRUIT.format(name="Plum", says="plum"),
    )
    assert names_and_warnings(market) == (["apple", "plum"], [])
    fruits = market.fruits()
    assert fruits.plugins()["plum"]().taste() == "sweet"
    assert fruits.origin("plum") == PluginOrigin("fruit-basket", "1.2")
    assert str(fruits.origin("plum")) == "fruit-basket 1.2"
    assert fruits.origin("apple") is None
    assert fruits.origin("pear") is None


@pytest.mark.parametrize(
    ("entry", "module", "reason"),
    [
        ("plum = market_none:Plum", "", "ModuleNotFoundError: No module named 'market_none'"),
        ("plum = market_plum:Plum", "import not_there", "No module named 'not_there'"),
        ("plum = market_plum:Plum", "1 +", "SyntaxError"),
        ("plum = market_plum:Plum", "raise SystemExit(3)", "SystemExit: 3"),
        ("plum = market_plum:Plum", "Plum = 3", "is no subclass of Fruit"),
        ("plum = market_plum:Plum", "class Plum: name = 'plum'", "is no subclass of Fruit"),
        (
            "plum = market_plum:Plum",
            "from tests_core_fruit import Fruit\nclass Plum(Fruit): name = 'plum'",
            "is abstract: it does not define taste",
        ),
        (
            "plum = market_plum:Plum",
            FRUIT.format(name="Plum", says="prune"),
            "has the name 'prune': give the entry point and the class one name",
        ),
        (
            "plum = market_plum:Plum",
            FRUIT.format(name="Plum", says="plum").replace("@dataclass(frozen=True)", ""),
            "is no dataclass",
        ),
        ("plum", "", "entry_points.txt cannot be read"),
        (
            "apple = market_plum:Apple",
            FRUIT.format(name="Apple", says="apple"),
            "the name is taken by overheard itself",
        ),
    ],
)
def test_one_warning_says_what_is_left_out_and_why(
    market: Market, entry: str, module: str, reason: str
):
    market.install("fruit-basket", f"[overheard.fruits]\n{entry}\n", market_plum=module)
    names, (warning,) = names_and_warnings(market)
    assert names == ["apple"]
    assert "fruit-basket 1.2" in warning
    assert reason in warning
    assert "To fix this, " in warning
    assert market.fruits().origin("apple") is None


def test_a_plugin_that_fails_the_check_is_left_out(market: Market):
    def refuse(part: type[Fruit]) -> None:
        raise ValueError("no\nstone")

    market.install(
        "fruit-basket",
        "[overheard.fruits]\nplum = market_plum:Plum\n",
        market_plum=FRUIT.format(name="Plum", says="plum"),
    )
    names, (warning,) = names_and_warnings(market, check=refuse)
    assert names == ["apple"]
    assert "ValueError: no stone" in warning


def test_the_alphabetically_first_package_wins_a_plugin_name(market: Market):
    for name in ("b-basket", "a-basket"):
        market.install(
            name,
            f"[overheard.fruits]\nplum = market_{name[0]}:Plum\n",
            **{f"market_{name[0]}": FRUIT.format(name="Plum", says="plum")},
        )
    names, (warning,) = names_and_warnings(market)
    assert names == ["apple", "plum"]
    assert "b-basket 1.2" in warning
    assert "the name is taken by a-basket 1.2" in warning
    assert market.fruits().origin("plum") == PluginOrigin("a-basket", "1.2")


def test_a_package_is_not_imported_for_another_registry(market: Market):
    market.install(
        "pans", "[overheard.pans]\niron = market_pan:Iron\n", market_pan="raise OSError"
    )
    assert names_and_warnings(market) == (["apple"], [])
    assert "market_pan" not in sys.modules


PLUM = "[overheard.fruits]\nplum = market_plum:Plum\n"


def test_a_package_in_the_working_directory_is_not_installed(
    market: Market, monkeypatch: pytest.MonkeyPatch
):
    market.install("received", PLUM, market_plum="raise OSError")
    monkeypatch.chdir(market.folder)
    assert names_and_warnings(market) == (["apple"], [])
    assert "market_plum" not in sys.modules


def test_no_code_loads_no_package(market: Market, monkeypatch: pytest.MonkeyPatch):
    market.install("basket", PLUM, market_plum="raise OSError")
    monkeypatch.setenv(NO_CODE_VARIABLE, "1")
    assert names_and_warnings(market) == (["apple"], [])
    assert "market_plum" not in sys.modules
