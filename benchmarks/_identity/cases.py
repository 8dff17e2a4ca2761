"""The cases of the identity benchmark and their bars."""

from collections.abc import Mapping
from dataclasses import replace

from _identity.bars import PRECISION, Above, AtLeast, Bar, InsideNull, NotBelow
from _identity.case import Case
from _identity.defended import defended, few_arms, frontier
from _identity.lineup import Lineup, every_update
from overheard.data.datasets.blogs import Blogs
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.partition.known_user_settings import KnownUserSettings, PriorKind
from overheard.data.splits.by_user import ByUser
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.linkage.layers import Layer
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ThreatPlan, TrainingPlan
from overheard.questions.attribute.attacks.attribute_forest import AttributeForest
from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
from overheard.questions.identity.attacks.match_cross_modal import MatchCrossModal
from overheard.questions.identity.attacks.match_siamese import MatchSiamese
from overheard.questions.identity.attacks.reidentify_jointly import ReidentifyJointly
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn

EVERYTHING = 100_000
"""More examples than any user has."""

PEOPLE, BLOGGERS = 36, 89
"""All users of WISDM, and 89 of 100 bloggers: the other eleven are copies of these."""

WISDM_TRAINING = TrainingPlan(
    model=Mlp(hidden=(64,)), rounds=24, participation=0.5, rate=0.1, batch=16
)

BLOG_TRAINING = TrainingPlan(model=Lstm(), rounds=24, participation=0.1, rate=2.0, batch=32)

WISDM, LINKED = Lineup(), Lineup(links=True)
BLOGS = Lineup("last_bias", most_rounds=6, epochs=400)


def wisdm_data(
    people: KnownUserSettings,
    *,
    clients: int = PEOPLE,
    source: Wisdm | None = None,
    examples: int = EVERYTHING,
    background: int | None = None,
) -> DataPlan:
    """Return data of WISDM users."""
    return DataPlan(
        source=source or Wisdm(),
        split=ByUser(),
        clients=clients,
        examples=examples,
        people=people,
        background=background,
    )


def blog_data(people: KnownUserSettings, source: Blogs, clients: int = BLOGGERS) -> DataPlan:
    """Return data of bloggers for next-word prediction."""
    return DataPlan(
        source=source,
        split=ByUser(),
        clients=clients,
        examples=EVERYTHING,
        test=5000,
        people=people,
    )


def half_prior(prior: PriorKind) -> KnownUserSettings:
    """Make half of each user's records the prior, also used on shadow devices."""
    return KnownUserSettings(prior=prior, shadow_devices=True)


def usual_bars(lineup: Lineup) -> tuple[Bar, ...]:
    """Return the bars of every case with re-identification."""
    ours = lineup.ours
    return (
        AtLeast(
            "Overheard on one update, gain over the published attack, user by user",
            ours,
            "gain_over_published",
            0,
            "low",
        ),
        *(
            NotBelow(f"Overheard on one update minus {svm.description}", ours, svm)
            for svm in lineup.svms
        ),
        InsideNull("Overheard on one update, IID control", ours),
        InsideNull("Overheard with linking, IID control", lineup.ours_linked),
        InsideNull("published, IID control", lineup.published),
    )


def precision_bars(lineup: Lineup, least: float, *more: Bar) -> tuple[Bar, ...]:
    """Return a bar on Overheard's attack with linking and assignment, and the usual bars."""
    about = "Overheard with linking and assignment, average precision"
    first = AtLeast(about, lineup.ours_linked, PRECISION, least)
    return (first, *more, *usual_bars(lineup))


def open_world(holdout: int) -> tuple[KnownUserSettings, ThreatPlan]:
    """Return an open-set federation with as many unknown senders as holdout users."""
    people = KnownUserSettings(
        prior="random", unseen=holdout, holdout=holdout, shadow_devices=True
    )
    attacks = (
        ReidentifyMlp("shadow"),
        ReidentifyMlp(),
        MatchSiamese(),
        ReidentifyWccn(),
        ReidentifyWccn("shadow"),
    )
    return people, every_update(attacks)


def attributes(names: tuple[str, ...], layer: Layer, rounds: int) -> ThreatPlan:
    """Return attacks on attributes, trained on other users or, as published, on the same."""
    return every_update(
        tuple(
            attack
            for name in names
            for attack in (
                AttributeMlp(name, layer=layer, chunks=4, most_rounds=rounds),
                AttributeMlp(name, jointly=True, layer=layer, chunks=4, most_rounds=rounds),
                AttributeForest(name, layer=layer, chunks=4, most_rounds=rounds),
                AttributeMlp(name, told="everyone", layer=layer, most_rounds=rounds),
                ReidentifyJointly(name, layer=layer, most_rounds=rounds),
            )
        )
    )


