"""What a user gives for a first plan, and what its networks show."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from overheard.core.errors import PlanError
from overheard.learning.models.custom import Own
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.networks.network_fit import with_outputs_of_head
from overheard.planning.networks.shown_task import ShownTask, show_task
from overheard.planning.recorded_facts import RecordedFacts


@final
@dataclass(frozen=True, slots=True)
class FirstPlanRequest:
    """What a user gives for a first plan.

    Args:
        recording: facts of a finished recording; None = simulate a federation.
        app: what a Flower app or an NVFlare job states; None = none given.
        data: a file or a "package.module:function"; None = none given.
        label: the column of the labels in a table, or in a folder of datasets.
        user: the column of the users in a table; None = unknown.
        model: "package.module:name" of a function or class; None = not given.
        read: settings of how the data are read, each a line of TOML.
        candidates: a file with records whose membership is asked; None = none.
        text: the column of the texts in a table; None = none given.
        tokenizer: "package.module:function" that makes token ids of a text; None = none given.
        shown: what the network shows of its task; None = not known.

    """

    recording: RecordedFacts | None = None
    app: FederatedApp | None = None
    data: str | None = None
    label: str = "label"
    user: str | None = None
    model: str | None = None
    read: tuple[str, ...] = ()
    candidates: str | None = None
    text: str | None = None
    tokenizer: str | None = None
    shown: ShownTask | None = None

    def networks(self) -> tuple[tuple[Own, ...], Path | None]:
        """Return the networks that may be that of a recording, and where they must lie.

        Raises:
            PlanError: if the network that was given is no name of code.

        """
        if self.model is not None:
            return (given_model(self.model),), None
        app = self.app or FederatedApp()
        return app.models(), app.folder


def with_facts_of_networks(request: FirstPlanRequest) -> FirstPlanRequest:
    """Return the request with what its networks show of the recording.

    That is the outputs of a last layer that each client keeps, and the task. The networks are
    imported, built and run on one example, which runs their code.
    """
    recording = request.recording
    if recording is None:
        return request
    networks, folder = request.networks()
    if request.data is None:
        recording = with_outputs_of_head(recording, networks, folder)
    shown = show_task(networks, recording, folder)
    return replace(request, recording=recording, shown=shown)


def given_model(reference: str) -> Own:
    """Return the network that `--model` names.

    Raises:
        PlanError: if it is no name of code.

    """
    try:
        return Own(reference)
    except ValueError as error:
        raise PlanError(f"--model: {error}") from error
