"""Turns an error in custom code or in a plugin into one message."""

from collections.abc import Iterator
from contextlib import contextmanager

from overheard.core.custom_code.failure import describe_failure, is_from_custom_code
from overheard.core.errors import PlanError


@contextmanager
def explain_failures(what: str, contract: str) -> Iterator[None]:
    """Explain an error of the block that code outside of Overheard raised.

    Errors of Overheard itself pass unchanged.

    Args:
        what: what runs in the block, such as "defense noise: on_update".
        contract: what it must take and return.

    Raises:
        PlanError: with the cause, its place and the contract.

    """
    try:
        yield
    except (PlanError, MemoryError):
        raise
    except Exception as error:
        if not is_from_custom_code(error):
            raise
        raise PlanError(f"{what} failed, {describe_failure(error)}: {contract}") from error
