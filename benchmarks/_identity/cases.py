"""The federations on which it is measured, and what figures of each are to reach."""

from collections.abc import Mapping

from _identity.bars import PRECISION, AtLeast, Bar, InsideNull, More, NotBelow
from _identity.case import Case
from _identity.defended import defended, few, frontier
from _identity.lineup import Lineup, every_update
from overheard.data.datasets.blogs import Blogs
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.partition.people import People, PriorKind
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
"""All of WISDM, and all of the hundred bloggers but eleven, who are copies of others."""

MOVES = TrainingPlan(model=Mlp(hidden=(64,)), rounds=24, participation=0.5, rate=0.1, batch=16)

WORDS = TrainingPlan(model=Lstm(), rounds=24, participation=0.1, rate=2.0, batch=32)

WISDM, LINKED = Lineup(), Lineup(links=True)
BLOGS = Lineup("last_bias", most_rounds=6, epochs=400)


def moving(
    people: People,
    *,
    clients: int = PEOPLE,
    source: Wisdm | None = None,
    examples: int = EVERYTHING,
    background: int | None = None,
) -> DataPlan:
    """People of WISDM."""
    return DataPlan(
        source=source or Wisdm(),
        split=ByUser(),
        clients=clients,
        examples=examples,
        people=people,
        background=background,
    )


def blogging(people: People, source: Blogs, clients: int = BLOGGERS) -> DataPlan:
    """Bloggers, and their next words."""
    return DataPlan(
        source=source,
        split=ByUser(),
        clients=clients,
        examples=EVERYTHING,
        test=5000,
        people=people,
    )


def half(prior: PriorKind) -> People:
    """Half of each user's records are prior, and take part on shadow devices besides."""
    return People(prior=prior, shadow_devices=True)


def usual(lineup: Lineup) -> tuple[Bar, ...]:
    """What is to hold wherever people are recognised."""
    ours = lineup.ours
    return (
        AtLeast("gain over the published, user by user", ours, "gain_over_published", 0, "low"),
        *(NotBelow(f"ours less {svm.told}", ours, svm) for svm in lineup.svms),
        InsideNull("ours, IID control", ours),
        InsideNull("published, IID control", lineup.published),
    )


def precise(lineup: Lineup, least: float, *more: Bar) -> tuple[Bar, ...]:
    """Ours has an average precision of so much, and the rest holds."""
    first = AtLeast("ours, average precision", lineup.ours, PRECISION, least)
    return (first, *more, *usual(lineup))


def open_world(holdout: int) -> tuple[People, ThreatPlan]:
    """As many users unknown to the attacker among the senders as known not to take part."""
    people = People(prior="random", unseen=holdout, holdout=holdout, shadow_devices=True)
    attacks = (
        ReidentifyMlp("shadow"),
        ReidentifyMlp(),
        MatchSiamese(),
        ReidentifyWccn(),
        ReidentifyWccn("shadow"),
    )
    return people, every_update(attacks)


def attributes(names: tuple[str, ...], layer: Layer, rounds: int) -> ThreatPlan:
    """What senders are like, learned from others, or from themselves as published."""
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
        moving(half("random")),
        MOVES,
        WISDM.threats,
        10,
        precise(WISDM, 0.95),
    ),
    "wisdm_within_labels": Case(
        "WISDM, prior earlier within each activity",
        moving(half("chronological_within_labels")),
        MOVES,
        LINKED.threats,
        10,
        (
            AtLeast("gain over the published", LINKED.ours, "gain_over_published", 0.08),
            *usual(LINKED),
        ),
    ),
    "wisdm_in_time": Case(
        "WISDM, prior earlier in the file",
        moving(half("chronological")),
        MOVES,
        WISDM.threats,
        10,
        usual(WISDM),
    ),
    # What matching labels takes away is told by the same numbers of examples, not matched.
    "wisdm_matched": Case(
        "WISDM, 28 users of 10 walking and 10 jogging windows, and as many prior ones",
        moving(
            half("chronological_within_labels").model_copy(update={"per_label": 10}), clients=28
        ),
        MOVES,
        WISDM.threats,
        10,
    ),
    "wisdm_few": Case(
        "WISDM, 28 users of 20 windows, and as many prior ones, labels as they are",
        moving(
            half("chronological_within_labels").model_copy(update={"records": 20}),
            clients=28,
            examples=20,
        ),
        MOVES,
        WISDM.threats,
        10,
    ),
    "wisdm_open": Case(
        "WISDM, 18 known and 9 unknown users, and 9 who take no part",
        moving(open_world(9)[0], clients=27),
        MOVES,
        (open_world(9)[1],),
        10,
    ),
    "wisdm_axes": Case(
        "WISDM, the X axis is sent, Y and Z of prior windows are known; 12 users take no part",
        moving(People(prior="random", holdout=12), source=Wisdm("x"), clients=24),
        MOVES,
        (every_update((MatchCrossModal(), MatchCrossModal(learn_from="everyone"))),),
        10,
    ),
    "wisdm_defended": defended(
        "WISDM, 30 users, 300 public windows of 6 others",
        moving(half("random"), clients=30, background=300),
        MOVES,
        frontier((10, 30)),
        WISDM,
        5,
    ),
    "blogs_in_time": Case(
        "Blogs, prior earlier",
        blogging(half("chronological"), Blogs("next_word")),
        WORDS,
        BLOGS.threats,
        3,
        precise(
            BLOGS,
            0.85,
            AtLeast("ours, top-1 for one update", BLOGS.ours, "top1", 0.78),
            More("ours, top-1 over rounds", BLOGS.ours_over_rounds, BLOGS.ours, "top1"),
            AtLeast("published, average precision", BLOGS.published, PRECISION, 0.6),
        ),
    ),
    "blogs_random": Case(
        "Blogs, random prior",
        blogging(half("random"), Blogs("next_word")),
        WORDS,
        BLOGS.threats,
        3,
        precise(BLOGS, 0.88),
    ),
    "blogs_attributes": Case(
        "Blogs, 60 bloggers; 29 others, who take no part, tell what gender and age sound like",
        blogging(People(holdout=29), Blogs("next_word"), clients=60),
        WORDS,
        (attributes(("gender", "age_group"), "last_bias", 6),),
        3,
    ),
    "blogs_defended": defended(
        "Blogs, every twelfth word, public posts of 200 others",
        blogging(half("chronological"), Blogs("next_word", tokens=60, stride=12)),
        WORDS.model_copy(update={"rounds": 12, "participation": 0.2}),
        few(),
        Lineup("last_bias", most_rounds=4),
        1,
    ),
}
