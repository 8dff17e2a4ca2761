"""Virtual clients in a plan, and the prior and names that follow from them."""

import re
from pathlib import Path

import pytest

from overheard.core.recipe import Recipe
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from overheard.plans.plan import Plan, ThreatPlan, parse_plan
from overheard.plans.virtual_plan import RecipePlan, VirtualPlan
from overheard.questions.label_shares.attacks.ldia import Ldia
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from tests.auditing.plans import DATA, TINY, TRAINING, replace_tables
from tests.plans.test_plan import GOOD, mistakes_in

GUESSES = (RecipePlan(rate=0.1), RecipePlan(rate=0.01, epochs=2, optimizer="adam"))
FULL = VirtualPlan(
    clients=300, splits=(Dirichlet(alpha=0.1), Iid()), examples=(10, 20), recipes=GUESSES
)
GUESSING = ThreatPlan(attacks=(MeanSoftmax(),), knows=("auxiliary", "model"), virtual=FULL)


def with_virtual(line: str) -> str:
    return f"{GOOD}\n[threats.virtual]\n{line}\n"


def test_a_recipe_has_all_settings_of_its_plan():
    settings = {
        "rate": 0.1,
        "epochs": 2,
        "batch": 8,
        "momentum": 0.9,
        "weight_decay": 0.01,
        "loss": "squared_error",
    }
    assert RecipePlan(**settings).recipe == Recipe(**settings)


def test_virtual_clients_are_read_as_written():
    text = with_virtual(
        'clients = 300\nheld_out = 200\nsplits = ["iid", { kind = "dirichlet", alpha = 0.1 }]\n'
        "examples = [10, 20]"
    )
    plan = parse_plan(text, "plan.toml")
    assert plan.threats[0].virtual == VirtualPlan(
        clients=300, held_out=200, splits=(Iid(), Dirichlet(alpha=0.1)), examples=(10, 20)
    )
    for one in (plan, replace_tables(TINY, threats=(GUESSING,))):
        assert parse_plan(one.toml(), "again") == one


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("clients = 0", "threats.0.virtual.clients", "must be 1 or more, got"),
        ("smallest_gain = 1.0", "threats.0.virtual.smallest_gain", "must be below 1, got"),
        ("held_out = 0", "threats.0.virtual.held_out", "must be 1 or more, got"),
        ('splits = ["by_user"]', "threats.0.virtual.splits", "splits by users"),
        ("examples = [20, 10]", "threats.0.virtual.examples", "is reversed"),
        ("recipes = [{ rate = -1 }]", "threats.0.virtual.recipes.0.rate", "must be above 0"),
        ("recipes = [{ rate = 0.1 }]", "threats.0", "remove 'recipe' from knows"),
        ("client = 3", "threats.0.virtual.client", "Extra inputs"),
    ],
)
def test_a_wrong_value_is_reported_with_its_location(line: str, place: str, words: str):
    (error,) = mistakes_in(with_virtual(line)).items()
    assert error[0] == place
    assert words in error[1]


def test_splits_by_user_are_refused_in_python_too():
    with pytest.raises(ValueError, match="splits by users"):
        VirtualPlan(splits=(ByUser(),))


def test_attack_names_have_the_settings_of_virtual_clients():
    plans = (
        VirtualPlan(),
        VirtualPlan(clients=300),
        VirtualPlan(smallest_gain=0.05),
        VirtualPlan(held_out=200),
        VirtualPlan(splits=(Iid(),)),
        VirtualPlan(splits=(Dirichlet(alpha=0.1),)),
        VirtualPlan(examples=(10, 20)),
        VirtualPlan(examples=(10, 30)),
        VirtualPlan(recipes=GUESSES[:1]),
        VirtualPlan(recipes=GUESSES),
    )
    threats = tuple(GUESSING.model_copy(update={"virtual": virtual}) for virtual in plans)
    names = [threat.attack_name(Ldia()) for threat in threats]
    assert names[0] == "ldia, without recipe"
    assert names[1] == "ldia, without recipe, with 300 virtual clients"
    assert len(set(names)) == len(plans)
    assert GUESSING.attack_name(Ldia()) == (
        "ldia, without recipe, with 300 virtual clients, expecting "
        "dirichlet(alpha=0.1) or iid, expecting 10 to 20 examples, guessing "
        "recipe(rate=0.1) or recipe(rate=0.01, epochs=2, optimizer=adam)"
    )
    # An attack that simulates no clients says so, and its names are unique too.
    names = [threat.attack_name(MeanSoftmax()) for threat in threats]
    assert names[1] == "mean_softmax, without recipe, not simulating (with 300 virtual clients)"
    assert len(set(names)) == len(plans)
    # Names are unique, so that one plan can have all threats.
    assert Plan(data=DATA, training=TRAINING, threats=threats).threats == threats


def test_the_threat_in_the_documentation_is_valid():
    page = (Path(__file__).parents[2] / "docs" / "threat-models.md").read_text()
    found = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    (threat,) = parse_plan(GOOD.partition("[[threats]]")[0] + found[1], "docs").threats
    assert threat.virtual.clients == 300
    assert threat.auxiliary_shift == 0.3
