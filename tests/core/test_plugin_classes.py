"""Classes of plugins are found in the text of their modules, as importing them finds them."""

from pathlib import Path

from overheard.core.plugin_classes import plugin_classes
from overheard.plans.registries import REGISTRIES

PACKAGE = Path(__file__).parents[2] / "src" / "overheard"


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
