"""A cluster that cannot be used is refused at once, and the error says what to do."""

import importlib.util
import socket
import sys

import pytest

from overheard.core.errors import PlanError
from overheard.simulation.cluster.ray_executor import connect


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
