"""The code of others that a plan names, found without importing it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.core.custom_code.reference import find_module_file, references_of
from overheard.plans.plan import Plan
from overheard.plans.plugin_packages import plan_parts


@final
@dataclass(frozen=True, slots=True)
class NamedCode:
    """A function or class of others that an audit of a plan runs.

    Args:
        place: where the plan names it, such as "training.model".
        reference: "package.module:name".
        package: the installed package that offers it as a plugin, with its version; "" = it is
            no plugin.
        file: the file of its module; None = none was found.

    """

    place: str
    reference: str
    package: str
    file: str | None

    def __str__(self) -> str:
        plugin = f", a plugin of {self.package}" if self.package else ""
        found = "no file was found" if self.file is None else self.file
        return f"{self.place}: {self.reference}{plugin} ({found})"


def named_code(plan: Plan) -> tuple[NamedCode, ...]:
    """Return the code of others that a plan names: references, and plugins of other packages.

    Modules are looked for as an audit would, and not imported. What they import in turn is not
    listed.
    """
    return tuple(_named_code(plan))


def _named_code(plan: Plan) -> Iterator[NamedCode]:
    for part in plan_parts(plan):
        if part.origin is not None:
            kind = type(part.plugin)
            reference = f"{kind.__module__}:{kind.__name__}"
            yield NamedCode(part.place, reference, str(part.origin), _file(reference))
        for reference in references_of(part.plugin):
            yield NamedCode(part.place, reference, "", _file(reference))


def _file(reference: str) -> str | None:
    file = find_module_file(reference.partition(":")[0], Path.cwd())
    return None if file is None else str(file)
