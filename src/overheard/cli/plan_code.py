"""Says which code of others a plan runs, before it runs, or refuses it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from overheard.cli.terminal import escaped_text
from overheard.core.custom_code.reference import is_code_refused
from overheard.core.errors import PlanError

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.plans.named_code import NamedCode
    from overheard.plans.plan import Plan


def find_code(plan: "Plan") -> "tuple[NamedCode, ...]":
    """Return the code of others that a plan names.

    Raises:
        PlanError: if there is any, and --no-code refuses it.

    """
    from overheard.plans.named_code import named_code

    found = named_code(plan)
    if found and is_code_refused():
        raise PlanError(
            "the plan names code of others, which --no-code refuses: "
            f"{'; '.join(map(str, found))}. Read it, and leave out --no-code if you trust it"
        )
    return found


def print_code(plan: "Plan", console: Console) -> None:
    """Print the code of others that a plan names; see `find_code`."""
    for line in describe_code(find_code(plan)):
        console.print(escaped_text(line), soft_wrap=True)


def describe_code(found: "tuple[NamedCode, ...]") -> Iterator[str]:
    """Return a line of plain text for each."""
    if found:
        yield "The plan runs code that is not Overheard's, which can do all that you can:"
        yield from (f"  {one}" for one in found)
