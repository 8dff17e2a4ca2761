"""What is said of the release of results is optional, and changes no result."""

from overheard.plans.built_in import built_in_plan
from overheard.plans.plan import parse_plan

CONTACT = '\n[release]\ncontact = "dpo@example.org"\n'


def test_a_plan_without_a_release_has_no_such_table() -> None:
    text = built_in_plan().toml()
    assert "release" not in text
    told = parse_plan(text + CONTACT, "plan")
    assert told.release.contact == "dpo@example.org"
    assert 'contact = "dpo@example.org"' in told.toml()


def test_pictures_are_asked_for_in_a_table_that_changes_no_claim() -> None:
    plan = built_in_plan()
    assert "[report]" not in plan.toml()
    asked = parse_plan(plan.toml() + "\n[report]\npictures = true\n", "plan")
    assert asked.report.pictures
    assert parse_plan(asked.toml(), "again") == asked
    assert asked.without_release() == plan.without_release()
