"""Proposes the data of a first plan, and how they are read."""

from dataclasses import replace

from overheard.core.errors import PlanError
from overheard.data.dataset import DataSource
from overheard.data.datasets.custom import Own
from overheard.data.datasets.digits import Digits
from overheard.data.datasets.no_examples import NoExamples
from overheard.data.reading.float_labels import output_names
from overheard.data.reading.text_table import TABLE_SUFFIXES
from overheard.disk.reading import parse_toml
from overheard.planning.first_plan.proposed_model import fit_recording
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.text_source import with_tokens
from overheard.planning.recorded_facts import RecordedFacts
from overheard.planning.toml_notation import toml_value
from overheard.plans.data_plan import DataPlan
from overheard.plans.plugin_field import plugin_table
from overheard.plans.strict_model import parse_toml as parse_table

USUAL_SIDES = (28, 32, 224, 64, 96, 48, 128, 16, 8)
"""Usual sides of images in pixels."""

IMAGE_SIDES = (*USUAL_SIDES, *(side for side in range(4, 65) if side not in USUAL_SIDES))
"""Sides of images, in the order in which they are tried."""


def own_data(request: FirstPlanRequest) -> Own | None:
    """Return the data that the user names, read as the request says; None = none are named.

    Raises:
        PlanError: if a setting of --read is none of the source, or texts lack a tokenizer.

    """
    if request.data is None:
        return None
    own = Own(request.data, request.label)
    if request.data.endswith(TABLE_SUFFIXES):
        recording = request.recording
        kind = "classification" if recording is None else recording.task_kind
        own = replace(own, user=request.user, task=kind)
    own = with_tokens(own, request.shown, request.text, request.tokenizer, request.app)
    return _with_settings(own, request.read) if request.read else own


def propose_source(request: FirstPlanRequest) -> DataSource:
    """Return the data source of a plan; its shapes and names are guessed if none are stated."""
    recording, own = request.recording, own_data(request)
    if own is not None:
        return own
    if recording is None:
        return Digits()
    task = recording.manifest.task
    if task is None and request.shown is not None:
        shown = request.shown
        return NoExamples(shown.output_names, shown.shape, shown.vocabulary, shown.kind)
    if task is None:
        kind = recording.task_kind
        # A classifier with one output tells two classes apart.
        outputs = max(2, recording.outputs) if kind == "classification" else recording.outputs
        names = output_names(kind, outputs)
        return NoExamples(names, _guess_shape(request, recording, names), task=kind)
    return NoExamples(task.class_names, task.shape, task.vocabulary, task.kind)


def _with_settings(source: Own, lines: tuple[str, ...]) -> Own:
    """Return the source with more settings, each a line of TOML.

    Raises:
        PlanError: if a line is no setting of the source.

    """
    try:
        given = parse_toml("\n".join(lines), "--read", PlanError)
    except PlanError as error:
        raise PlanError(
            f"{error}: give a setting of the data source as in a plan, such as "
            "--read 'header_lines = 0'"
        ) from error
    kept = {key: value for key, value in plugin_table(source).items() if key not in given}
    settings = (f"{key} = {toml_value(value)}" for key, value in kept.items())
    text = "\n".join(("[source]", *settings, *lines))
    read = parse_table(DataPlan, text, "--read", "data source").source
    assert isinstance(read, Own)
    return read


def _guess_shape(
    request: FirstPlanRequest, recording: RecordedFacts, names: tuple[str, ...]
) -> tuple[int, ...]:
    """Return the shape of an input for which a known network has the recorded tensors."""
    first = next(iter(recording.shapes.values()))
    # The second are those of a kernel of inputs x outputs.
    shapes: list[tuple[int, ...]] = [(first[1],), (first[0],)] if len(first) == 2 else []
    if len(first) == 4:
        channels = (first[1], first[2])
        shapes = [(one, side, side) for one in channels for side in IMAGE_SIDES]
    networks, _ = request.networks()
    for shape in shapes:
        dataset = NoExamples(names, shape, task=recording.task_kind).load(None)
        if any(not fit_recording(one, dataset, request).difference for one in networks):
            return shape
    return (1,)
