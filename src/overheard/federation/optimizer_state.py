"""Files with the optimizer state of clients between rounds, which no message contains."""

from pathlib import Path

from overheard.archive.atomic import write_bytes
from overheard.archive.tensor_files import read_tensors, to_safetensors
from overheard.core.errors import OutputError, TranscriptError
from overheard.learning.distillation.moments import AdamMoments
from overheard.learning.distillation.synthetic import SyntheticExamples

TENSOR_NAMES = tuple(
    f"{kind} of {part}" for kind in ("mean", "square") for part in ("inputs", "labels", "rates")
)


def write_moments(folder: Path, number: int, moments: AdamMoments) -> None:
    """Write the state after a round, and remove the state of two rounds before.

    Raises:
        OutputError: if it cannot be written.

    """
    tensors = dict(zip(TENSOR_NAMES, (*moments.mean, *moments.square), strict=True))
    content = to_safetensors({"steps": moments.steps.float(), **tensors})
    write_bytes(_path(folder, number), content)
    _path(folder, number - 2).unlink(missing_ok=True)


def read_moments(folder: Path, number: int, like: AdamMoments) -> AdamMoments:
    """Read the state after a round.

    Raises:
        OutputError: if it is missing or of another run, so that the run cannot continue.

    """
    path = _path(folder, number)
    expected = dict(zip(TENSOR_NAMES, (*like.mean, *like.square), strict=True))
    shapes = {name: tuple(one.shape) for name, one in expected.items()}
    shapes["steps"] = tuple(like.steps.shape)
    try:
        read = read_tensors(path, tuple(shapes), shapes)
    except TranscriptError as error:
        raise OutputError(
            f"{folder}: the run cannot continue after round {number}, because the optimizer "
            f"state of clients is lost ({error}); remove the folder to start again"
        ) from error
    tensors = [read[name] for name in TENSOR_NAMES]
    steps = read["steps"].to(like.steps.dtype)
    return AdamMoments(steps, SyntheticExamples(*tensors[:3]), SyntheticExamples(*tensors[3:]))


def _path(folder: Path, number: int) -> Path:
    return folder / "distillation" / f"r{number:04d}.safetensors"
