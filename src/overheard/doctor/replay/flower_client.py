"""A client app of Flower that is asked to train, without a server."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, final

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, Metadata, RecordDict
from flwr.app.message.message import make_message
from flwr.clientapp import ClientApp
from flwr.common import FitIns, ndarrays_to_parameters
from flwr.compat.common.recorddict_compat import fitins_to_recorddict
from torch import Tensor, nn

from overheard.core.custom_code.reference import import_reference
from overheard.core.errors import PlanError
from overheard.doctor.replay.clients import (
    Code,
    TestedClient,
    make_model,
    watch_data,
    weights_of,
)
from overheard.doctor.replay.records import RecordReplacer

CLIENTS = 2
"""The number of partitions that the app is told."""


@final
class FlowerClient(TestedClient):
    """A `ClientApp` of functions for messages, or of a function that makes clients."""

    def __init__(self, code: Code) -> None:
        self._code = code

    def start(self, number: int, records: RecordReplacer) -> None:
        """Import its code, and prepare the client with this number."""
        app = import_reference(self._code.client, "the client", PlanError)
        assert isinstance(app, ClientApp)
        self._app, self._number = app, number
        watch_data(self._code, records)
        self._model = make_model(self._code)
        node: dict[str, bool | float | int | str] = {
            "partition-id": number,
            "num-partitions": CLIENTS,
        }
        config: Any = dict(self._code.config)  # Any: checked by Flower
        self._context = Context(1, number + 1, node, RecordDict(), config)

    def start_weights(self) -> Sequence[Tensor]:
        """Return the weights that it is sent."""
        return weights_of(self._model)

    def train(self, round: int) -> Any:
        """Return its reply to a message to train."""
        config: Any = {**self._code.config, "server-round": round}  # Any: checked by Flower
        metadata = Metadata(1, str(round), 0, self._number + 1, "", "", 1000.0, 3600.0, "train")
        request = make_message(metadata, self._content(config))
        reply: Message = self._app(request, self._context)
        if reply.has_error():
            raise RuntimeError(reply.error.reason)
        return {name: dict(record) for name, record in reply.content.items()}

    def _content(self, config: Any) -> RecordDict:
        """Return a message as functions for messages get it, or as clients do."""
        arrays = _arrays(self._model)
        if vars(self._app).get("_call") is not None:
            instructions = FitIns(ndarrays_to_parameters(list(arrays.values())), config)
            return fitins_to_recorddict(instructions, keep_input=True)
        record = ArrayRecord({name: _flower_array(one) for name, one in arrays.items()})
        return RecordDict({"arrays": record, "config": ConfigRecord(config)})


# Any: a model of the user's code.
def _arrays(model: Any) -> dict[str, Any]:
    state = model.state_dict() if isinstance(model, nn.Module) else deepcopy(model)
    named = state.items() if isinstance(state, Mapping) else enumerate(state)
    return {
        str(name): one.detach().numpy().copy() if isinstance(one, Tensor) else np.asarray(one)
        for name, one in named
    }


def _flower_array(array: Any) -> Any:
    from flwr.app import Array

    return Array(array)
