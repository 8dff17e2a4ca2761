"""Small parts of a plan: release, data, plugins, retention."""

from dataclasses import dataclass
from datetime import date

import pytest

from overheard.core.defense import Defense
from overheard.core.errors import PlanError
from overheard.core.messages import Update
from overheard.data.datasets.custom import Own
from overheard.data.datasets.digits import Digits
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.iid import Iid
from overheard.plans.built_in import built_in_plan
from overheard.plans.data_plan import DataPlan
from overheard.plans.description import describe_plan
from overheard.plans.plan import parse_plan
from overheard.plans.plugin_facts import plugin_facts
from overheard.plans.registries import ATTACKS, DEFENSES, questions, score_measure
from overheard.plans.release_plan import ReleasePlan
from overheard.plans.retention import Period, Retention, parse_retention
from tests.auditing.plans import DATA, TINY

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


def test_a_precision_is_that_of_the_recipe_and_is_told() -> None:
    usual = built_in_plan()
    assert usual.training.recipe.precision == "float32"
    assert "precision" not in usual.toml()
    assert "GPU" not in describe_plan(usual)
    training = usual.training.model_copy(update={"precision": "tf32"})
    rounded = usual.model_copy(update={"training": training})
    assert parse_plan(rounded.toml(), "again") == rounded
    assert rounded.training.recipe.precision == "tf32"
    assert repr(rounded.training.recipe).endswith(", precision='tf32')")
    assert "in tf32 where a GPU computes" in describe_plan(rounded)
    with pytest.raises(PlanError, match="precision"):
        parse_plan(rounded.toml().replace("tf32", "fp8"), "plan")


@pytest.mark.parametrize(
    ("source", "split", "is_balanced"),
    [
        ({"kind": "own", "reference": "a.csv"}, "iid", False),
        ({"kind": "own", "reference": "a.csv"}, {"kind": "iid", "fluctuation": 0.2}, False),
        ({"kind": "own", "reference": "a.csv"}, {"kind": "iid", "balanced": True}, True),
        (Own("a.csv"), Iid(), True),
        ("digits", "iid", True),
        (Digits(), {"kind": "iid", "balanced": False}, False),
    ],
)
def test_iid_follows_the_shares_of_custom_data_unless_said_otherwise(
    source: object, split: object, is_balanced: bool
) -> None:
    plan = DataPlan.model_validate(
        {"source": source, "split": split, "clients": 2, "examples": 5}
    )
    assert isinstance(plan.split, Iid)
    assert plan.split.balanced == is_balanced
    again = DataPlan.model_validate(plan.model_dump(exclude_none=True))
    assert again == plan


@pytest.mark.parametrize("plugin", ATTACKS.plugins().values(), ids=lambda one: one.name)
def test_every_attack_tells_its_question_needs_training_and_cost(plugin):
    facts = plugin_facts(plugin)
    assert list(facts) == ["Question", "Needs", "Trained on", "Adapts to defenses", "Cost"]
    assert all(facts.values())
    for need in plugin.needs:
        assert need.description in facts["Needs"]


@pytest.mark.parametrize("plugin", DEFENSES.plugins().values(), ids=lambda one: one.name)
def test_every_defense_tells_what_it_changes_and_whom_it_trusts(plugin):
    facts = plugin_facts(plugin)
    assert all(facts.values())
    assert facts["Could be skipped by"] == plugin.switched_off_by


def test_a_split_tells_that_it_needs_users():
    assert "one user" in plugin_facts(ByUser)["Clients"]
    assert plugin_facts(Iid) == {}


def test_one_period_is_for_messages_and_results():
    month = Period(1, "month")
    assert parse_retention("1 month") == Retention(month, month)


