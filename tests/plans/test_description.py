"""The sentence that describes what was audited."""

from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.plans.description import describe_plan
from tests.auditing.plans import DATA, TINY


def test_describes_data_clients_model_and_training_of_a_plan():
    assert describe_plan(TINY) == (
        "3 clients with 20 to 30 examples each of digits, partitioned by dirichlet; model "
        "logistic; 2 rounds of FedAvg, 1 local epoch of sgd at learning rate 0.1 with batches "
        "of 10"
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
