"""The setting of the experiments: data sets with users, attacks, plans and summary rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

from overheard.auditing.summary import summarise
from overheard.core.attack import Attack
from overheard.core.recipe import LossName
from overheard.data.dataset import DataSource
from overheard.data.datasets.blogs import Blogs
from overheard.data.datasets.omniglot_writers import OmniglotWriters
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.splits.by_user import ByUser
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.learning.model import Model
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.linkage.known_updates import UpdateSource
from overheard.linkage.layers import Layer
from overheard.linkage.multi_head_mlp import TRAINING_STEPS
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import UNDEFENDED, ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.plans.plugin_field import plugin_label
from overheard.questions.identity.attacks.reidentify import (
    ReidentifyKnn,
    ReidentifyMlp,
    ReidentifySvm,
)
from overheard.questions.identity.attacks.reidentify_wccn import (
    SIMULATED_ROUNDS,
    ReidentifyWccn,
)
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.study import Panel, PanelRun, Read
from overheard_studies.values import Published, ReproducedValue

PUBLISHED = Published("deanonymization")

PaperDataset = Literal["pipa", "openimages", "blog", "yelp"]
"""The paper's data sets; scenarios are compared with one of them but use other data."""

UtilityMeasure = Literal["accuracy", "top5", "absolute_error"]
"""How a model's utility is measured on the test set."""

SEEDS = (0, 1, 2, 3, 4)
"""As many as a conclusion needs."""


@final
@dataclass(frozen=True, slots=True)
class IdentityScenario:
    """A data set with users, and the federation of these users.

    Args:
        key: name in the keys of values and in folders.
        name: name in words.
        paper: the paper's data set with which it is compared; None = none.
        source: source of the data.
        model: model that is trained.
        layer: part of an update that attacks read.
        clients: number of participating users.
        examples: largest number of private examples per user; larger than any user has, so that
            all are used.
        rate: rate of SGD.
        batch: examples per step.
        rounds: rounds of the federation.
        participation: share of devices sampled in a round.
        most_rounds: largest number of rounds in which an attacker trains known users.
        seeds: seeds of the runs.
        test: examples on which the utility is measured.
        utility: how the utility is measured.
        loss: loss of the training.
        background: public examples for defenses that mix them in.
        modes: number of topics into which `mm_aug` clusters these.
        chronological_prior: the chronological prior; within labels if the labels change over
            time.
        steps: training steps of the published network.

    """

    key: str
    name: str
    paper: PaperDataset | None
    source: DataSource
    model: Model
    layer: Layer
    clients: int
    examples: int
    rate: float
    batch: int
    rounds: int
    participation: float
    most_rounds: int
    seeds: tuple[int, ...] = SEEDS
    test: int = 2000
    utility: UtilityMeasure = "accuracy"
    loss: LossName = "cross_entropy"
    background: int = 4000
    modes: int = 300
    chronological_prior: PriorKind = "chronological"
    steps: int = TRAINING_STEPS


BLOGS = IdentityScenario(
    key="blogs",
    name="Blogs, the next word",
    paper="blog",
    source=Blogs(task="next_word", tokens=60, stride=4),
    model=Lstm(),
    layer="last_bias",
    clients=89,
    examples=4000,
    rate=2.0,
    batch=32,
    rounds=24,
    participation=0.1,
    most_rounds=6,
    utility="top5",
)

BLOGS_MORE_UPDATES = replace(BLOGS, most_rounds=12)
"""For experiments on the rounds and on the number of known updates."""

AGES = IdentityScenario(
    key="ages",
    name="Blogs, the age group as a rating",
    paper="yelp",
    source=Blogs(tokens=60),
    model=Lstm(dim=50, hidden=128),
    layer=0,
    clients=89,
    examples=4000,
    rate=0.3,
    batch=16,
    rounds=24,
    participation=0.1,
    most_rounds=6,
    utility="absolute_error",
    loss="squared_error",
)

