"""A grid of Flower whose clients run one after the other in this process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any, final

from overheard.core.custom_code.failure import describe_failure
from overheard.recorders.flower_api import (
    Context,
    ErrorCode,
    Grid,
    Message,
    MessageType,
    RecordDict,
)

__all__ = ["OneProcessGrid", "context_of"]

FIRST_NODE = 1_000_003
"""Node ids are large numbers, as in a run of Flower."""

RUN = 1

Value = bool | int | float | str
"""A value of a configuration."""


def context_of(node: int, config: Mapping[str, Value], **node_config: Value) -> Context:
    """Return the context of a node, or of the server, which has the number 0."""
    return Context(RUN, node, node_config, RecordDict(), dict(config))


# Without flwr installed, its classes have no types for mypy.
@final
class OneProcessGrid(Grid):  # type: ignore[misc, unused-ignore]
    """Hands each message to its client, whose state is kept between messages.

    A client that raises an error answers with the error, as in a run of Flower. `trained` is
    the number of answers to messages that ask for training, and `failure` the first error in
    place of one.

    Args:
        client_app: the app of the clients, which is called with a message and a context.
        nodes: number of clients.
        config: configuration of the run.

    """

    # Any: an app of the user.
    def __init__(
        self, client_app: Callable[..., Any], nodes: int, config: Mapping[str, Value]
    ) -> None:
        """Make the contexts of all clients."""
        self._app = client_app
        self.trained, self.failure = 0, ""
        self._numbers = count(1)
        self._replies = dict[str, Message]()
        self._contexts = {
            FIRST_NODE + 7 * number: context_of(
                FIRST_NODE + 7 * number,
                config,
                **{"partition-id": number, "num-partitions": nodes},
            )
            for number in range(nodes)
        }

    @property
    def run(self) -> Any:
        """The run, of which only the number is known."""
        return SimpleNamespace(run_id=RUN, override_config={})

    def set_run(self, run: Any) -> None:
        """Do nothing: there is one run."""

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message to a client."""
        return Message(
            content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id
        )

    def get_node_ids(self) -> Iterable[int]:
        """Return the clients."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Let clients answer messages, and return the numbers of these."""
        sent = []
        for message in messages:
            number = str(next(self._numbers))
            # Flower's own grids set it, and there is no public way.
            message.metadata.__dict__["_message_id"] = number
            self._replies[number] = self._answer(message)
            sent.append(number)
        return sent

    def pull_messages(self, message_ids: Iterable[str]) -> Sequence[Message]:
        """Return the answers to messages."""
        return [self._replies.pop(one) for one in message_ids if one in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return the answers of clients to messages."""
        return self.pull_messages(self.push_messages(messages))

    def _answer(self, message: Message) -> Message:
        from flwr.app import Error

        # An app may add a name after a dot.
        is_train = message.metadata.message_type.partition(".")[0] == MessageType.TRAIN
        # An app of the user may fail in any way.
        try:
            reply: Message = self._app(message, self._contexts[message.metadata.dst_node_id])
        except Exception as error:
            code, told = ErrorCode.CLIENT_APP_RAISED_EXCEPTION, describe_failure(error)
            if is_train:
                self.failure = self.failure or told
            return Message(Error(code, told), reply_to=message)
        self.trained += is_train
        return reply
