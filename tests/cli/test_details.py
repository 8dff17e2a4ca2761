"""`overheard list KIND NAME` prints all that is known of one plugin."""

from tests.cli.conftest import Command, assert_user_error


def flat(text: str) -> str:
    return " ".join(text.split())


def test_prints_facts_and_every_setting_with_range_and_default(overheard: Command):
    said = overheard("list", "attacks", "decaf")
    assert said.code == 0
    assert "Question: `label_shares`" in said.out
    assert "Adapts to defenses: to known defenses" in flat(said.out)
    assert 'solver = "nnls"' in said.out
    assert "steps of gradient descent. (whole number; at least 1)" in flat(said.out)


def test_prints_an_example_where_there_is_no_default(overheard: Command):
    said = overheard("list", "datasets", "own")
    assert 'Example: reference = "cases.parquet"' in flat(said.out)


def test_refuses_an_unknown_name_and_kinds_without_details(overheard: Command):
    assert_user_error(overheard("list", "attacks", "decfa"), "decfa", "overheard list attacks")
    assert_user_error(overheard("list", "papers", "decaf"), "no details")
