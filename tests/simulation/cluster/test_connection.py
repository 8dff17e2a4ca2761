"""Connections to a cluster, and the set-up of its machines."""

import importlib.util
import platform
import socket
import sys
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version

import pytest

from overheard.core.errors import PlanError
from overheard.simulation.cluster import ray_executor
from overheard.simulation.cluster.ray_executor import (
    MachineSetup,
    OtherSetupError,
    connect,
    local_setup,
)


def test_without_ray_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PlanError, match=r"needs Ray: pip install '\.\[ray\]'"):
        connect("local")


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "127.0.0.1:1", "auto", "ray://one"])
def test_a_cluster_that_does_not_respond_is_reported_at_once(address: str) -> None:
    with pytest.raises(PlanError, match="does not respond: give 'local', or 'ray://host:port'"):
        connect(address)


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray, an extra, is not installed"
)
def test_without_ray_client_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # grpc comes with ray[client], but not with ray.
    monkeypatch.setitem(sys.modules, "grpc", None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PlanError, match=r"cannot be joined: .* have ray\[client\] here"):
            connect(address)


def test_a_machine_with_the_same_versions_is_accepted() -> None:
    local_setup().check_here()


@pytest.mark.parametrize("name", [one.name for one in fields(MachineSetup)])
def test_each_version_counts_and_the_error_names_it(name: str) -> None:
    with pytest.raises(OtherSetupError, match=f"{platform.node()} has {name} .* instead of 0"):
        replace(local_setup(), **{name: "0"}).check_here()


def test_what_torch_was_built_for_does_not_count() -> None:
    assert local_setup().torch == version("torch").split("+")[0]


def test_a_machine_with_the_source_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_version(package: str) -> str:
        if package == "overheard":
            raise PackageNotFoundError(package)
        return version(package)

    here = local_setup()
    monkeypatch.setattr(ray_executor, "version", find_version)
    local_setup.cache_clear()
    with pytest.raises(OtherSetupError, match="has overheard not installed instead of"):
        here.check_here()
    local_setup.cache_clear()


def test_changed_source_counts(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "overheard" / "core" / "name.py"
    module.parent.mkdir(parents=True)
    monkeypatch.setattr("overheard.__file__", str(module.parents[1] / "__init__.py"))
    digests = set()
    for source in ("x = 1\n", "x = 2\n", "x = 1\n"):
        module.write_text(source)
        local_setup.cache_clear()
        digests.add(local_setup().code)
    local_setup.cache_clear()
    assert len(digests) == 2