CASES: Mapping[str, Case] = {
    "wisdm_random": Case(
        "WISDM, random prior",
        wisdm_data(half_prior("random")),
        WISDM_TRAINING,
        WISDM.threats,
        10,
        precision_bars(WISDM, 0.95),
    ),
    "wisdm_within_labels": Case(
        "WISDM, prior earlier within each activity",
        wisdm_data(half_prior("chronological_within_labels")),
        WISDM_TRAINING,
        LINKED.threats,
        10,
        (
            AtLeast(
                "Overheard on one update, gain over the published attack",
                LINKED.ours,
                "gain_over_published",
                0.08,
            ),
            *usual_bars(LINKED),
        ),
    ),
    "wisdm_in_time": Case(
        "WISDM, prior earlier in the file",
        wisdm_data(half_prior("chronological")),
        WISDM_TRAINING,
        WISDM.threats,
        10,
        usual_bars(WISDM),
    ),
    # `wisdm_few` has the same number of examples without matched labels, for comparison.
    "wisdm_matched": Case(
        "WISDM, 28 users of 10 walking and 10 jogging windows, and as many prior ones",
        wisdm_data(
            replace(half_prior("chronological_within_labels"), per_label=10),
            clients=28,
        ),
        WISDM_TRAINING,
        WISDM.threats,
        10,
    ),
    "wisdm_few": Case(
        "WISDM, 28 users of 20 windows, and as many prior ones, labels as they are",
        wisdm_data(
            replace(half_prior("chronological_within_labels"), records=20),
            clients=28,
            examples=20,
        ),
        WISDM_TRAINING,
        WISDM.threats,
        10,
    ),
    "wisdm_open": Case(
        "WISDM, 18 known and 9 unknown users, and 9 who take no part",
        wisdm_data(open_world(9)[0], clients=27),
        WISDM_TRAINING,
        (open_world(9)[1],),
        10,
    ),
    "wisdm_axes": Case(
        "WISDM, the X axis is sent, Y and Z of prior windows are known; 12 users take no part",
        wisdm_data(
            KnownUserSettings(prior="random", holdout=12), source=Wisdm("x"), clients=24
        ),
        WISDM_TRAINING,
        (every_update((MatchCrossModal(), MatchCrossModal(learn_from="everyone"))),),
        10,
    ),
    "wisdm_defended": defended(
        "WISDM, 30 users, 300 public windows of 6 others",
        wisdm_data(half_prior("random"), clients=30, background=300),
        WISDM_TRAINING,
        frontier((10, 30)),
        WISDM,
        5,
    ),
    "blogs_in_time": Case(
        "Blogs, prior earlier",
        blog_data(half_prior("chronological"), Blogs("next_word")),
        BLOG_TRAINING,
        BLOGS.threats,
        3,
        precision_bars(
            BLOGS,
            0.85,
            AtLeast("Overheard on one update, top-1", BLOGS.ours, "top1", 0.78),
            Above("Overheard over rounds, top-1", BLOGS.ours_over_rounds, BLOGS.ours, "top1"),
            AtLeast("published, average precision", BLOGS.published, PRECISION, 0.6),
        ),
    ),
    "blogs_random": Case(
        "Blogs, random prior",
        blog_data(half_prior("random"), Blogs("next_word")),
        BLOG_TRAINING,
        BLOGS.threats,
        3,
        precision_bars(BLOGS, 0.88),
    ),
    "blogs_attributes": Case(
        "Blogs, 60 bloggers; 29 others, who take no part, tell what gender and age sound like",
        blog_data(KnownUserSettings(holdout=29), Blogs("next_word"), clients=60),
        BLOG_TRAINING,
        (attributes(("gender", "age_group"), "last_bias", 6),),
        3,
    ),
    "blogs_defended": defended(
        "Blogs, every twelfth word, public posts of 200 others",
        blog_data(half_prior("chronological"), Blogs("next_word", tokens=60, stride=12)),
        BLOG_TRAINING.model_copy(update={"rounds": 12, "participation": 0.2}),
        few_arms(),
        Lineup("last_bias", most_rounds=4),
        1,
    ),
}

COMPARED = ("wisdm_random", "wisdm_within_labels", "wisdm_in_time")
"""Cases on which attacks are compared in equal views; they differ only in the prior."""