OMNIGLOT = IdentityScenario(
    key="omniglot_writers",
    name="Omniglot by drawer",
    paper="pipa",
    source=OmniglotWriters(),
    model=Mlp((128,)),
    layer=-1,
    clients=100,
    examples=100,
    rate=0.3,
    batch=8,
    rounds=24,
    participation=0.5,
    most_rounds=6,
    test=540,
)

WISDM = IdentityScenario(
    key="wisdm",
    name="WISDM",
    paper=None,
    source=Wisdm(),
    model=Mlp(),
    layer=-1,
    clients=36,
    examples=1000,
    rate=0.1,
    batch=16,
    rounds=24,
    participation=0.5,
    most_rounds=24,
    test=1000,
    background=1000,
    modes=20,
    chronological_prior="chronological_within_labels",
)

QUICK_WISDM = replace(WISDM, rounds=10, most_rounds=10, seeds=(0,))

QUICK_BLOGS = replace(
    BLOGS,
    source=Blogs(task="next_word", vocabulary=1000, tokens=60, stride=12),
    model=Lstm(dim=32, hidden=32),
    clients=36,
    rounds=10,
    participation=0.5,
    most_rounds=4,
    seeds=(0,),
    test=1000,
    background=1000,
    modes=20,
)
"""A fifth of the words, a third of the examples, and two fifths of the users."""

QUICK_AGES = replace(
    AGES,
    source=Blogs(vocabulary=2000, tokens=30),
    model=Lstm(dim=32, hidden=32),
    clients=36,
    rounds=10,
    participation=0.5,
    most_rounds=4,
    seeds=(0,),
    test=1000,
)

QUICK_SCENARIOS = (QUICK_BLOGS, QUICK_AGES, QUICK_WISDM)
"""The scenarios of quick runs."""

SCENARIOS = (BLOGS, AGES, WISDM)
"""The scenarios in which users can be re-identified."""


UPDATE_SOURCES: tuple[UpdateSource, ...] = ("shadow", "simulated")
"""Sources of known updates: the published one, then the realistic one."""

BASELINES = (ReidentifySvm, ReidentifyKnn)
"""The paper's attacks with which it compares the one that it proposes."""

IDENTITY_ATTACKS = (ReidentifyMlp, *BASELINES, ReidentifyWccn)
"""All re-identification attacks; Overheard's own, which links updates, comes last."""


# Any: each attack has its own claim type.
def build_identity_attacks(
    scenario: IdentityScenario, source: UpdateSource
) -> tuple[Attack[Any], ...]:
    """Build all re-identification attacks with known updates from one source."""
    baselines = (
        kind(updates=source, layer=scenario.layer, most_rounds=scenario.most_rounds)
        for kind in BASELINES
    )
    return (
        build_published_attack(scenario, source),
        *baselines,
        build_wccn_attack(scenario, source),
    )


def build_wccn_attack(
    scenario: IdentityScenario, source: UpdateSource, *, is_linking: bool = True
) -> ReidentifyWccn:
    """Build Overheard's attack, which selects layers itself and trains users in few rounds.

    Args:
        scenario: scenario that is attacked.
        source: source of known updates.
        is_linking: whether it links updates and assigns users one to one; without both a claim
            rests on the target's own updates alone, as those of the paper's attacks do.

    """
    return ReidentifyWccn(
        updates=source,
        most_rounds=min(SIMULATED_ROUNDS, scenario.most_rounds),
        link=is_linking,
        at_most_one=is_linking,
    )


def build_published_attack(
    scenario: IdentityScenario,
    source: UpdateSource,
    layer: Layer | None = None,
    *,
    pieces: int = 1,
) -> ReidentifyMlp:
    """Build the attack that the paper proposes.

    Args:
        scenario: scenario that is attacked.
        source: source of known updates.
        layer: part of an update that it reads; None = the scenario's.
        pieces: number of chunks into which it splits a prior that it trains on.

    """
    return ReidentifyMlp(
        updates=source,
        layer=scenario.layer if layer is None else layer,
        pieces=pieces,
        most_rounds=scenario.most_rounds,
        steps=scenario.steps,
    )


