"""Plans are validated strictly, and all errors are listed with their locations."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import PlanError
from overheard.data.datasets.digits import Digits
from overheard.data.datasets.mnist import FashionMnist
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift, Schedule
from overheard.defenses.dropout import Dropout
from overheard.defenses.noise import Noise
from overheard.plans.built_in import built_in_plan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, parse_plan, read_plan
from overheard.plans.virtual_plan import VirtualPlan
from overheard.questions.identity.attacks.reidentify import ReidentifyMlp
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.auditing.plans import DATA, NO_DEFENSE, SERVER_THREAT, SMALL, TINY, TRAINING
from tests.auditing.user_plans import Resemblance

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
    """Return the errors of parse_plan by location."""
    with pytest.raises(PlanError) as refused:
        parse_plan(text, "plan.toml")
    first, *lines = str(refused.value).splitlines()
    assert first == f"plan.toml: {len(lines)} error{'s' if len(lines) > 1 else ''} to fix"
    return dict(line.strip().split(": ", maxsplit=1) for line in lines)


def with_line(line: str, after: str = "clients = 3") -> str:
    return GOOD.replace(after, f"{after}\n{line}")


@pytest.mark.parametrize(
    "plan", [SMALL, TINY, built_in_plan()], ids=["small", "tiny", "built in"]
)
def test_a_plan_is_read_as_written(plan: Plan):
    assert parse_plan(plan.toml(), "plan.toml") == plan
    assert parse_plan(plan.toml(), "plan.toml").toml() == plan.toml()


def test_an_undefended_arm_is_added_first():
    arms = '[[arms]]\nname = "dropout"\ndefenses = ["dropout"]\n'
    plan = parse_plan(arms + GOOD, "plan.toml")
    assert [arm.name for arm in plan.arms] == ["no defense", "dropout"]


FLIP = """[[arms]]
name = "FLiP 10"
distillation = { kind = "flip", samples = 10, optimizer = "sgd" }
"""


def test_refuses_an_arm_with_rounds_of_its_own_and_changing_data():
    arm = '[[arms]]\nname = "long"\nrounds = 9\n'
    plan = parse_plan(arm + GOOD, "p")
    assert [plan.rounds_of(one) for one in plan.arms] == [9]
    assert "changing data" in mistakes_in(arm + with_line("refresh_every = 1"))["plan"]


def test_refuses_shadow_devices_with_distillation():
    plan = of_users("shadow_devices = true") + "\n" + FLIP
    with pytest.raises(PlanError, match="cannot take part in distillation"):
        parse_plan(plan, "p")


def test_an_unknown_key_is_reported_with_its_location():
    assert mistakes_in(with_line("clinets = 3"))["data.clinets"].startswith("Extra inputs")
    # A key of another table is not proposed in its own place.
    assert "did you mean 'rate'" not in mistakes_in(with_line("rate = 3"))["data.rate"]
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
        ("rate = 0.1", "rate = -0.1", "training.rate"),
        ("rate = 0.1", "rate = inf", "training.rate"),
        ("rate = 0.1", "rate = nan", "training.rate"),
        ("rate = 0.1", "rate = 0.1\nmomentum = 1", "training.momentum"),
        ("rate = 0.1", "rate = 0.1\nparticipation = 0", "training.participation"),
        ("rate = 0.1", "rate = 0.1\nparticipation = nan", "training.participation"),
        ("rate = 0.1", "rate = 0.1\nfailure_rate = 1.0", "training.failure_rate"),
        ("rate = 0.1", 'rate = 0.1\noptimizer = "SGD"', "training.optimizer"),
        ('source = "digits"', "source = 3", "data.source"),
        ('source = "digits"', 'source = "digit"', "data.source"),
        ("alpha = 1", "alpha = 0", "data.split.dirichlet.alpha"),
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
def test_a_wrong_value_is_reported_with_its_location(right: str, wrong: str, place: str):
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
def test_wrong_seeds_and_arms_are_reported_with_their_location(top: str, place: str):
    assert list(mistakes_in(top + "\n" + GOOD)) == [place]


def test_all_errors_are_reported_at_once():
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
        "data.split.dirichlet.alpha",
        "training.model",
        "threats.0.attacks.0.decaf.steps",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[data", "not TOML"),
        ("a = 1\na = 2", "not TOML"),
        ("a = " + "[" * 5000 + "]" * 5000, "not TOML"),
        ("a = 1" + "0" * 5000, "not TOML"),
        ("title = 2024-01-01\n" + GOOD, "a plan must not contain dates"),
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
        with pytest.raises(PlanError, match=r"cannot be read|no text in UTF-8") as refused:
            read_plan(path)
        assert str(path) in str(refused.value)


@pytest.mark.parametrize(("client", "number"), [(3, 1), (0, 2)])
def test_refuses_a_shift_of_an_unknown_client_or_round(client: int, number: int):
    shift = DataShift(client=client, round=number, shares=(1.0,))
    with pytest.raises(ValueError, match="is out of range: there are 3 clients and 2 rounds"):
        Plan(
            data=DATA.model_copy(update={"shifts": (shift,)}),
            training=TRAINING,
            threats=(SERVER_THREAT,),
        )


def shift(settings: str, rounds: int = 9) -> str:
    text = with_line(f"shifts = [{{ client = 0, round = 2, {settings} }}]")
    return text.replace("rounds = 2", f"rounds = {rounds}")


def test_all_settings_of_a_shift_are_read_as_written():
    settings = "weights = [1, 2.5], over = 3, distortion = 0.5"
    plan = parse_plan(shift(settings), "p")
    assert plan.schedule == Schedule(
        9, None, (DataShift(0, 2, None, (1.0, 2.5), 3, distortion=0.5),), "natural", "natural"
    )
    assert parse_plan(plan.toml(), "p") == plan
    plan_with_new_user = parse_plan(shift("new_user = true, shares = [100, 0]"), "p")
    assert plan_with_new_user.schedule.shifts == (DataShift(0, 2, (100.0, 0.0), new_user=True),)


def test_attack_names_have_targets_and_knowledge():
    def named(**fields: Any) -> str:
        threat = ThreatPlan(attacks=(Decaf(),), **fields)
        return threat.attack_name(threat.attacks[0])

    assert named() == "decaf"
    assert named(about="cohort") == "decaf, about the cohort"
    assert named(knows=("model",)) == "decaf, without auxiliary and recipe"
    cohorts = ("auxiliary", "model", "recipe", "cohorts")
    assert named(knows=cohorts, observers=("late/3",)) == "decaf, knowing who took part"
    assert named(knows=cohorts) == "decaf"  # the server knows it in any case
    assert named(knows=("auxiliary", "model", "recipe", "defenses")) == (
        "decaf, knowing defenses of training"
    )


def test_an_observing_clients_cohort_is_named_the_other_clients():
    def named(*observers: str) -> str:
        threat = ThreatPlan(attacks=(Decaf(),), observers=observers, about="cohort")
        return threat.attack_name(threat.attacks[0])

    assert named("server") == "decaf, about the cohort"
    assert named("client/0") == named("server", "client/0") == "decaf, about the other clients"


def test_attack_names_have_the_source_of_auxiliary_examples():
    one = ThreatPlan(attacks=(Decaf(),), auxiliary_from=FashionMnist(), auxiliary_shift=0.5)
    assert one.attack_name(Decaf()) == (
        "decaf, auxiliary examples from fashion_mnist, auxiliary examples distorted by 0.5"
    )
    text = with_line("auxiliary_per_class = 2")
    plan = parse_plan(f'{text}auxiliary_shift = 0.25\nauxiliary_from = "digits"\n', "p")
    assert plan.threats[0].auxiliary_from == Digits()
    assert parse_plan(plan.toml(), "again") == plan


PEOPLED = GOOD.replace('{ kind = "dirichlet", alpha = 1 }', '"by_user"').replace(
    "[training]", "[data.people]\n\n[training]"
)


def of_users(line: str) -> str:
    return PEOPLED.replace("[data.people]", f"[data.people]\n{line}")


def test_all_settings_of_people_are_read_as_written():
    settings = (
        'prior = "chronological_within_labels"\nshare = 0.25\nrecords = 20\nunseen = 1\n'
        "holdout = 2\nshadow_devices = true\nper_label = 3"
    )
    arm = '\n[[arms]]\nname = "plain"\nshadows_defended = true\n'
    plan = parse_plan(of_users(settings) + 'pseudonyms = "round"\n' + arm, "p")
    assert plan.data.people is not None
    assert plan.data.people == KnownUserSettings(
        "chronological_within_labels", 0.25, 20, 1, 2, shadow_devices=True, per_label=3
    )
    assert plan.threats[0].pseudonyms == "round"
    assert plan.arms[0].shadows_defended
    assert parse_plan(plan.toml(), "p") == plan
    assert parse_plan(plan.toml(), "p").toml() == plan.toml()


DISTILLED = FLIP + GOOD
ROUND_NAMES = f'{GOOD}pseudonyms = "round"\n'
OVERLAP = "shifts = [{ client = 0, round = 1, over = 3 }, { client = 0, round = 3 }]"

INVALID = [
    # Text, place, words of the error.
    (FLIP + 'defenses = ["dropout"]\n' + GOOD, "arms.0", "make two arms"),
    (DISTILLED.replace("samples = 10", "samples = 0"), "arms.0.distillation.flip.samples",
     "must be 1 or more, got 0"),
    (DISTILLED.replace("FLiP 10", "no defense"), "arms", "rename this arm"),
    (shift("shares = [0.5, 0.2]"), "data.shifts.0", "sum to 1"),
    (shift("weights = [-1, 2]"), "data.shifts.0", "0 or more each and not all 0"),
    (shift("weights = [1, 2], shares = [0.5, 0.5]"), "data.shifts.0",
     "be combined with shares"),
    (shift("over = 0"), "data.shifts.0.over", "must be 1 or more, got"),
    (shift("distortion = 1.5"), "data.shifts.0.distortion", "must be at most 1, got"),
    (shift('new_user = "yes"'), "data.shifts.0.new_user", "must be true or false, got"),
    (shift("over = 8"), "plan", "rounds are numbered from 0 to 8"),
    (with_line(OVERLAP).replace("rounds = 2", "rounds = 9"), "plan",
     "data.shifts: client 0 has overlapping shifts in rounds 1"),
    (with_line("auxiliary = 3\nauxiliary_per_class = 3"), "data", "not both"),
    (f"{GOOD}auxiliary_shift = 1.5\n", "threats.0.auxiliary_shift", "must be at most 1, got"),
    (f"{GOOD}auxiliary_shift = nan\n", "threats.0.auxiliary_shift", "must be at most 1, got"),
    (f'{GOOD}auxiliary_from = "nowhere"\n', "threats.0.auxiliary_from", "name one of"),
    (f'{GOOD}auxiliary_shift = 0.5\nknows = ["model"]\n', "threats.0",
     "add 'auxiliary' to knows"),
    (f'{GOOD}auxiliary_from = "digits"\n', "plan", "threats.0.auxiliary_from: give the number"),
    (of_users('prior = "earlier"'), "data.people.prior", "'random', 'chronological'"),
    (of_users("share = 1.0"), "data.people.share", "must be below 1, got 1.0"),
    (of_users("share = nan"), "data.people.share", "must be"),
    (of_users("records = 0"), "data.people.records", "must be 1 or more, got"),
    (of_users("unseen = -1"), "data.people.unseen", "must be 0 or more, got"),
    (of_users("holdout = 1.5"), "data.people.holdout", "must be a whole number, got"),
    (of_users('shadow_devices = "yes"'), "data.people.shadow_devices",
     "must be true or false, got"),
    (of_users("per_label = 0"), "data.people.per_label", "must be 1 or more, got"),
    (of_users('prior = "profile"\nunseen = 1'), "data.people",
     "does not name users: leave out"),
    (of_users("known = 3"), "data.people.known", "Extra inputs"),
    (PEOPLED.replace('"by_user"', '"iid"'), "data",
     "with the split iid clients do not stand for users: choose a split by users"),
    (f'{ROUND_NAMES}about = "cohort"\n', "threats.0",
     "pseudonyms by round are for single clients: set about = 'clients'"),
    (f'{ROUND_NAMES}observers = ["server", "client/0"]\n', "threats.0",
     "hide clients from the server or from the network only: set observers = ["),
    (f'{ROUND_NAMES}observers = ["client/0"]\n', "threats.0",
     "hide clients from the server or from the network only: set observers = ['server']"),
    (GOOD + "\n[margins]\nl2 = 0.2\n", "margins",
     "no question has a margin for l2; known: accuracy,"),
    (GOOD + "\n[margins]\nl1 = 0\n", "margins.l1", "must be above 0, got"),
    # Below an infinite margin, nothing could ever be read.
    (GOOD + "\n[margins]\nl1 = inf\n", "margins.l1", "finite"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "words"), INVALID)
def test_what_does_not_fit_is_reported_with_its_location(text: str, place: str, words: str):
    (error,) = mistakes_in(text).items()
    assert error[0] == place
    assert words in error[1]


def test_refuses_a_new_user_of_a_client_with_people():
    shifts = "shifts = [{ client = 0, round = 1, new_user = true }]"
    mistakes = mistakes_in(PEOPLED.replace("clients = 3", f"clients = 3\n{shifts}"))
    assert list(mistakes) == ["data"]
    assert "a client stands for one user in all rounds: remove new_user" in mistakes["data"]
    # Its data may shift.
    other = shifts.replace("new_user = true", "weights = [1, 2]")
    parse_plan(PEOPLED.replace("clients = 3", f"clients = 3\n{other}"), "p")


def test_refuses_to_identify_a_cohort():
    with pytest.raises(ValueError, match="resemblance: a cohort has no identity: set about ="):
        ThreatPlan(attacks=(Decaf(), Resemblance()), about="cohort")


def test_refuses_a_threat_repeated_with_reordered_observers():
    one = ThreatPlan(attacks=(BiasInversion(),), observers=("client/0", "server"))
    other = ThreatPlan(attacks=(BiasInversion(),), observers=("server", "client/0"))
    with pytest.raises(ValueError, match="given more than once: bias_inversion by client/0"):
        Plan(data=DATA, training=TRAINING, threats=(one, other))


def test_arms_are_validated_in_python_too():
    with pytest.raises(ValueError, match="given more than once"):
        ArmPlan(name="twice", defenses=(Dropout(), Dropout()))
    assert NO_DEFENSE.defenses == ()


KEYS = st.sampled_from(
    ["data", "training", "threats", "arms", "seeds", "title", "source", "split", "clients"]
) | st.text(max_size=5)
VALUES = (
    st.integers()
    | st.floats()
    | st.booleans()
    | st.text(max_size=10)
    | st.dates()
    | st.sampled_from(["digits", "iid", "mlp", "decaf", "server", "none"])
)
TABLES = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def parsed(text: str) -> Plan | None:
    try:
        return parse_plan(text, "plan.toml")
    except PlanError:
        return None


@pytest.mark.slow
@given(st.dictionaries(KEYS, TABLES, max_size=5))
def test_any_toml_is_a_plan_or_a_plan_error(tables: dict[str, Any]):
    parsed(tomli_w.dumps(tables))


@given(st.text())
def test_any_text_is_a_plan_or_a_plan_error(text: str):
    parsed(text)


LOCATIONS = st.sampled_from(
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
@given(LOCATIONS, TABLES)
def test_any_change_of_a_value_gives_a_plan_or_a_plan_error(place: tuple[str, ...], value: Any):
    tables: Any = tomllib.loads(GOOD)
    *parents, last = place
    table = tables
    for step in parents:
        table = table[step]
    table[last] = value
    plan = parsed(tomli_w.dumps(tables))
    if plan is not None:
        assert parse_plan(plan.toml(), "again") == plan


OTHERS = (Lira(), LossMembership())


def test_a_label_has_only_what_affects_the_attack():
    noisy = ArmPlan(name="noisy", defenses=(Noise(deviation=0.1),))
    bare = ArmPlan(name="bare")
    knows = ("auxiliary", "model", "recipe", "defenses")
    threat = ThreatPlan(
        attacks=(Decaf(), Amortised()), knows=knows, virtual=VirtualPlan(clients=300)
    )
    # Decaf uses neither the defenses nor virtual clients.
    assert threat.attack_label(Decaf(), noisy) == "decaf"
    assert threat.attack_label(Amortised(), bare) == "amortised, with 300 virtual clients"
    assert (
        threat.attack_label(Amortised(), noisy)
        == "amortised, adapting to the defenses, with 300 virtual clients"
    )
    # The full name, which seeds and policies use, has all differences between threats, and says
    # which of them the attack does not use.
    assert {
        attack.name: threat.attack_name(attack) for attack in (*threat.attacks, *OTHERS)
    } == {
        "amortised": "amortised, knowing the defenses, with 300 virtual clients",
        "lira": "lira, knowing the defenses, not simulating (with 300 virtual clients)",
        "decaf": "decaf, knowing defenses of training, "
        "not simulating (with 300 virtual clients)",
        "loss_membership": "loss_membership, not using the known defenses, "
        "not simulating (with 300 virtual clients)",
    }


def test_shadow_models_adapt_and_losses_do_not():
    noisy = ArmPlan(name="noisy", defenses=(Noise(deviation=0.1),))
    threat = ThreatPlan(attacks=OTHERS, knows=("auxiliary", "model", "recipe", "defenses"))
    labels = [threat.attack_label(attack, noisy) for attack in OTHERS]
    assert labels == ["lira, adapting to the defenses", "loss_membership"]


def test_attacks_on_shadow_devices_adapt_if_the_arm_defends_them():
    attack = ReidentifyMlp(updates="shadow")
    threat = ThreatPlan(attacks=(attack,))
    for are_defended in (False, True):
        arm = ArmPlan(
            name="noisy", defenses=(Noise(deviation=0.1),), shadows_defended=are_defended
        )
        assert threat.adapts_to_defenses(attack, arm) is are_defended


def test_the_html_of_a_plan_describes_it_and_escapes_its_title():
    plan = built_in_plan().model_copy(update={"title": "<script>\x1b"})
    page = plan._repr_html_()
    assert "&lt;script&gt;\\x1b" in page
    for part in (
        "digits, 10 clients, partitioned by dirichlet<",
        "<td>arm local DP</td><td>local_dp(noise_multiplier=0.2)</td>",
        "<td>arm no defense</td><td>no defense</td>",
        "<td>threat by the server</td><td>decaf; mean_softmax; bias_inversion</td>",
        "bias_inversion, about the other clients",
    ):
        assert part in page


def test_margins_are_stated_by_score() -> None:
    assert parse_plan(GOOD, "plan.toml").margins == {}
    plan = parse_plan(GOOD + "\n[margins]\nl1 = 0.2\nl1_of_cohort = 0.1\n", "plan.toml")
    assert plan.margins == {"l1": 0.2, "l1_of_cohort": 0.1}
    assert parse_plan(plan.toml(), "again") == plan


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("rate = 0.1", "rate = 0.2"),
        ("rounds = 3", "rounds = 2"),
        ("clients = 4", "clients = 3"),
    ],
)
def test_what_attackers_suppose_is_stated_before_canaries_are_read(
    written: str, instead: str
) -> None:
    text = """
[data]
source = "digits"
clients = 4
candidates = { members = 50, outsiders = 200, canaries = "labelled" }
[training]
model = "mlp"
rounds = 3
rate = 0.1
[[threats]]
attacks = ["whitened_membership"]
"""
    stated = parse_plan(text, "p").bound_settings().digest
    changed = parse_plan(text.replace(written, instead), "p")
    assert not changed.bound_settings(stated).are_as_stated
    moved = parse_plan(text.replace("digits", "mnist"), "p")
    assert moved.bound_settings(stated).are_as_stated  # its canaries have a digest of their own
