"""One sentence that tells what was audited."""

from dataclasses import replace

from overheard.archive.manifest import Manifest
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.data.partition.candidates import Candidates
from overheard.data.partition.people import People
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.by_user import ByUser
from overheard.plans.data_plan import DataPlan
from overheard.plans.subject import subject_of_plan, subject_of_recording
from tests.auditing.plans import DATA, TINY, TRAINING, changed

MANIFEST = Manifest(
    Task((2,), ("a", "b")),
    "site.models:build",
    None,
    (),
    (SERVER, client(0), client(1)),
    rounds=7,
)


def test_tells_data_clients_model_and_training_of_a_plan():
    assert subject_of_plan(TINY) == (
        "3 clients with 20 to 30 examples each of digits, shared out by dirichlet; model "
        "logistic; 2 rounds of FedAvg, 1 local epoch of sgd at rate 0.1 with batches of 10"
    )


def test_one_size_and_several_epochs_are_told_as_such():
    plan = changed(
        TINY,
        data=DATA.model_copy(update={"examples": 25}),
        training=TRAINING.model_copy(update={"epochs": 3}),
    )
    assert "3 clients with 25 examples each" in subject_of_plan(plan)
    assert "3 local epochs of sgd" in subject_of_plan(plan)


def test_where_clients_are_users_sizes_are_what_they_hold_at_most():
    plan = TINY.model_copy(update={"data": DATA.model_copy(update={"split": ByUser()})})
    assert "3 clients with up to 30 examples each" in subject_of_plan(plan)


def test_tells_what_a_die_put_in():
    asked = Candidates(members=5, outsiders=20, canaries="mislabelled")
    plan = changed(TINY, data=DATA.model_copy(update={"candidates": asked}))
    told = "; a die put 5 canaries into each client and 20 nowhere, on average"
    assert subject_of_plan(plan).endswith(f"{told}, each with a wrong label")
    alone = changed(plan, data=DataPlan(source=DATA.source, candidates=asked))
    assert subject_of_recording(alone, MANIFEST, 3, 2).endswith(
        f"{told}, each with a wrong label"
    )
    held = changed(TINY, data=DATA.model_copy(update={"candidates": Candidates(5, 20)}))
    assert subject_of_plan(held) == subject_of_plan(TINY)


def test_tells_whose_data_shift_and_whose_are_but_exchanged():
    shifts = (
        DataShift(client=1, round=3, distortion=0.5, over=2),
        DataShift(client=0, round=1),
    )
    plan = changed(
        TINY,
        data=DATA.model_copy(update={"shifts": shifts}),
        training=TRAINING.model_copy(update={"rounds": 5}),
    )
    assert subject_of_plan(plan).endswith(
        "; the data of client 1 shift in rounds 3 to 4; the data of client 0 are exchanged in "
        "round 1"
    )


def of_people(people: People) -> str:
    data = DATA.model_copy(update={"people": people})
    return subject_of_plan(TINY.model_copy(update={"data": data})).partition("batches of 10")[2]


def test_tells_whom_clients_stand_for_and_what_is_known_of_them():
    assert of_people(People()) == (
        "; clients stand for users, and the attacker has the earlier 50% of each one's records"
    )
    people = People(
        prior="random",
        share=0.25,
        records=20,
        unseen=3,
        holdout=4,
        per_label=8,
        shadow_devices=True,
    )
    assert of_people(people) == (
        "; clients stand for users, and the attacker has a random 25% of each one's records, "
        "20 a user at most, each as a shadow device in the run; users are label-matched, 8 "
        "private examples a label; of 3 clients it has nothing; 4 users that it has records of "
        "take no part, as it knows"
    )
    assert of_people(People(prior="chronological_within_labels")).endswith(
        "the earlier 50% of each one's records of each label"
    )
    assert of_people(People(prior="profile")).endswith(
        "a random 50% of all records, sorted by label: a profile a label"
    )


def test_tells_of_a_recording_what_it_says_of_itself():
    told = subject_of_recording(TINY, MANIFEST, 3, 7)
    assert told.startswith("a recorded run of 3 parties over 7 rounds; model site.models:build")
    assert "a recipe not told, taken to be Recipe(rate=0.1" in told
    assert "dirichlet" not in told
    assert "users" not in told
    data = DATA.model_copy(update={"people": People()})
    of_users = subject_of_recording(TINY.model_copy(update={"data": data}), MANIFEST, 3, 7)
    assert of_users.startswith(f"{told}; clients stand for users, and the attacker has")
    recipe = Recipe(rate=0.5, epochs=1, batch=4)
    assert "rate=0.5" in subject_of_recording(TINY, replace(MANIFEST, recipe=recipe), 3, 7)
    bare = replace(MANIFEST, model="", framework="flwr 1.41.0")
    assert subject_of_recording(TINY, bare, 3, 7).startswith(
        "a recorded run of flwr 1.41.0 of 3 parties over 7 rounds; model not told, taken to be "
        "logistic; clients"
    )
