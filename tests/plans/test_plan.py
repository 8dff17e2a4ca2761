"""Plans are read strictly, and every mistake is told at once with its place."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.data.datasets.digits import Digits
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.partition.people import People
from overheard.data.partition.schedule import DataShift, Schedule
from overheard.defenses.dropout import Dropout
from overheard.defenses.noise import Noise
from overheard.learning.distillation.methods.flip import Flip
from overheard.plans.built_in import built_in_plan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, parse_plan, read_plan
from overheard.plans.virtual import VirtualPlan
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from tests.auditing.peopled import Resemblance
from tests.auditing.plans import DATA, OPEN, SERVER_ALONE, SMALL, TINY, TRAINING

GOOD = """
[data]
source = "digits"
split = { kind = "dirichlet", alpha = 1 }
clients = 3
examples = [20, 30]

[training]
model = "logistic"
rounds = 2
rate = 0.1

[[threats]]
attacks = ["decaf"]
"""


def mistakes_in(text: str) -> dict[str, str]:
    """What parse_plan says about each place."""
    with pytest.raises(PlanError) as refused:
        parse_plan(text, "plan.toml")
    first, *lines = str(refused.value).splitlines()
    assert first == f"plan.toml: {len(lines)} to mend"
    return dict(line.strip().split(": ", maxsplit=1) for line in lines)


def with_line(line: str, after: str = "clients = 3") -> str:
    return GOOD.replace(after, f"{after}\n{line}")


def test_the_built_in_plan_is_a_plan():
    plan = built_in_plan()
    assert plan.data.source.name == "digits"
    assert plan.arms[0].defenses == ()


@pytest.mark.parametrize(
    "plan", [SMALL, TINY, built_in_plan()], ids=["small", "tiny", "built in"]
)
def test_a_plan_written_as_toml_is_read_back_the_same(plan: Plan):
    assert parse_plan(plan.toml(), "plan.toml") == plan
    assert parse_plan(plan.toml(), "plan.toml").toml() == plan.toml()


def test_the_resolved_plan_spells_out_every_default():
    tables = tomllib.loads(parse_plan(GOOD, "plan.toml").toml())
    assert tables["training"]["optimizer"] == "sgd"
    assert tables["data"]["split"] == {"kind": "dirichlet", "alpha": 1.0}
    assert tables["threats"][0]["attacks"][0]["calibrator"] is True
    assert tables["arms"] == [{"name": "no defense", "defenses": [], "shadows_defended": False}]
    assert tables["threats"][0]["pseudonyms"] == "run"
    assert "people" not in tables["data"]
    assert tables["seeds"] == [0]


def test_one_number_of_examples_is_a_range_of_one():
    plan = parse_plan(GOOD.replace("[20, 30]", "25"), "plan.toml")
    assert plan.data.sizes == (25, 25)


def test_arms_that_are_all_defended_get_an_undefended_one_first():
    arms = '[[arms]]\nname = "dropout"\ndefenses = ["dropout"]\n'
    plan = parse_plan(arms + GOOD, "plan.toml")
    assert [arm.name for arm in plan.arms] == ["no defense", "dropout"]


FLIP = """[[arms]]
name = "FLiP 10"
distillation = { kind = "flip", samples = 10, optimizer = "sgd" }
"""


def test_an_arm_in_which_distilled_data_travel_is_read_and_written_back():
    plan = parse_plan(FLIP + GOOD, "plan.toml")
    assert [arm.name for arm in plan.arms] == ["no defense", "FLiP 10"]
    assert plan.arms[1].distillation == Flip(samples=10, optimizer="sgd")
    assert parse_plan(plan.toml(), "p") == plan


def test_distilled_data_have_no_weights_to_defend():
    told = mistakes_in(FLIP + 'defenses = ["dropout"]\n' + GOOD)
    assert "make two arms" in told["arms.0"]


def test_what_a_distillation_cannot_be_is_told_with_its_place():
    told = mistakes_in(FLIP.replace("samples = 10", "samples = 0") + GOOD)
    assert "samples, steps, batch and at_once are 1 or more" in told["arms.0.distillation"]


def test_distilled_data_have_no_name_of_the_undefended_arm():
    told = mistakes_in(FLIP.replace("FLiP 10", "no defense") + GOOD)
    assert "rename this one" in told["arms"]


def test_an_arm_of_its_own_length_has_data_that_stay():
    arm = '[[arms]]\nname = "long"\nrounds = 9\n'
    plan = parse_plan(arm + GOOD, "p")
    assert [plan.rounds_of(one) for one in plan.arms] == [9]
    assert "data that change" in mistakes_in(arm + with_line("refresh_every = 1"))["plan"]


def test_no_shadow_device_distils():
    plan = of_people("shadow_devices = true") + "\n" + FLIP
    with pytest.raises(PlanError, match="no shadow device takes part"):
        parse_plan(plan, "p")


def test_an_undefended_arm_of_another_name_is_enough():
    assert [arm.name for arm in parse_plan('[[arms]]\nname = "plain"\n' + GOOD, "p").arms] == [
        "plain"
    ]


def test_an_unknown_key_is_told_with_its_place():
    assert mistakes_in(with_line("clinets = 3"))["data.clinets"].startswith("Extra inputs")
    assert set(mistakes_in("topic = 1\n" + GOOD)) == {"topic"}
    assert set(mistakes_in(with_line("by_rounds = true", 'attacks = ["decaf"]'))) == {
        "threats.0.by_rounds"
    }


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("clients = 3", 'clients = "3"', "data.clients"),
        ("clients = 3", "clients = 3.0", "data.clients"),
        ("clients = 3", "clients = true", "data.clients"),
        ("clients = 3", "clients = 0", "data.clients"),
        ("clients = 3", "clients = [3]", "data.clients"),
        ("clients = 3", "clients = 1000001", "data.clients"),
        ("rounds = 2", "rounds = 2147483648", "training.rounds"),
        ("rounds = 2", "rounds = 1.5", "training.rounds"),
        ("rate = 0.1", 'rate = "0.1"', "training.rate"),
        ("rate = 0.1", "rate = -0.1", "training"),
        ("rate = 0.1", "rate = inf", "training"),
        ("rate = 0.1", "rate = nan", "training"),
        ("rate = 0.1", "rate = 0.1\nmomentum = 1", "training"),
        ("rate = 0.1", "rate = 0.1\nparticipation = 0", "training.participation"),
        ("rate = 0.1", "rate = 0.1\nparticipation = nan", "training.participation"),
        ("rate = 0.1", "rate = 0.1\nfailure_rate = 1.0", "training.failure_rate"),
        ("rate = 0.1", 'rate = 0.1\noptimizer = "SGD"', "training.optimizer"),
        ('source = "digits"', "source = 3", "data.source"),
        ('source = "digits"', 'source = "digit"', "data.source"),
        ("alpha = 1", "alpha = 0", "data.split"),
        ("alpha = 1", "beta = 1", "data.split.dirichlet.beta"),
        ("examples = [20, 30]", "examples = [30, 20]", "data"),
        ("examples = [20, 30]", "", "data"),
        ("clients = 3", "", "data"),
        ('attacks = ["decaf"]', "attacks = []", "threats.0.attacks"),
        ('attacks = ["decaf"]', 'attacks = "decaf"', "threats.0.attacks"),
        ('attacks = ["decaf"]', 'attacks = ["decaf", "decav"]', "threats.0.attacks.1"),
        ('attacks = ["decaf"]', 'attacks = ["decaf", "decaf"]', "threats"),
        ("[[threats]]", "[[threats]]\nobservers = []", "threats.0.observers"),
        ("[[threats]]", '[[threats]]\nobservers = ["<b>x</b>"]', "threats.0.observers"),
        ("[[threats]]", '[[threats]]\nobservers = ["../x"]', "threats.0.observers"),
        ("[[threats]]", '[[threats]]\nobservers = ["server", "server"]', "threats.0.observers"),
        ("[[threats]]", '[[threats]]\nabout = "everyone"', "threats.0.about"),
        ("[[threats]]", '[[threats]]\nknows = ["truth"]', "threats.0.knows.0"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(right: str, wrong: str, place: str):
    assert right in GOOD
    assert list(mistakes_in(GOOD.replace(right, wrong))) == [place]


@pytest.mark.parametrize(
    ("top", "place"),
    [
        ("seeds = [0, 1, 0]", "seeds"),
        ("seeds = []", "seeds"),
        ("seeds = [-1]", "seeds.0"),
        ("seeds = [2147483648]", "seeds.0"),
        ("seeds = 3", "seeds"),
        ('arms = [{name = "a"}, {name = "A"}]', "arms"),
        ('arms = [{name = "local DP"}, {name = "local_DP"}]', "arms"),
        ('arms = [{name = "no defense", defenses = ["dropout"]}]', "arms"),
        ('arms = [{name = "../../etc"}]', "arms.0.name"),
        ('arms = [{name = "a\\nb"}]', "arms.0.name"),
        ('arms = [{name = "<b>"}]', "arms.0.name"),
        ('arms = [{name = ""}]', "arms.0.name"),
        ('arms = [{name = "twice", defenses = ["dropout", "dropout"]}]', "arms.0.defenses"),
    ],
)
def test_wrong_seeds_and_arms_are_told_with_their_place(top: str, place: str):
    assert list(mistakes_in(top + "\n" + GOOD)) == [place]


def test_every_mistake_is_told_at_once():
    text = "seeds = [1, 1]\ntopic = 1\n" + (
        GOOD.replace("clients = 3", 'clients = "3"')
        .replace("alpha = 1", "alpha = -1")
        .replace('"logistic"', '"logistics"')
        .replace('["decaf"]', '[{ kind = "decaf", steps = 0 }]')
    )
    assert set(mistakes_in(text)) == {
        "seeds",
        "topic",
        "data.clients",
        "data.split",
        "training.model",
        "threats.0.attacks.0",
    }


def test_tables_that_are_missing_are_told():
    assert set(mistakes_in("")) == {"data", "training", "threats"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[data", "not TOML"),
        ("a = 1\na = 2", "not TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "not TOML"),
        ("a = 1" + "0" * 5000, "not TOML"),
        ("title = 2024-01-01\n" + GOOD, "dates have no place"),
    ],
    ids=["open table", "key twice", "deep", "long number", "date"],
)
def test_refuses_text_that_is_no_toml(text: str, words: str):
    with pytest.raises(PlanError, match=f"^plan.toml: {words}"):
        parse_plan(text, "plan.toml")


def test_refuses_files_that_cannot_be_read(tmp_path: Path):
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00title")
    for path in (tmp_path / "missing.toml", tmp_path, binary):
        with pytest.raises(PlanError, match="cannot be read as a plan") as refused:
            read_plan(path)
        assert str(path) in str(refused.value)


def test_reads_a_file_and_names_it_in_its_mistakes(tmp_path: Path):
    path = tmp_path / "plan.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert read_plan(path) == parse_plan(GOOD, "x")
    path.write_text("", encoding="utf-8")
    with pytest.raises(PlanError, match=f"^{path}: 3 to mend"):
        read_plan(path)


@pytest.mark.parametrize(("client", "number"), [(3, 1), (0, 2)])
def test_refuses_a_shift_of_no_client_or_in_no_round(client: int, number: int):
    shift = DataShift(client=client, round=number, shares=(1.0,))
    with pytest.raises(ValueError, match="lies outside of 3 clients and 2 rounds"):
        Plan(
            data=DATA.model_copy(update={"shifts": (shift,)}),
            training=TRAINING,
            threats=(SERVER_ALONE,),
        )


def test_refuses_a_shift_in_round_0():
    text = with_line("shifts = [{ client = 0, round = 0, shares = [1.0] }]")
    assert list(mistakes_in(text)) == ["data.shifts.0.round"]


def shift(settings: str, rounds: int = 9) -> str:
    text = with_line(f"shifts = [{{ client = 0, round = 2, {settings} }}]")
    return text.replace("rounds = 2", f"rounds = {rounds}")


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        ("shares = [0.5, 0.2]", "data.shifts.0", "sum to 1"),
        ("weights = [-1, 2]", "data.shifts.0", "0 or more each and not all 0"),
        ("weights = [1, 2], shares = [0.5, 0.5]", "data.shifts.0", "be combined with shares"),
        ("over = 0", "data.shifts.0.over", "greater than or equal to 1"),
        ("distortion = 1.5", "data.shifts.0.distortion", "less than or equal to 1"),
        ('new_user = "yes"', "data.shifts.0.new_user", "valid boolean"),
        ("over = 8", "plan", "rounds are numbered from 0 to 8"),
    ],
)
def test_a_shift_that_cannot_be_is_told_with_its_place(settings: str, place: str, words: str):
    mistakes = mistakes_in(shift(settings))
    assert list(mistakes) == [place]
    assert words in mistakes[place]


def test_refuses_a_shift_that_comes_while_another_is_under_way():
    first = "{ client = 0, round = 1, over = 3 }"
    text = with_line(f"shifts = [{first}, {{ client = 0, round = 3 }}]")
    said = mistakes_in(text.replace("rounds = 2", "rounds = 9"))["plan"]
    assert "data.shifts: client 0 has overlapping shifts in rounds 1" in said


def test_every_setting_of_a_shift_is_read_and_written_back():
    settings = "weights = [1, 2.5], over = 3, distortion = 0.5"
    plan = parse_plan(shift(settings), "p")
    assert plan.schedule == Schedule(
        9, None, (DataShift(0, 2, None, (1.0, 2.5), 3, distortion=0.5),)
    )
    assert parse_plan(plan.toml(), "p") == plan
    stranger = parse_plan(shift("new_user = true, shares = [100, 0]"), "p")
    assert stranger.schedule.shifts == (DataShift(0, 2, (100.0, 0.0), new_user=True),)


def test_refuses_two_kinds_of_auxiliary_examples():
    text = with_line("auxiliary = 3\nauxiliary_per_class = 3")
    assert "not both" in mistakes_in(text)["data"]


def test_an_attack_is_called_by_all_that_sets_it_apart():
    def named(**fields: Any) -> str:
        threat = ThreatPlan(attacks=(Decaf(),), **fields)
        return threat.named(threat.attacks[0])

    assert named() == "decaf"
    assert named(about="cohort") == "decaf, about the cohort"
    assert named(knows=("model",)) == "decaf, without auxiliary and recipe"
    assert named(knows=("auxiliary", "model", "recipe", "defenses")) == (
        "decaf, knowing the defenses"
    )


def test_about_the_cohort_an_observing_client_asks_about_the_others():
    def named(*observers: str) -> str:
        threat = ThreatPlan(attacks=(Decaf(),), observers=observers, about="cohort")
        return threat.named(threat.attacks[0])

    assert named("server") == "decaf, about the cohort"
    assert named("client/0") == named("server", "client/0") == "decaf, about the other clients"


def test_where_auxiliary_examples_come_from_is_part_of_the_name():
    one = ThreatPlan(attacks=(Decaf(),), auxiliary_from=FashionMnist(), auxiliary_shift=0.5)
    assert one.named(Decaf()) == (
        "decaf, auxiliary examples from fashion_mnist, auxiliary examples distorted by 0.5"
    )
    text = with_line("auxiliary_per_class = 2")
    plan = parse_plan(f'{text}auxiliary_shift = 0.25\nauxiliary_from = "digits"\n', "p")
    assert plan.threats[0].auxiliary_from == Digits()
    assert parse_plan(plan.toml(), "again") == plan


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("auxiliary_shift = 1.5", "threats.0.auxiliary_shift", "less than or equal to 1"),
        ("auxiliary_shift = nan", "threats.0.auxiliary_shift", "less than or equal to 1"),
        ('auxiliary_from = "nowhere"', "threats.0.auxiliary_from", "name one of"),
        ('auxiliary_shift = 0.5\nknows = ["model"]', "threats.0", "add 'auxiliary' to knows"),
        ('auxiliary_from = "digits"', "plan", "threats.0.auxiliary_from: say how many"),
    ],
)
def test_auxiliary_examples_that_cannot_be_are_told(line: str, place: str, words: str):
    (told,) = mistakes_in(f"{GOOD}{line}\n").items()
    assert told[0] == place
    assert words in told[1]


PEOPLED = GOOD.replace('{ kind = "dirichlet", alpha = 1 }', '"by_user"').replace(
    "[training]", "[data.people]\n\n[training]"
)


def of_people(line: str) -> str:
    return PEOPLED.replace("[data.people]", f"[data.people]\n{line}")


def test_every_setting_of_people_is_read_and_written_back():
    settings = (
        'prior = "chronological_within_labels"\nshare = 0.25\nrecords = 20\nunseen = 1\n'
        "holdout = 2\nshadow_devices = true\nper_label = 3"
    )
    arm = '\n[[arms]]\nname = "plain"\nshadows_defended = true\n'
    plan = parse_plan(of_people(settings) + 'pseudonyms = "round"\n' + arm, "p")
    assert plan.data.people is not None
    assert plan.data.people == People(
        "chronological_within_labels", 0.25, 20, 1, 2, shadow_devices=True, per_label=3
    )
    assert plan.threats[0].pseudonyms == "round"
    assert plan.arms[0].shadows_defended
    assert parse_plan(plan.toml(), "p") == plan
    assert parse_plan(plan.toml(), "p").toml() == plan.toml()


def test_what_is_left_out_of_people_is_a_chronological_half():
    people = parse_plan(PEOPLED, "p").data.people
    assert people is not None
    assert people == People()


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ('prior = "earlier"', "data.people.prior", "'random', 'chronological'"),
        ("share = 1.0", "data.people", "share must lie between 0 and 1, got 1.0"),
        ("share = nan", "data.people", "share must lie between 0 and 1"),
        ("records = 0", "data.people.records", "greater than or equal to 1"),
        ("unseen = -1", "data.people.unseen", "greater than or equal to 0"),
        ("holdout = 1.5", "data.people.holdout", "valid integer"),
        ('shadow_devices = "yes"', "data.people.shadow_devices", "valid boolean"),
        ("per_label = 0", "data.people.per_label", "greater than or equal to 1"),
        ('prior = "profile"\nunseen = 1', "data.people", "does not name users: leave out"),
        ("known = 3", "data.people.known", "Extra inputs"),
    ],
)
def test_what_cannot_be_of_people_is_told_with_its_place(line: str, place: str, words: str):
    (told,) = mistakes_in(of_people(line)).items()
    assert told[0] == place
    assert words in told[1]


def test_people_are_for_splits_that_go_by_users():
    said = mistakes_in(PEOPLED.replace('"by_user"', '"iid"'))
    assert list(said) == ["data"]
    assert "by iid a client stands for no user: take a split that goes by users" in said["data"]


def test_a_client_that_is_a_person_does_not_become_another():
    shifts = "shifts = [{ client = 0, round = 1, new_user = true }]"
    said = mistakes_in(PEOPLED.replace("clients = 3", f"clients = 3\n{shifts}"))
    assert list(said) == ["data"]
    assert "a client is one person throughout: leave new_user out" in said["data"]
    # Its data may shift.
    other = shifts.replace("new_user = true", "weights = [1, 2]")
    parse_plan(PEOPLED.replace("clients = 3", f"clients = 3\n{other}"), "p")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('about = "cohort"', "pseudonyms a round hide single clients: take about = 'clients'"),
        ('observers = ["server", "client/0"]', "a client knows its own: take observers = ["),
        ('observers = ["client/0"]', "a client knows its own: take observers = ['server']"),
    ],
)
def test_pseudonyms_a_round_are_kept_from_the_server_about_clients(lines: str, words: str):
    said = mistakes_in(f'{GOOD}pseudonyms = "round"\n{lines}\n')
    assert list(said) == ["threats.0"]
    assert words in said["threats.0"]


def test_how_long_a_pseudonym_lasts_is_part_of_the_name():
    threats = (
        ThreatPlan(attacks=(Decaf(),)),
        ThreatPlan(attacks=(Decaf(),), pseudonyms="round"),
    )
    plan = Plan(data=DATA, training=TRAINING, threats=threats)
    names = [threat.named(Decaf()) for threat in plan.threats]
    assert names == ["decaf", "decaf, one pseudonym a round"]


def test_who_a_cohort_is_cannot_be_asked():
    with pytest.raises(ValueError, match="resemblance: a cohort is no person: take about ="):
        ThreatPlan(attacks=(Decaf(), Resemblance()), about="cohort")


def test_the_same_attack_may_be_tried_with_other_knowledge_and_by_others():
    threats = (
        ThreatPlan(attacks=(BiasInversion(),)),
        ThreatPlan(attacks=(BiasInversion(),), knows=("auxiliary", "model")),
        ThreatPlan(attacks=(BiasInversion(),), observers=("client/0",)),
    )
    Plan(data=DATA, training=TRAINING, threats=threats)


def test_the_same_threat_by_the_same_observers_in_another_order_is_refused():
    one = ThreatPlan(attacks=(BiasInversion(),), observers=("client/0", "server"))
    other = ThreatPlan(attacks=(BiasInversion(),), observers=("server", "client/0"))
    with pytest.raises(ValueError, match="given more than once: bias_inversion by client/0"):
        Plan(data=DATA, training=TRAINING, threats=(one, other))


def test_a_plan_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        TINY.title = "other"  # type: ignore[misc]


def test_arms_made_in_python_are_checked_alike():
    with pytest.raises(ValueError, match="given more than once"):
        ArmPlan(name="twice", defenses=(Dropout(), Dropout()))
    assert OPEN.defenses == ()


def test_its_json_schema_knows_every_table():
    schema = Plan.model_json_schema()
    assert set(schema["properties"]) == {
        "title",
        "seeds",
        "data",
        "training",
        "arms",
        "threats",
    }
    assert schema["additionalProperties"] is False
    people = schema["$defs"]["People"]["properties"]
    assert people["prior"]["enum"] == [
        "random",
        "chronological",
        "chronological_within_labels",
        "profile",
    ]
    assert schema["$defs"]["ThreatPlan"]["properties"]["pseudonyms"]["default"] == "run"
    assert schema["$defs"]["ArmPlan"]["properties"]["shadows_defended"]["default"] is False


KEYS = st.sampled_from(
    ["data", "training", "threats", "arms", "seeds", "title", "source", "split", "clients"]
) | st.text(max_size=5)
LEAVES = (
    st.integers()
    | st.floats()
    | st.booleans()
    | st.text(max_size=10)
    | st.dates()
    | st.sampled_from(["digits", "iid", "mlp", "decaf", "server", "none"])
)
TABLES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def parsed(text: str) -> Plan | None:
    try:
        return parse_plan(text, "plan.toml")
    except PlanError:
        return None


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, TABLES, max_size=5))
def test_any_toml_is_a_plan_or_a_plan_error(tables: dict[str, Any]):
    parsed(tomli_w.dumps(tables))


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_is_a_plan_or_a_plan_error(text: str):
    parsed(text)


PLACES = st.sampled_from(
    [
        ("title",),
        ("seeds",),
        ("arms",),
        *(
            (("data", key))
            for key in ("source", "split", "clients", "examples", "shifts", "test")
        ),
        *((("training", key)) for key in ("model", "rounds", "rate", "batch", "participation")),
        ("threats",),
    ]
)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(PLACES, TABLES)
def test_any_value_at_any_place_of_a_good_plan_is_a_plan_or_a_plan_error(
    place: tuple[str, ...], value: Any
):
    tables: Any = tomllib.loads(GOOD)
    *way, last = place
    table = tables
    for step in way:
        table = table[step]
    table[last] = value
    plan = parsed(tomli_w.dumps(tables))
    if plan is not None:
        assert parse_plan(plan.toml(), "again") == plan


def test_a_label_says_of_an_attack_only_what_is_true_of_it():
    noisy = ArmPlan(name="noisy", defenses=(Noise(deviation=0.1),))
    bare = ArmPlan(name="bare")
    knows = ("auxiliary", "model", "recipe", "defenses")
    threat = ThreatPlan(
        attacks=(Decaf(), Amortised()), knows=knows, virtual=VirtualPlan(clients=300)
    )
    # Decaf never reads the defenses and trains no virtual client.
    assert threat.label(Decaf(), noisy) == "decaf"
    assert threat.label(Amortised(), bare) == "amortised, with 300 virtual clients"
    assert (
        threat.label(Amortised(), noisy)
        == "amortised, adapting to the defenses, with 300 virtual clients"
    )
    # The full name, which seeds and policies go by, tells all that sets the threat apart.
    assert threat.named(Decaf()) == "decaf, knowing the defenses, with 300 virtual clients"


def test_who_hears_shadow_devices_adapts_where_the_arm_defends_them():
    attack = ReidentifyMlp(updates="shadow")
    threat = ThreatPlan(attacks=(attack,))
    for are_defended in (False, True):
        arm = ArmPlan(
            name="noisy", defenses=(Noise(deviation=0.1),), shadows_defended=are_defended
        )
        assert threat.adapts(attack, arm) is are_defended


def test_the_table_of_a_plan_tells_what_is_audited_and_escapes_its_title():
    plan = built_in_plan().model_copy(update={"title": "<script>\x1b"})
    page = plan._repr_html_()
    assert "&lt;script&gt;\\x1b" in page
    for part in (
        "digits, 10 clients, shared out by dirichlet<",
        "<td>arm local DP</td><td>local_dp(noise_multiplier=0.2)</td>",
        "<td>arm no defense</td><td>no defense</td>",
        "<td>threat by the server</td><td>decaf; mean_softmax; bias_inversion</td>",
        "bias_inversion, about the other clients",
    ):
        assert part in page
