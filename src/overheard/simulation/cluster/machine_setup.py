"""What a machine must have in the same version to return the same numbers."""

import platform
from dataclasses import dataclass, fields
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import final

import overheard
from overheard.core.errors import PlanError


class OtherSetupError(PlanError):
    """A machine has other versions than the one that sends the work."""


@final
@dataclass(frozen=True, slots=True)
class MachineSetup:
    """The versions of a machine.

    Args:
        python: version of Python, without the patch release.
        overheard: version of this package.
        code: digest of the source files of this package, which a checkout may have changed.
        torch: version of torch, without what it was built for.
        numpy: version of numpy.

    """

    python: str
    overheard: str
    code: str
    torch: str
    numpy: str

    def check_here(self) -> None:
        """Check that this machine has the same versions.

        Raises:
            OtherSetupError: if a version differs; it names the machine and the versions.

        """
        here = own_setup()
        differences = [
            f"{one.name} {getattr(here, one.name)} instead of {getattr(self, one.name)}"
            for one in fields(self)
            if getattr(here, one.name) != getattr(self, one.name)
        ]
        if differences:
            raise OtherSetupError(f"{platform.node()} has {', '.join(differences)}")


@cache
def own_setup() -> MachineSetup:
    """Return the versions of this machine."""
    return MachineSetup(
        ".".join(platform.python_version_tuple()[:2]),
        _installed_version("overheard"),
        _own_code_digest(),
        _installed_version("torch").partition("+")[0],
        _installed_version("numpy"),
    )


def _installed_version(package: str) -> str:
    """Return the version of a package, or that a machine has no more than its source."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _own_code_digest() -> str:
    """Return a digest of all source files of this package, 12 hexadecimal digits."""
    folder = Path(overheard.__file__).parent
    digest = blake2b(digest_size=6)
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