PRIOR_NAMES: dict[PriorKind, str] = {
    "random": "random prior examples",
    "chronological": "chronological prior examples",
    "chronological_within_labels": "prior examples chronological within labels",
}


def build_plan(
    scenario: IdentityScenario,
    known_users: KnownUserSettings,
    threats: tuple[ThreatPlan, ...],
    *,
    arms: tuple[ArmPlan, ...] = (),
    clients: int | None = None,
    background: int | None = None,
) -> Plan:
    """Build the plan of an audit of one federation of a scenario's users.

    Args:
        scenario: data and training.
        known_users: prior data that the server has of users.
        threats: threats that are run.
        arms: arms with defenses, in addition to the undefended one.
        clients: number of participating users; None = all of the scenario.
        background: public examples that everyone has; None = those of the data source.

    """
    return Plan(
        title=f"Who sent an update: {scenario.name}",
        seeds=scenario.seeds,
        data=DataPlan(
            source=scenario.source,
            split=ByUser(),
            clients=clients or scenario.clients,
            examples=scenario.examples,
            test=scenario.test,
            people=known_users,
            background=background,
        ),
        training=TrainingPlan(
            model=scenario.model,
            rounds=scenario.rounds,
            participation=scenario.participation,
            rate=scenario.rate,
            batch=scenario.batch,
            loss=scenario.loss,
        ),
        arms=arms,
        threats=threats,
    )


def build_known_user_settings(
    prior: PriorKind, *, unseen: int = 0, holdout: int = 0
) -> KnownUserSettings:
    """Make half of each user's records prior data, used by shadow devices, as published."""
    return KnownUserSettings(prior=prior, unseen=unseen, holdout=holdout, shadow_devices=True)


# Any: each attack has its own claim type.
def build_threat(
    attacks: tuple[Attack[Any], ...], *, by_sender: bool = False, adapts: bool = False
) -> ThreatPlan:
    """Build a threat by the server.

    Args:
        attacks: attacks that the server runs.
        by_sender: whether a sender's updates share a pseudonym and are scored jointly;
            otherwise every update has its own, as published.
        adapts: whether the server knows the defenses and trains known users with them.

    """
    return ThreatPlan(
        attacks=attacks,
        pseudonyms="run" if by_sender else "round",
        knows=("auxiliary", "model", "recipe", *(("defenses",) if adapts else ())),
        by_round=False,
    )


def describe_setting(name: str, run: Plan, full: Plan) -> str:
    """Describe what a value was measured on, and how it differs from the full size."""
    data, training, users = run.data, run.training, run.data.people
    parts = [f"{name}, {data.clients} users"]
    if users is not None:
        parts.append(PRIOR_NAMES.get(users.prior, users.prior))
        if users.records is not None:
            parts.append(f"{users.records} prior records per user")
        if users.unseen:
            parts.append(f"{users.unseen} of them unseen")
        if users.holdout:
            parts.append(f"{users.holdout} holdout users")
    parts += [
        f"{training.rounds} rounds",
        f"participation {training.participation:g}",
        f"seeds {', '.join(str(seed) for seed in run.seeds)}",
    ]
    reductions = [
        f"{reduced} instead of {whole} {what}"
        for what, reduced, whole in (
            ("seeds", len(run.seeds), len(full.seeds)),
            ("rounds", run.training.rounds, full.training.rounds),
            ("users", data.clients, full.data.clients),
            ("participation", training.participation, full.training.participation),
        )
        if reduced != whole
    ]
    reductions += [
        f"{plugin_label(reduced)} instead of {plugin_label(whole)}"
        for reduced, whole in (
            (data.source, full.data.source),
            (training.model, full.training.model),
        )
        if reduced != whole
    ]
    changed = f" (changed from the full size: {', '.join(reductions)})" if reductions else ""
    return ", ".join(parts) + changed


