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
