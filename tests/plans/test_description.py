"""The sentence that describes what was audited."""

from dataclasses import replace

from overheard.archive.manifest import Manifest
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.data.partition.candidates import CandidateSettings
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.by_user import ByUser
from overheard.plans.data_plan import DataPlan
from overheard.plans.description import describe_plan, describe_recording
from tests.auditing.plans import DATA, TINY, TRAINING, replace_tables

MANIFEST = Manifest(
    Task((2,), ("a", "b")),
    "site.models:build",
    None,
    (),
    (SERVER, client(0), client(1)),
    rounds=7,
)


def test_describes_data_clients_model_and_training_of_a_plan():
    assert describe_plan(TINY) == (
        "3 clients with 20 to 30 examples each of digits, partitioned by dirichlet; model "
        "logistic; 2 rounds of FedAvg, 1 local epoch of sgd at learning rate 0.1 with batches "
        "of 10"
    )


def test_describes_a_single_size_and_several_epochs():
    plan = replace_tables(
        TINY,
        data=DATA.model_copy(update={"examples": 25}),
        training=TRAINING.model_copy(update={"epochs": 3}),
    )
    assert "3 clients with 25 examples each" in describe_plan(plan)
    assert "3 local epochs of sgd" in describe_plan(plan)


def test_sizes_of_clients_that_are_users_are_upper_bounds():
    plan = TINY.model_copy(update={"data": DATA.model_copy(update={"split": ByUser()})})
    assert "3 clients with up to 30 examples each" in describe_plan(plan)


def test_describes_canaries():
    candidates = CandidateSettings(members=5, outsiders=20, canaries="mislabelled")
    plan = replace_tables(TINY, data=DATA.model_copy(update={"candidates": candidates}))
    expected = "; canaries were assigned at random, on average 5 per client and 20 held out"
    assert describe_plan(plan).endswith(f"{expected}, each with a wrong label")
    alone = replace_tables(plan, data=DataPlan(source=DATA.source, candidates=candidates))
    assert describe_recording(alone, MANIFEST, 3, 2).endswith(
        f"{expected}, each with a wrong label"
    )
    members = replace_tables(
        TINY, data=DATA.model_copy(update={"candidates": CandidateSettings(5, 20)})
    )
    assert describe_plan(members) == describe_plan(TINY)


def test_describes_shifting_and_replaced_data():
    shifts = (
        DataShift(client=1, round=3, distortion=0.5, over=2),
        DataShift(client=0, round=1),
    )
    plan = replace_tables(
        TINY,
        data=DATA.model_copy(update={"shifts": shifts}),
        training=TRAINING.model_copy(update={"rounds": 5}),
    )
    assert describe_plan(plan).endswith(
        "; the data of client 1 shift in rounds 3 to 4; the data of client 0 are replaced in "
        "round 1"
    )


def of_people(people: KnownUserSettings) -> str:
    data = DATA.model_copy(update={"people": people})
    return describe_plan(TINY.model_copy(update={"data": data})).partition("batches of 10")[2]


def test_describes_what_is_known_of_users():
    assert of_people(KnownUserSettings()) == (
        "; clients stand for users, and the attacker has the earlier 50% of each user's "
        "examples"
    )
    people = KnownUserSettings(
        prior="random",
        share=0.25,
        records=20,
        unseen=3,
        holdout=4,
        per_label=8,
        shadow_devices=True,
    )
    assert of_people(people) == (
        "; clients stand for users, and the attacker has a random 25% of each user's examples, "
        "at most 20 per user, each on a shadow device in the run; users are label-matched, "
        "with 8 private examples per label; it has no examples of 3 clients; it also has "
        "examples of 4 users known to take no part"
    )
    assert of_people(KnownUserSettings(prior="chronological_within_labels")).endswith(
        "the earlier 50% of each user's examples of each label"
    )
    assert of_people(KnownUserSettings(prior="profile")).endswith(
        "a random 50% of all examples, as one profile per label"
    )


def test_describes_a_recording_by_its_manifest():
    expected = describe_recording(TINY, MANIFEST, 3, 7)
    assert expected.startswith(
        "a recorded run of 3 parties over 7 rounds; model site.models:build"
    )
    assert "a recipe not recorded, assumed to be Recipe(rate=0.1" in expected
    assert "dirichlet" not in expected
    assert "users" not in expected
    data = DATA.model_copy(update={"people": KnownUserSettings()})
    of_users = describe_recording(TINY.model_copy(update={"data": data}), MANIFEST, 3, 7)
    assert of_users.startswith(f"{expected}; clients stand for users, and the attacker has")
    recipe = Recipe(rate=0.5, epochs=1, batch=4)
    assert "rate=0.5" in describe_recording(TINY, replace(MANIFEST, recipe=recipe), 3, 7)
    bare = replace(MANIFEST, model="", framework="flwr 1.41.0")
    assert describe_recording(TINY, bare, 3, 7).startswith(
        "a recorded run of flwr 1.41.0 of 3 parties over 7 rounds; model not recorded, "
        "assumed to be logistic; clients"
    )
