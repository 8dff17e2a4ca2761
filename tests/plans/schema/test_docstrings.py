"""Descriptions come from docstrings, whole and of the right setting."""

from dataclasses import dataclass

from overheard.plans.schema.docstrings import read_arguments, read_description


@dataclass
class _Vehicle:
    """A thing on wheels.

    It moves.

    Args:
        wheels: how many it has.
        owner: who has it;
            "nobody": it is free.

    Returns:
        nothing: at all.

    """

    wheels: int
    owner: str


@dataclass
class _Car(_Vehicle):
    """A car.

    Args:
        wheels: always four.

    """


def test_a_class_is_described_by_the_paragraphs_before_its_sections():
    assert read_description(_Vehicle) == "A thing on wheels.\n\nIt moves."


def test_a_setting_is_described_by_all_lines_of_its_entry():
    assert read_arguments(_Vehicle) == {
        "wheels": "how many it has.",
        "owner": 'who has it; "nobody": it is free.',
    }


def test_settings_of_a_parent_are_described_too_and_a_child_can_say_more():
    assert read_arguments(_Car)["wheels"] == "always four."
    assert read_arguments(_Car)["owner"].startswith("who has it")
