"""What clients remember between rounds, kept beside the transcript, as nobody sends it."""

from pathlib import Path

from overheard.archive.atomic import write_bytes
from overheard.archive.weights import read_tensors, stored
from overheard.core.errors import OutputError, TranscriptError
from overheard.learning.distillation.moments import Moments
from overheard.learning.distillation.synthetic import Synthetic

NAMES = tuple(
    f"{what} of {part}" for what in ("mean", "square") for part in ("inputs", "labels", "rates")
)


def keep_moments(folder: Path, number: int, moments: Moments) -> None:
    """Write down what is remembered after a round, and drop what was two rounds before.

    Raises:
        OutputError: if the disk does not take it.

    """
    tensors = dict(zip(NAMES, (*moments.mean, *moments.square), strict=True))
    content = stored({"steps": moments.steps.float(), **tensors})
    write_bytes(_path(folder, number), content)
    _path(folder, number - 2).unlink(missing_ok=True)


def kept_moments(folder: Path, number: int, like: Moments) -> Moments:
    """What was remembered after a round.

    Raises:
        OutputError: if it is gone, or of another run: then the run cannot go on.

    """
    path = _path(folder, number)
    expected = dict(zip(NAMES, (*like.mean, *like.square), strict=True))
    shapes = {name: tuple(one.shape) for name, one in expected.items()}
    shapes["steps"] = tuple(like.steps.shape)
    try:
        read = read_tensors(path, tuple(shapes), shapes)
    except TranscriptError as error:
        raise OutputError(
            f"the run cannot go on after round {number}, as what clients remember is lost "
            f"({error}): remove {folder} to start anew"
        ) from error
    told = [read[name] for name in NAMES]
    steps = read["steps"].to(like.steps.dtype)
    return Moments(steps, Synthetic(*told[:3]), Synthetic(*told[3:]))


def _path(folder: Path, number: int) -> Path:
    return folder / "distillation" / f"r{number:04d}.safetensors"