def describe_differences(
    scenarios: Iterable[IdentityScenario], text: str, **more: object
) -> str:
    """Describe the differences from the paper: common ones, of scenarios, and of one study."""
    parts = []
    for one in scenarios:
        users = PUBLISHED.find("users", one.paper)
        paper = f" (compared with {one.paper.capitalize()}, {users} users)" if one.paper else ""
        note = " ".join((PUBLISHED.find("differences", one.key) or "").split())
        parts.append(
            f"{one.name}{paper}: {note}. Settings: rate {one.rate:g}, batch {one.batch}, "
            f"participation {one.participation:g}, {one.rounds} rounds, known users trained in "
            f"{one.most_rounds} rounds."
        )
    return PUBLISHED.differences("common", *parts, text, **more)


def build_panel(
    key: str,
    full: IdentityScenario,
    quick: IdentityScenario | None,
    plan: Callable[[IdentityScenario], Plan],
    read: Read,
) -> Panel:
    """Return an audit of a scenario, or of the one that replaces it in a quick run."""
    scenarios = full, quick
    return Panel(
        key,
        full.name,
        lambda is_quick: None if (one := scenarios[is_quick]) is None else plan(one),
        read,
    )


def find_scenario(scenarios: Iterable[IdentityScenario], key: str) -> IdentityScenario | None:
    """Return the scenario with this key; None if there is none."""
    return next((one for one in scenarios if one.key == key), None)


PRECISION = "mean_average_precision"

IDENTITY_SCORES = (PRECISION, "times_chance", "top1", "top5")
"""The scores of Table 3."""


@final
@dataclass(frozen=True, slots=True)
class ResultRows:
    """All summary rows of an audit.

    Args:
        run: the audit.
        rows: rows by arm, attack and score.

    """

    run: PanelRun
    rows: Mapping[tuple[str, str, str], ScoreRow]

    @staticmethod
    def of(run: PanelRun) -> "ResultRows":
        """Summarize an audit."""
        rows: Sequence[ScoreRow] = summarise(run.audit.findings, BOOTSTRAP_SEED)
        return ResultRows(run, {(row.arm, row.attack, row.score): row for row in rows})

    def find(self, attack: str, score: str, arm: str = UNDEFENDED) -> ScoreRow | None:
        """Return one row; None if it was not measured."""
        return self.rows.get((arm, attack, score))

    def value(
        self,
        name: str,
        words: str,
        place: tuple[str, str],
        published: float | None = None,
        arm: str = UNDEFENDED,
    ) -> ReproducedValue:
        """Return a row as a value; the setting of an unmeasured one says why.

        Args:
            name: name of the value.
            words: what was measured.
            place: name of the attack in the plan, and the score.
            published: the paper's value.
            arm: arm of the plan.

        """
        row = self.find(*place, arm)
        if row is not None:
            return self.run.value(name, words, row.value, published, row.better)
        missing = {
            need
            for refusal in self.run.audit.refusals
            if (refusal.cell.attack, refusal.cell.arm) == (place[0], arm)
            for need in refusal.missing
        }
        reason = "; ".join(sorted(missing)) or "the attack has no such score"
        return self.run.value(name, f"{words}: not measured: {reason}", None, published)

    def baselines(self, name: str, words: str, attack: str) -> Iterator[ReproducedValue]:
        """Yield the baselines of an attack's precision: a random order and the IID control."""
        row = self.find(attack, PRECISION)
        for key, value, described in (
            ()
            if row is None
            else (
                ("chance", row.best_uninformed, "a random order"),
                (
                    "iid_control",
                    row.references.get(CONTROL_NAME),
                    "the IID control, with examples redistributed at random among all users",
                ),
            )
        ):
            if value is not None:
                yield self.run.value(f"{name}_{key}", f"{words}, {described}", value)
