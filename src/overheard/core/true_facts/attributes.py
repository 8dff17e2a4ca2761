"""The sensitive attributes of users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class Attributes(TrueFact):
    """The values of sensitive attributes, by attribute and user."""

    attributes: Mapping[str, Mapping[str, str]]

    how_to_get = (
        "the ground truth has no attributes of users: state them (`attributes` in the truth of "
        "a recording), or ask another question"
    )

    def renamed(self, names: Renaming) -> "Attributes":
        """Return the attributes as they are: users keep their names."""
        return self
