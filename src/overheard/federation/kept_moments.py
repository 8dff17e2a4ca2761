"""Files with the optimizer state of clients between rounds, which no message contains."""

from pathlib import Path

from overheard.archive.atomic import write_bytes
from overheard.archive.weights import read_tensors, to_safetensors
from overheard.core.errors import OutputError, TranscriptError
from overheard.learning.distillation.moments import Moments
from overheard.learning.distillation.synthetic import Synthetic

NAMES = tuple(
    f"{kind} of {part}" for kind in ("mean", "square") for part in ("inputs", "labels", "rates")
)


def keep_moments(folder: Path, number: int, moments: Moments) -> None:
    """Write the state after a round, and remove the state of two rounds before.

    Raises:
        OutputError: if it cannot be written.

    """
    tensors = dict(zip(NAMES, (*moments.mean, *moments.square), strict=True))
    content = to_safetensors({"steps": moments.steps.float(), **tensors})
    write_bytes(_path(folder, number), content)
    _path(folder, number - 2).unlink(missing_ok=True)


def kept_moments(folder: Path, number: int, like: Moments) -> Moments:
    """Read the state after a round.

    Raises:
        OutputError: if it is missing or of another run, so that the run cannot continue.

    """
    path = _path(folder, number)
    expected = dict(zip(NAMES, (*like.mean, *like.square), strict=True))
    shapes = {name: tuple(one.shape) for name, one in expected.items()}
    shapes["steps"] = tuple(like.steps.shape)
    try:
        read = read_tensors(path, tuple(shapes), shapes)
    except TranscriptError as error:
        raise OutputError(
            f"{folder}: the run cannot continue after round {number}, because the optimizer "
            f"state of clients is lost ({error}); remove the folder to start again"
        ) from error
    tensors = [read[name] for name in NAMES]
    steps = read["steps"].to(like.steps.dtype)
    return Moments(steps, Synthetic(*tensors[:3]), Synthetic(*tensors[3:]))


def _path(folder: Path, number: int) -> Path:
    return folder / "distillation" / f"r{number:04d}.safetensors"
