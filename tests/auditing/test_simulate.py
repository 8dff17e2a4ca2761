"""The federations of a plan differ only in their defenses."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from overheard.auditing.inputs import (
    AuditInputs,
    Resources,
    load_data,
    load_inputs,
    partition_for_plan,
)
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.run_kinds import PLANNED, first_control, run_kinds
from overheard.auditing.simulate import build_federation, simulate
from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.messages import Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import ByRound, GroundTruth
from overheard.data.datasets.custom import Own
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.schedule import DataShift
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.dropout import Dropout
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.learning.models.mlp import Mlp
from overheard.plans.plan import ArmPlan, KnownPart, ThreatPlan
from overheard.plans.virtual_plan import RecipePlan, VirtualPlan
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from tests.auditing.conftest import HERE, inputs_for
from tests.auditing.plans import (
    DATA,
    NO_DEFENSE,
    SECURE_AGGREGATION,
    SERVER_THREAT,
    TINY,
    TRAINING,
    replace_tables,
)
from tests.auditing.user_plans import IDENTITY_THREAT, user_plan

THREE_ARMS = replace_tables(
    TINY,
    training=TRAINING.model_copy(update={"model": Mlp(hidden=(8,))}),
    arms=(NO_DEFENSE, SECURE_AGGREGATION, ArmPlan(name="dropout", defenses=(Dropout(),))),
)


def spoken(transcript: Transcript) -> list[tuple[int, str, dict[str, list[float]]]]:
    """Every update as plain numbers, including those that no party can read."""
    return [
        (m.round, m.sender, {name: t.flatten().tolist() for name, t in m.body.delta.items()})
        for m in transcript.messages
        if isinstance(m.body, Update)
    ]


def first_broadcast(transcript: Transcript) -> dict[str, Tensor]:
    return dict(transcript.seen_by(SERVER).broadcasts()[0])


def known_to(
    arm: ArmPlan, threat: ThreatPlan, audit_inputs: AuditInputs, seed: int = 0
) -> Knowledge:
    return attacker_knowledge(arm, threat, audit_inputs.for_attackers(seed))


def counts_of(truth: GroundTruth) -> ByRound[Tensor]:
    return truth.facts.need(LabelCounts).counts


def test_the_same_seed_gives_the_same_transcript(tmp_path: Path):
    one, truth = simulate(TINY, folder=tmp_path / "a", resources=HERE)
    two, same = simulate(TINY, folder=tmp_path / "b", resources=HERE)
    assert spoken(one) == spoken(two)
    assert {place: counts.tolist() for place, counts in counts_of(truth).items()} == {
        place: counts.tolist() for place, counts in counts_of(same).items()
    }
    assert truth.accuracy == same.accuracy


def test_another_seed_gives_another_run(tmp_path: Path):
    one, _ = simulate(TINY, folder=tmp_path / "a", resources=HERE)
    two, _ = simulate(TINY, seed=5, folder=tmp_path / "b", resources=HERE)
    assert spoken(one) != spoken(two)


def test_arms_differ_by_their_defenses_alone(tmp_path: Path):
    runs = {
        arm.name: simulate(THREE_ARMS, arm=arm.name, folder=tmp_path / arm.name, resources=HERE)
        for arm in THREE_ARMS.arms
    }
    plain, truth = runs["no defense"]
    for transcript, same in runs.values():
        for name, tensor in first_broadcast(transcript).items():
            assert torch.equal(tensor, first_broadcast(plain)[name])
        assert counts_of(same).keys() == counts_of(truth).keys()
        for place, counts in counts_of(same).items():
            assert counts.tolist() == counts_of(truth)[place].tolist()
    # Masks change who can read, no number; dropout changes what is learned.
    assert spoken(runs["secure aggregation"][0]) == spoken(plain)
    assert spoken(runs["dropout"][0]) != spoken(plain)


def test_every_arm_has_the_same_partition():
    dataset = load_data(TINY, HERE)
    open_, masked = (
        build_federation(
            THREE_ARMS, arm, 0, partition_for_plan(TINY, dataset, 0), dataset, HERE
        )
        for arm in THREE_ARMS.arms[:2]
    )
    for one, other in zip(open_.rows, masked.rows, strict=True):
        assert [rows.tolist() for rows in one] == [rows.tolist() for rows in other]
    assert open_.seed == masked.seed


def test_the_default_arm_has_no_defenses(tmp_path: Path):
    plan = replace_tables(TINY, arms=(SECURE_AGGREGATION, NO_DEFENSE))
    transcript, _ = simulate(plan, folder=tmp_path / "run", resources=HERE)
    assert transcript.seen_by(SERVER).senders() == (client(0), client(1), client(2))


def test_refuses_an_unknown_arm_and_lists_the_known_ones():
    with pytest.raises(PlanError, match="no arm 'noise': choose from no defense, secure agg"):
        simulate(THREE_ARMS, arm="noise", resources=HERE)


def test_reports_each_finished_round(tmp_path: Path):
    told = list[int]()
    simulate(TINY, folder=tmp_path / "run", resources=HERE, on_round=told.append)
    assert told == [0, 1]
    simulate(TINY, folder=tmp_path / "run", resources=HERE, on_round=told.append)
    assert told == [0, 1]  # a finished run is opened, not run again


def test_writes_to_a_temporary_folder_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    transcript, _ = simulate(TINY, resources=HERE)
    assert len(spoken(transcript)) == 6
    (made,) = tmp_path.iterdir()
    assert made.name.startswith("overheard-")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_auxiliary_examples_equal_no_client_or_test_example(seed: int):
    plan = replace_tables(
        TINY, data=DATA.model_copy(update={"clients": 20, "refresh_every": 1, "examples": 20})
    )
    dealt = partition_for_plan(plan, load_data(plan, HERE), seed)
    auxiliary = {tuple(image.flatten().tolist()) for image in dealt.auxiliary.inputs}
    assert len(auxiliary) == 40  # four of each digit, no two alike
    held = torch.cat([rows for clients in dealt.rows for rows in clients])
    assert len(held) == 20 * 20 * 2
    for image in (*dealt.pool.inputs[held], *dealt.test.inputs):
        assert tuple(image.flatten().tolist()) not in auxiliary


@pytest.mark.parametrize(
    ("knows", "there"),
    [
        ((), set()),
        (("auxiliary",), {"auxiliary"}),
        (("model",), {"build_model"}),
        (("recipe",), {"recipe"}),
        (("defenses",), {"defenses"}),
        (("auxiliary", "model", "recipe"), {"auxiliary", "build_model", "recipe"}),
    ],
)
def test_an_attacker_knows_exactly_what_its_threat_grants(
    knows: tuple[KnownPart, ...], there: set[str]
):
    threat = ThreatPlan(attacks=(MeanSoftmax(),), knows=knows)
    known = known_to(NO_DEFENSE, threat, inputs_for(TINY))
    for name in ("auxiliary", "build_model", "recipe", "defenses"):
        assert (getattr(known, name) is not None) == (name in there)
    assert known.classes == 10


def test_there_are_no_auxiliary_examples_unless_the_plan_has_some():
    plan = replace_tables(TINY, data=DATA.model_copy(update={"auxiliary_per_class": None}))
    known = known_to(NO_DEFENSE, SERVER_THREAT, inputs_for(plan))
    assert known.auxiliary is None


def test_only_attackers_that_know_the_defenses_simulate_them():
    audit_inputs, dropout = inputs_for(THREE_ARMS), THREE_ARMS.arms[2]
    adaptive = SERVER_THREAT.model_copy(update={"knows": ("model", "recipe", "defenses")})
    plain = known_to(dropout, SERVER_THREAT, audit_inputs)
    knowing = known_to(dropout, adaptive, audit_inputs)
    assert plain.build_model is not None
    assert knowing.build_model is not None
    assert "Dropout" not in repr(plain.build_model())
    assert "Dropout" in repr(knowing.build_model())
    assert knowing.defenses == (Dropout(),)
    assert knowing.recipe == THREE_ARMS.training.recipe


def test_the_attackers_examples_are_the_same_in_every_arm_and_differ_by_seed():
    audit_inputs = inputs_for(TINY)
    one = known_to(NO_DEFENSE, SERVER_THREAT, audit_inputs).auxiliary
    two = known_to(SECURE_AGGREGATION, SERVER_THREAT, audit_inputs).auxiliary
    other = known_to(NO_DEFENSE, SERVER_THREAT, audit_inputs, 1).auxiliary
    assert one is not None
    assert two is not None
    assert other is not None
    assert torch.equal(one.inputs, two.inputs)
    assert not torch.equal(one.inputs, other.inputs)


def test_the_plan_configures_the_virtual_clients():
    virtual = VirtualPlan(
        clients=7, held_out=3, splits=(Dirichlet(alpha=0.1),), examples=(5, 9)
    )
    threat = SERVER_THREAT.model_copy(update={"virtual": virtual})
    resources = Resources(device="cpu", workers=3, cluster="local")
    audit_inputs = load_inputs(TINY, resources, MemoryTensorCache())
    known = known_to(NO_DEFENSE, threat, audit_inputs, 4)
    assert known.prior == Prior((Dirichlet(alpha=0.1),), (5, 9))
    assert known.compute == ComputeSettings(
        Seed(4).child("bank"), 7, 3, device="cpu", repeats=2, workers=3, cluster="local"
    )
    # One shelf for all arms and threats; the same seed, so that attacks share what is on it.
    other = known_to(SECURE_AGGREGATION, SERVER_THREAT, audit_inputs, 4)
    assert known.compute.cache is other.compute.cache is audit_inputs.cache
    assert other.compute.seed == known.compute.seed
    assert known_to(NO_DEFENSE, threat, audit_inputs, 5).compute.seed != known.compute.seed


def test_known_defenses_change_the_assumed_recipes():
    smooth = ArmPlan(name="smooth", defenses=(LabelSmoothing(),))
    plan = replace_tables(TINY, arms=(NO_DEFENSE, smooth))
    guesses = VirtualPlan(recipes=(RecipePlan(rate=0.3),))

    def guessed(*knows: KnownPart) -> tuple[Recipe, ...]:
        threat = ThreatPlan(attacks=(MeanSoftmax(),), knows=knows, virtual=guesses)
        known = known_to(smooth, threat, inputs_for(plan))
        assert known.recipe is None
        return known.candidate_recipes()

    assert guessed("auxiliary") == (Recipe(0.3, 1, 32),)
    assert guessed("auxiliary", "defenses")[0].label_smoothing > 0


def test_virtual_clients_of_any_recipe_have_the_precision_of_the_run():
    training = TINY.training.model_copy(update={"precision": "tf32"})
    plan = TINY.model_copy(update={"training": training})
    guesses = VirtualPlan(recipes=(RecipePlan(rate=0.3),))
    threat = ThreatPlan(attacks=(MeanSoftmax(),), knows=("auxiliary",), virtual=guesses)
    for one in (SERVER_THREAT, threat):
        (recipe,) = known_to(NO_DEFENSE, one, inputs_for(plan)).candidate_recipes()
        assert recipe.precision == "tf32"


def test_distortion_changes_auxiliary_examples_only():
    audit_inputs = inputs_for(TINY)
    shifted = SERVER_THREAT.model_copy(update={"auxiliary_shift": 0.5})
    plain = known_to(NO_DEFENSE, SERVER_THREAT, audit_inputs).auxiliary
    changed_, again = (known_to(NO_DEFENSE, shifted, audit_inputs).auxiliary for _ in "12")
    assert plain is not None
    assert changed_ is not None
    assert again is not None
    assert torch.equal(plain.labels, changed_.labels)
    assert not torch.allclose(plain.inputs, changed_.inputs)
    assert torch.equal(changed_.inputs, again.inputs)
    dealt = partition_for_plan(TINY, audit_inputs.dataset, 0)
    assert torch.equal(dealt.auxiliary.inputs, plain.inputs)


def other_digits(folder: Path, classes: int = 10) -> ThreatPlan:
    """A threat whose auxiliary examples come from images of noise, two of each class."""
    names = [str(number) for number in range(classes)]
    labels = np.repeat(np.arange(classes), 8)
    images = np.random.default_rng(0).random((len(labels), 1, 8, 8), dtype=np.float32)
    path = folder / "other.npz"
    np.savez(path, x_train=images, y_train=labels, x_test=images, y_test=labels,
             class_names=names)  # fmt: skip
    return SERVER_THREAT.model_copy(update={"auxiliary_from": Own(str(path))})


def test_auxiliary_examples_may_come_from_another_data_set(tmp_path: Path):
    threat = other_digits(tmp_path)
    plan = replace_tables(TINY, threats=(threat,))
    known = known_to(NO_DEFENSE, threat, inputs_for(plan)).auxiliary
    assert known is not None
    assert known.label_counts(10).tolist() == [4] * 10
    dealt = partition_for_plan(plan, load_data(plan, HERE), 0).auxiliary
    assert not torch.equal(known.inputs, dealt.inputs)


def test_refuses_auxiliary_data_of_another_form_first(tmp_path: Path):
    plan = replace_tables(TINY, threats=(other_digits(tmp_path, classes=9),))
    with pytest.raises(PlanError, match=r"auxiliary_from own: has .* 9 classes"):
        inputs_for(plan)


SHIFTING = replace_tables(
    TINY,
    data=DATA.model_copy(
        update={"shifts": (DataShift(client=1, round=1, weights=(3.0, *(1.0,) * 9)),)}
    ),
)


def test_the_truth_of_a_run_has_shifts_and_that_of_its_control_none(tmp_path: Path):
    truths = [
        simulate(SHIFTING, is_control=is_control, folder=tmp_path / str(is_control),
                 resources=HERE)[1]
        for is_control in (False, True)
    ]  # fmt: skip
    assert [truth.facts.get(Shifts) for truth in truths] == [Shifts({client(1): (1,)}), None]
    drawn = [truth.facts.need(DrawnShares) for truth in truths]
    shares = [one.shares_of(client(1), 1) for one in drawn]
    assert shares[1].equal(drawn[1].shares_of(client(1), 0))
    assert float(shares[0][0]) > float(shares[1][0])


def test_auxiliary_and_test_examples_are_the_same_in_the_control():
    dataset = load_data(SHIFTING, HERE)
    planned, control = (
        partition_for_plan(SHIFTING, dataset, 0, kind)
        for kind in (PLANNED, first_control(SHIFTING))
    )
    assert torch.equal(planned.auxiliary.inputs, control.auxiliary.inputs)
    assert torch.equal(planned.test.inputs, control.test.inputs)
    for one, other in zip(planned.rows[0], control.rows[0], strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(planned.rows[1][1], control.rows[1][1])


def test_partitions_by_the_split_of_the_plan():
    even = replace_tables(TINY, data=DATA.model_copy(update={"split": Dirichlet(alpha=1000.0)}))
    dataset = load_data(even, HERE)
    skewed, alike = (partition_for_plan(plan, dataset, 0) for plan in (TINY, even))
    # Of 20 to 30 examples of ten digits, an even share is 2 to 3.
    assert int(alike.client_examples(0, 0).label_counts(10).max()) <= 4
    assert int(skewed.client_examples(0, 0).label_counts(10).max()) > 4


def test_prior_examples_of_users_are_the_same_in_the_control(tmp_path: Path):
    settings = KnownUserSettings(prior="random", unseen=1, holdout=1, shadow_devices=True)
    plan = user_plan(tmp_path, IDENTITY_THREAT, people=settings)
    dataset = load_data(plan, HERE)
    run, control = (partition_for_plan(plan, dataset, 0, kind) for kind in run_kinds(plan))
    assert run.run_users is not None
    assert control.run_users is not None
    assert run.run_users.users == control.run_users.users
    known = KnownUsers.of(known_to(plan.arms[0], IDENTITY_THREAT, inputs_for(plan)))
    for who in (run.run_users.known, control.run_users.known):
        assert list(who.prior_examples) == list(known.prior_examples)
        assert who.shadow_devices == known.shadow_devices
        for name, prior in who.all_prior_examples().items():
            assert torch.equal(prior.inputs, known.all_prior_examples()[name].inputs)
    # Clients hold others, shadow devices the same.
    assert not torch.equal(run.rows[0][0], control.rows[0][0])
    assert len(run.rows[0]) == 6 + 5 + 1
    for one, other in zip(run.rows[0][6:], control.rows[0][6:], strict=True):
        assert torch.equal(one, other)
    # Without an identity attack nothing is exchanged.
    unasked = user_plan(tmp_path, SERVER_THREAT, people=settings)
    assert run_kinds(unasked) == (PLANNED,)


def test_a_federation_of_users_has_users_and_shadow_devices(tmp_path: Path):
    settings = KnownUserSettings(prior="random", shadow_devices=True)
    plan = user_plan(tmp_path, IDENTITY_THREAT, people=settings)
    dataset = load_data(plan, HERE)
    dealt = partition_for_plan(plan, dataset, 0)
    arms = (plan.arms[0], ArmPlan(name="adaptive", shadows_defended=True))
    plain, adaptive = (build_federation(plan, arm, 0, dealt, dataset, HERE) for arm in arms)
    assert plain.shadows == 6
    assert set(plain.facts.need(UsersOfClients).users) == {client(n) for n in range(6)}
    assert set(plain.facts.need(Attributes).attributes) == {"hand"}
    assert not plain.are_shadows_defended
    assert adaptive.are_shadows_defended
    nobody = user_plan(tmp_path, SERVER_THREAT, people=None)
    bare = build_federation(
        nobody, arms[0], 0, partition_for_plan(nobody, dataset, 0), dataset, HERE
    )
    assert (bare.shadows, bare.background) == (0, None)
    assert {type(fact) for fact in plain.facts} - {type(fact) for fact in bare.facts} == {
        UsersOfClients,
        Attributes,
    }


def test_background_data_is_known_to_clients_and_attackers(tmp_path: Path):
    plan = user_plan(tmp_path, IDENTITY_THREAT, people=KnownUserSettings())
    shared = replace_tables(plan, data=plan.data.model_copy(update={"background": 20}))
    audit_inputs = inputs_for(shared)
    known = known_to(shared.arms[0], IDENTITY_THREAT, audit_inputs).background
    dealt = partition_for_plan(shared, audit_inputs.dataset, 0)
    there = build_federation(shared, shared.arms[0], 0, dealt, audit_inputs.dataset, HERE)
    assert known is not None
    assert there.background is not None
    assert len(known) == 20
    assert torch.equal(known.inputs, there.background.inputs)
    assert known_to(plan.arms[0], IDENTITY_THREAT, inputs_for(plan)).background is None
