import threading
from collections.abc import Iterator
from functools import partial
from hashlib import md5
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from overheard.core.errors import DataError
from overheard.data.reading.fetch import RemoteFile, fetch

CONTENT = b"real bytes"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Run a server on this machine that serves one file."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "set.bin").write_bytes(CONTENT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def remote(*addresses: str, checksum: str = md5(CONTENT).hexdigest()) -> RemoteFile:
    return RemoteFile("set.bin", addresses, checksum)


def test_a_file_is_downloaded_once_and_cached(address: str, tmp_path: Path) -> None:
    path = fetch(remote(address + "set.bin"), tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    (tmp_path / "served" / "set.bin").unlink()
    assert fetch(remote(address + "set.bin"), tmp_path / "cache") == path


def test_the_next_mirror_is_tried(address: str, tmp_path: Path) -> None:
    path = fetch(remote(address + "gone.bin", address + "set.bin"), tmp_path / "cache")
    assert path.read_bytes() == CONTENT


def test_a_file_with_a_wrong_checksum_is_refused_and_not_cached(
    address: str, tmp_path: Path
) -> None:
    with pytest.raises(
        DataError, match=r"set.bin could not be downloaded .*hash of downloaded"
    ):
        fetch(remote(address + "set.bin", checksum="0" * 32), tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_an_unreachable_server_is_reported_in_one_line(tmp_path: Path) -> None:
    # No server listens on port 9 (discard) of this machine.
    with pytest.raises(
        DataError, match=r"^set.bin could not be downloaded from http://127"
    ) as error:
        fetch(remote("http://127.0.0.1:9/set.bin"), tmp_path / "cache")
    assert "\n" not in str(error.value)
