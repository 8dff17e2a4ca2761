"""The officer's own words for the annex, in a file that is read and never overwritten."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

from pydantic import Field

from overheard.disk.writing import write_new_text
from overheard.plans.strict_model import StrictModel, read_toml

OFFICER_FILE = "officer.toml"

Words = Annotated[str, Field(max_length=20_000)]


@final
class OfficerWords(StrictModel):
    """What only people can state; "" = not stated.

    Args:
        controller: who answers for the data.
        contact: whom readers may ask.
        purpose: what the trained model is for.
        people: whose data the clients hold.
        recipients: who gets the trained model.
        retention: how long messages and results are stored.
        license: who may use the annex, and for what.
        residual_risk: which risk remains, and whether it is acceptable.
        decision: what was decided, by whom, and when.
        author: who wrote these statements.

    """

    controller: Words = ""
    contact: Words = ""
    purpose: Words = ""
    people: Words = ""
    recipients: Words = ""
    retention: Words = ""
    license: Words = ""
    residual_risk: Words = ""
    decision: Words = ""
    author: Words = ""


CONTROLLER = "the controller"

OFFICER = "the data-protection officer"


@final
@dataclass(frozen=True, slots=True)
class StatedField:
    """A statement, or who has to make it.

    Args:
        title: what is stated.
        text: the statement; "" = nobody stated it.
        stated_in: where it is stated, such as "the plan".
        owner: who has to state it.

    """

    title: str
    text: str
    stated_in: str
    owner: str

    @property
    def shown_text(self) -> str:
        """The statement, or that it is to be filled in."""
        return self.text or f"To be filled in by {self.owner}."


RELEASE_TITLES = {
    "controller": "Answers for the data",
    "contact": "Contact",
    "purpose": "Purpose of the model",
    "people": "Whose data",
    "recipients": "Who gets the model",
    "retention": "How long messages and results are stored",
}
"""Fields that the plan may state in its table `release` as well."""


def release_fields(
    words: OfficerWords, release: Mapping[str, str]
) -> Mapping[str, StatedField]:
    """Return the context of the release by field; the officer's words replace the plan's."""
    planned = {name: release.get(name, "").strip() for name in RELEASE_TITLES}
    stated = {
        name: _field(title, str(getattr(words, name)), planned[name], CONTROLLER)
        for name, title in RELEASE_TITLES.items()
    }
    return {
        **stated,
        "license": _field("Use of this annex", words.license, "", CONTROLLER),
        "author": _field("Author of the statements", words.author, "", OFFICER),
    }


def _field(title: str, own: str, planned: str, owner: str) -> StatedField:
    text = own.strip()
    stated_in = OFFICER_FILE if text else "the plan" if planned else ""
    return StatedField(title, text or planned, stated_in, owner)


def read_officer_words(folder: Path) -> OfficerWords:
    """Return the words in the folder's file; none if there is no file.

    Raises:
        PlanError: if the file cannot be read or is invalid; it lists all errors with their
            locations.

    """
    path = folder / OFFICER_FILE
    if not path.exists():
        return OfficerWords()
    return read_toml(OfficerWords, path, "list of the officer's statements")


def write_officer_file(folder: Path, *, is_private: bool = True) -> None:
    """Write an empty file to fill in, unless there is one.

    Args:
        folder: the folder of the evidence.
        is_private: whether it is for the user alone, see `write_bytes`.

    Raises:
        OutputError: if the folder cannot be written.

    """
    path = folder / OFFICER_FILE
    write_new_text(path, EMPTY_FILE, inside=folder, is_private=is_private)


EMPTY_FILE = '''\
# Your own words for the annex: what no measurement can tell.

# Write between the quotation marks, and run `overheard evidence` again.
# Overheard reads this file and never overwrites it.
# An empty text is printed as "To be filled in".

# Who answers for the data, and whom readers may ask.
controller = ""
contact = ""

# What the trained model is for, whose data the clients hold, and who gets the model.
purpose = ""
people = ""
recipients = ""

# How long messages, models and results are stored, and who deletes them.
retention = ""

# Who may use this annex, and for what.
license = ""

# Which risk remains after the results, and why it is or is not acceptable.
residual_risk = """
"""

# What was decided, by whom, and when.
decision = """
"""

# Who wrote these statements.
author = ""
'''
