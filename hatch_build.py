"""Declares the classes of plugins in a wheel's stub, so that type checkers know `Decaf`.

In a checkout they are `Any` to type checkers: there is no list of plugins to keep up to date.
"""

from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("src", "overheard")

ANY_PLUGIN = "def __getattr__(name: str) -> typing.Any: ...\n"
"""The line of the checkout's stub in place of the classes of plugins."""


def full_stub(package: Path) -> str:
    """Return the stub of public names with an import of each plugin's class."""
    find_classes = run_path(str(package / "core" / "plugin_discovery.py"))["plugin_classes"]
    imports = [
        f"from .{module} import {name} as {name}\n"
        for name, module in find_classes(package).items()
    ]
    stub = (package / "__init__.pyi").read_text(encoding="utf-8")
    assert ANY_PLUGIN in stub
    return stub.replace(ANY_PLUGIN, "".join(imports))


# Any: the hook of any configuration.
class PluginStubHook(BuildHookInterface[Any]):
    """Replaces the stub in a wheel."""

    # Any: hatchling gives a dictionary of lists and dictionaries.
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the stub to a folder, and include it; an editable installation has its own."""
        self.folder = TemporaryDirectory()
        if version != "standard":
            return
        stub = Path(self.folder.name, "__init__.pyi")
        stub.write_text(full_stub(Path(self.root) / PACKAGE), encoding="utf-8")
        build_data["force_include"][str(stub)] = "overheard/__init__.pyi"

    # Any: as above.
    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        self.folder.cleanup()
