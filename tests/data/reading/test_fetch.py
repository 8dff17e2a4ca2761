import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from overheard.core.errors import DataError
from overheard.data.reading.fetch import RemoteFile, fetch

CONTENT = b"real bytes"


class Quiet(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        """Redirect `/to/ADDRESS`, and send files otherwise."""
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of this machine, which no other program trusts."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "this machine")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .sign(key, SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + made.public_bytes(Encoding.PEM)
    )
    return path


@pytest.fixture
def address(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Run a server on this machine that serves one file over https."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "set.bin").write_bytes(CONTENT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def remote(*addresses: str, checksum: str = sha256(CONTENT).hexdigest()) -> RemoteFile:
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
        fetch(remote(address + "set.bin", checksum="0" * 64), tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_an_unreachable_server_is_reported_in_one_line(tmp_path: Path) -> None:
    # No server listens on port 9 (discard) of this machine.
    with pytest.raises(
        DataError, match=r"^set.bin could not be downloaded from https://127"
    ) as error:
        fetch(remote("https://127.0.0.1:9/set.bin"), tmp_path / "cache")
    assert "\n" not in str(error.value)


def test_a_redirect_away_from_https_is_not_followed(address: str, tmp_path: Path) -> None:
    # No server listens on port 9 (discard), so following would fail in another way.
    target = "http://127.0.0.1:9/set.bin"
    with pytest.raises(DataError, match=rf"redirects to {target}, which is not https"):
        fetch(remote(f"{address}to/{target}"), tmp_path / "cache")
    assert fetch(remote(f"{address}to//set.bin"), tmp_path / "cache").read_bytes() == CONTENT


def test_an_address_without_https_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with https, got http:"):
        RemoteFile("a", ("http://example.org/a",), "0" * 64)
