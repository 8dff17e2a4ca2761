"""The sensitive attributes of users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.true_facts.stated import refuse_unprintable
from overheard.core.truth import Renaming, TrueFact


@final
@dataclass(frozen=True, slots=True)
class Attributes(TrueFact):
    """The values of sensitive attributes, by attribute and user."""

    attributes: Mapping[str, Mapping[str, str]]

    key = "attributes"
    form = Mapping[str, Mapping[str, str]]
    how_to_get = (
        "the ground truth has no attributes of users: state them (`attributes` in the truth of "
        "a recording), or ask another question"
    )

    @classmethod
    def from_json(cls, stated: Mapping[str, Mapping[str, str]]) -> "Attributes":
        """Return the attributes that truth.json states."""
        refuse_unprintable("attribute", stated)
        for attribute, values in stated.items():
            refuse_unprintable("user", values)
            refuse_unprintable(f"value of {attribute}", values.values())
        return cls(stated)

    def to_json(self) -> Mapping[str, Mapping[str, str]]:
        """Return the values by attribute and user."""
        return self.attributes

    def renamed(self, names: Renaming) -> "Attributes":
        """Return the attributes as they are: users keep their names."""
        return self