def test_periods_are_told_apart_in_any_order_and_one_may_be_missing():
    both = Retention(Period(30, "day"), Period(3, "year"))
    assert parse_retention("messages 30 days, results 3 years") == both
    assert parse_retention("results 3 years,  messages 30 days") == both
    assert parse_retention("results 2 weeks") == Retention(None, Period(2, "week"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "as long as needed",
        "0 days",
        "-3 days",
        "5000 days",
        "messages 1 day, messages 2 days",
        "messages 1 day; results 2 days",
        "30",
        "days 30",
    ],
)
def test_other_forms_are_refused_with_the_right_one(text: str):
    with pytest.raises(ValueError, match=r"messages 30 days|at most 1000|at least 1"):
        parse_retention(text)
    with pytest.raises(ValueError, match="retention"):
        ReleasePlan(retention=text)


def test_months_and_years_end_on_a_day_of_the_calendar():
    assert Period(1, "month").after(date(2024, 1, 31)) == date(2024, 2, 29)
    assert Period(1, "year").after(date(2024, 2, 29)) == date(2025, 2, 28)
    assert Period(13, "month").after(date(2026, 12, 5)) == date(2028, 1, 5)
    assert Period(2, "week").after(date(2026, 12, 20)) == date(2027, 1, 3)


def test_describes_data_clients_model_and_training_of_a_plan():
    assert describe_plan(TINY) == (
        "3 clients with 20 to 30 examples each of digits, partitioned by dirichlet; model "
        "logistic; 2 rounds of FedAvg, 1 local epoch of sgd at learning rate 0.1 with batches "
        "of 10"
    )


def of_users(settings: KnownUserSettings) -> str:
    data = DATA.model_copy(update={"people": settings})
    return describe_plan(TINY.model_copy(update={"data": data})).partition("batches of 10")[2]


def test_describes_what_is_known_of_users():
    assert of_users(KnownUserSettings()) == (
        "; clients stand for users, and the attacker has up to 50% of each user's "
        "examples, the earlier ones"
    )
    settings = KnownUserSettings(
        prior="random",
        share=0.25,
        records=20,
        unseen=3,
        holdout=4,
        per_label=8,
        shadow_devices=True,
    )
    assert of_users(settings) == (
        "; clients stand for users, and the attacker has up to 25% of each user's examples, at "
        "random, at most 20 per user, each on a shadow device in the run; users are "
        "label-matched, with 8 private examples per label; it has no examples of 3 clients; it "
        "also has examples of 4 users known to take no part"
    )
    assert of_users(KnownUserSettings(prior="chronological_within_labels")).endswith(
        "up to 50% of each user's examples, the earlier ones of each label"
    )
    assert of_users(KnownUserSettings(prior="profile")).endswith(
        "a random 50% of all examples, as one profile per label"
    )


def test_l1_is_displayed_as_total_variation_in_percent() -> None:
    # l1 0.16 -> half of it, 0.08, in percent.
    assert score_measure("label_shares", "l1").format(0.16) == "8.0\u00a0%"


@pytest.mark.parametrize("name", questions())
def test_every_question_lists_its_headline(name: str) -> None:
    question = questions()[name]
    assert question.scorer.headline in question.measures


class Idle(Defense):
    """A defense that overrides nothing; its hook is misspelt."""

    name = "idle"
    source = "a test"
    enforced_at = "client"
    switched_off_by = "nobody"

    def on_updates(self, update: Update) -> Update:
        return update


def test_a_defense_that_overrides_no_method_is_left_out() -> None:
    with pytest.raises(TypeError, match="Idle does nothing: override one of on_data"):
        DEFENSES.check(dataclass(frozen=True)(Idle))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("enforced_at", None, "has no enforced_at"),
        ("enforced_at", "home", "enforced_at is 'home': choose one of client, server"),
        ("switched_off_by", None, "has no switched_off_by"),
    ],
)
def test_a_defense_that_does_not_say_where_it_acts_is_left_out(
    name: str, value: str | None, message: str
) -> None:
    plugin = dataclass(frozen=True)(type("Loud", (Idle,), {"on_update": print, name: value}))
    with pytest.raises(TypeError, match=message):
        DEFENSES.check(plugin)
