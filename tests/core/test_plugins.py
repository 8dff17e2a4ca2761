"""Plugins and their settings."""

import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module, invalidate_caches
from math import inf, nan
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from annotated_types import Ge, Gt, Lt, MinLen

from overheard.core.custom_code.reference import NO_CODE_VARIABLE
from overheard.core.defense import Defense
from overheard.core.plugin_discovery import plugin_classes
from overheard.core.plugin_registry import (
    PluginOrigin,
    PluginRegistry,
    PluginWarning,
    _concrete_class,
    _find_plugins,
    _installed_entry_points,
    discover_plugins,
)
from overheard.core.settings import Positive, Settings
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


@dataclass(frozen=True, slots=True)
class Walk(Settings):
    """Settings of many types."""

    steps: Positive
    pace: Annotated[float, Gt(0), Lt(1)] = 0.5
    stops: Annotated[tuple[Positive, ...], MinLen(1)] = (1,)
    place: Literal["hill", "wood"] = "hill"
    dog: str | None = None
    is_long: bool = False
    rest: Annotated[int, Ge(0)] | None = None
    extra: Mapping[str, int] = field(default_factory=dict)

    def check_together(self) -> None:
        """Refuse a rest that is no shorter than the walk."""
        if self.rest is not None and self.rest >= self.steps:
            raise ValueError("rest must be below steps")


def test_accepts_settings_in_range_and_changes_none():
    walk = Walk(3, 1e-9, (1, 2), "wood", "Rex", True, 2)
    assert replace(walk, stops=(4,)) == Walk(3, 1e-9, (4,), "wood", "Rex", True, 2)


# Any: settings of a wrong type.
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 0}, "steps must be 1 or more, got 0"),
        ({"steps": True}, "steps must be a whole number, got True"),
        ({"steps": 2.0}, "steps must be a whole number, got 2.0"),
        (
            {"steps": np.int64(2)},
            "steps must be a whole number, got np.int64(2): convert it by int(...)",
        ),
        ({"steps": 2**40}, "steps must be below 2147483648, got 1099511627776"),
        ({"pace": 0}, "pace must be above 0, got 0"),
        ({"pace": 1.0}, "pace must be below 1, got 1.0"),
        ({"pace": nan}, "pace must be a finite number, got nan"),
        ({"pace": -inf}, "pace must be a finite number, got -inf"),
        (
            {"pace": torch.tensor(0.25)},
            "pace must be a number, got tensor(0.2500): convert it by float(...)",
        ),
        ({"pace": "fast"}, "pace must be a number, got 'fast'"),
        ({"stops": ()}, "stops must have 1 or more entries, got ()"),
        ({"stops": [1]}, "stops must be a list, in Python a tuple, got [1]"),
        ({"stops": (1, 0)}, "stops[1] must be 1 or more, got 0"),
        ({"place": "sea"}, "place must be 'hill' or 'wood', got 'sea'"),
        ({"dog": 3}, "dog must be text, got 3"),
        ({"is_long": 1}, "is_long must be true or false, got 1"),
        ({"rest": -1}, "rest must be 0 or more, got -1"),
        ({"rest": 9}, "rest must be below steps"),
        (
            {"steps": 0, "pace": 2},
            "steps must be 1 or more, got 0; pace must be below 1, got 2",
        ),
    ],
)
def test_refuses_other_settings_in_plain_words(given: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        Walk(**({"steps": 3} | given))


def test_refuses_a_class_that_would_skip_the_checks():
    with pytest.raises(TypeError, match="Skipping defines __post_init__: name it"):

        class Skipping(Settings):
            def __post_init__(self) -> None:
                """Check nothing."""

    class Checking:
        def __post_init__(self) -> None:
            """Check nothing."""

    with pytest.raises(TypeError, match="Inheriting defines __post_init__: name it"):

        class Inheriting(Checking, Settings):
            """Its first base would hide the checks."""


def test_refuses_a_setting_that_would_not_be_checked():
    @dataclass(frozen=True)
    class Hidden(Settings):
        _steps: Positive = 1

    with pytest.raises(TypeError, match="Hidden: _steps: name it without a leading underscore"):
        Hidden(0)


def test_refuses_a_name_that_pydantic_uses_itself():
    @dataclass(frozen=True)
    class Copying(Settings):
        copy: Positive = 1
        schema: str = ""

    with pytest.raises(TypeError, match="Copying: pydantic uses the name copy, schema itself"):
        Copying()
