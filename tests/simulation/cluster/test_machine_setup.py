"""A machine is refused if it has other versions, since it may return other numbers."""

import platform
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version

import pytest

from overheard.simulation.cluster import ray_executor
from overheard.simulation.cluster.ray_executor import (
    MachineSetup,
    OtherSetupError,
    own_setup,
)


def test_a_machine_with_the_same_versions_is_accepted() -> None:
    own_setup().check_here()


@pytest.mark.parametrize("name", [one.name for one in fields(MachineSetup)])
def test_each_version_counts_and_the_error_names_it(name: str) -> None:
    with pytest.raises(OtherSetupError, match=f"{platform.node()} has {name} .* instead of 0"):
        replace(own_setup(), **{name: "0"}).check_here()


def test_what_torch_was_built_for_does_not_count() -> None:
    assert own_setup().torch == version("torch").split("+")[0]


def test_a_machine_with_the_source_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_version(package: str) -> str:
        if package == "overheard":
            raise PackageNotFoundError(package)
        return version(package)

    here = own_setup()
    monkeypatch.setattr(ray_executor, "version", find_version)
    own_setup.cache_clear()
    with pytest.raises(OtherSetupError, match="has overheard not installed instead of"):
        here.check_here()
    own_setup.cache_clear()


def test_changed_source_counts(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "overheard" / "core" / "name.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr("overheard.__file__", str(module.parents[1] / "__init__.py"))
    digests = set()
    for source in ("x = 1\n", "x = 2\n", "x = 1\n"):
        module.write_text(source)
        own_setup.cache_clear()
        digests.add(own_setup().code)
    own_setup.cache_clear()
    assert len(digests) == 2
