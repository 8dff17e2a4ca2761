"""What the paper states of its tables and figures, as statistics of our runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from typing import Any

import numpy as np

from overheard.core.attack import Attack
from overheard.core.scorer import Score
from overheard.plans.plan import UNDEFENDED
from overheard.questions.identity.statistics.ranking import (
    build_rankings,
    precision_by_user,
)
from overheard.statistics.estimate import Estimate
from overheard_studies.deanonymization.measures import mean_over_seeds
from overheard_studies.runs import StudyRuns
from overheard_studies.study import Conclusion, Study, Values

Statistics = Mapping[str, Estimate | None]

Find = Callable[[StudyRuns, Values], Statistics]

# Any: each attack has its own claim type.
Pick = Callable[[Attack[Any]], bool]
"""Whether an attack is the one that is meant."""

ByRun = Mapping[int, float]

DATASETS = {
    "blogs": ("Blogs", ("random", "chronological")),
    "ages": ("Ages of bloggers", ("random", "chronological")),
    "wisdm": ("WISDM", ("random", "chronological_within_labels")),
}
"""Name of each data set, and its divisions that the paper's two correspond to."""

LEAST_TIMES_CHANCE = 15.0
"""The least value of the paper's Table 3 on blogs, as a multiple of 1 / users."""

NO_PHOTOS = "the photos of PIPA and OpenImages are not here"

NOISE = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Variances of the published noise."""


def pick(name: str, **fields: object) -> Pick:
    """Return whether an attack has this name and these fields."""
    return lambda attack: (
        attack.name == name
        and all(getattr(attack, field) == value for field, value in fields.items())
    )


SHADOW_MLP = pick("reidentify_mlp", updates="shadow")


def attack_name(runs: StudyRuns, audit: str, chosen: Pick) -> str:
    """Return the name of an attack in the first threat of an audit's plan."""
    threat = runs.plans[audit].threats[0]
    return next(threat.attack_name(one) for one in threat.attacks if chosen(one))


def precisions(
    runs: StudyRuns,
    audit: str,
    chosen: Pick,
    arm: str = UNDEFENDED,
    *,
    is_control: bool = False,
) -> ByRun:
    """Return the mean average precision of each run."""
    name = attack_name(runs, audit, chosen)
    found = [
        one
        for one in runs.audits[audit].findings
        if (one.cell.attack, one.cell.arm, one.cell.is_control) == (name, arm, is_control)
    ]
    by_run: dict[int, list[float]] = {}
    for (run, _), precision in precision_by_user(build_rankings(found)).items():
        by_run.setdefault(run, []).append(precision)
    return {run: float(np.mean(several)) for run, several in by_run.items()}


def scores(runs: StudyRuns, audit: str, chosen: Pick, score: str) -> ByRun:
    """Return the mean of a score over the targets of each run."""
    name = attack_name(runs, audit, chosen)
    by_run: dict[int, list[Score]] = {}
    for one in runs.audits[audit].findings:
        if one.cell.attack == name and not one.cell.is_control:
            by_run.setdefault(one.cell.seed, []).extend(
                each for each in one.scores if each.name == score
            )
    return {run: float(np.mean([one.value for one in of])) for run, of in by_run.items()}


def chances(runs: StudyRuns, audit: str, chosen: Pick) -> ByRun:
    """Return the mean average precision of a random order in each run."""
    name = attack_name(runs, audit, chosen)
    found = [
        one
        for one in runs.audits[audit].findings
        if one.cell.attack == name and not one.cell.is_control
    ]
    return {one.seed: float(one.random_precisions().mean()) for one in build_rankings(found)}


def difference(one: ByRun, other: ByRun) -> Estimate | None:
    """Return the mean difference over the runs that both have; None if there are none."""
    found = [one[run] - other[run] for run in one if run in other]
    return mean_over_seeds(found) if found else None


def ratio(one: ByRun, other: ByRun) -> Estimate | None:
    """Return the mean ratio over the runs that both have; None if there are none."""
    found = [one[run] / other[run] for run in one if run in other]
    return mean_over_seeds(found) if found else None


def named(*names: str) -> Find:
    """Return values of the study by their names."""

    def find(runs: StudyRuns, values: Values) -> Statistics:
        by_name = {one.name: one for one in values}
        return {
            name: None
            if (one := by_name.get(name)) is None or one.value is None
            else Estimate(one.value, one.low, one.high)
            for name in names
        }

    return find


def each(audits: Sequence[str], measure: Callable[[StudyRuns, str], Estimate | None]) -> Find:
    """Return one statistic for each audit."""
    return lambda runs, values: {audit: measure(runs, audit) for audit in audits}


def _table2() -> Iterator[Conclusion]:
    priors = "random", "chronological"
    for key, (name, _) in DATASETS.items():
        yield Conclusion(
            f"{key}_recovers",
            f"{name}: the federated model has 80 % and more of the centralised one's utility.",
            named(*(f"{key}_{prior}_recovered" for prior in priors)),
            "above",
            0.8,
            audits=tuple(f"{key}_{prior}" for prior in priors),
        )


RIVALS: Mapping[str, tuple[str, Pick]] = {
    "svm": ("the SVM, scored by its decisions", pick("reidentify_svm", hard=True)),
    "svm_margins": (
        "the SVM, scored by its margins (Overheard's reading)",
        pick("reidentify_svm", hard=False),
    ),
    "knn": ("kNN", pick("reidentify_knn")),
}


def _table3() -> Iterator[Conclusion]:
    def times_chance(runs: StudyRuns, values: Values, audits: Sequence[str]) -> Statistics:
        found = {}
        for audit in audits:
            users = runs.plans[audit].data.clients
            assert users is not None
            for rival, chosen in {
                "mlp": SHADOW_MLP,
                **{rival: chosen for rival, (_, chosen) in RIVALS.items()},
            }.items():
                by_run = precisions(runs, audit, chosen).values()
                found[f"{audit} {rival}"] = mean_over_seeds([one * users for one in by_run])
        return found

    yield Conclusion(
        "photos_above_chance",
        "OpenImages: the MLP is 175 times above chance, kNN 150 times.",
        None,
        reason_not_run=NO_PHOTOS,
    )
    for key, (name, priors) in DATASETS.items():
        audits = tuple(f"{key}_{prior}" for prior in priors)
        yield Conclusion(
            f"{key}_above_chance",
            f"{name}: all attacks greatly outperform chance, with both kinds of prior "
            f"examples: {LEAST_TIMES_CHANCE:g} times 1 / users and more.",
            partial(times_chance, audits=audits),
            "above",
            LEAST_TIMES_CHANCE,
            audits=audits,
        )
        for rival, (words, chosen) in RIVALS.items():
            yield Conclusion(
                f"{key}_mlp_above_{rival}",
                f"{name}: the MLP has a higher average precision than {words}.",
                each(audits, partial(_lead, rival=chosen)),
                audits=audits,
            )
        yield Conclusion(
            f"{key}_mlp_names_first",
            f"{name}: the MLP's first guess is right more often than the SVM's.",
            each(audits, _lead_of_first_guess),
            audits=audits,
        )


def _lead(runs: StudyRuns, audit: str, rival: Pick) -> Estimate | None:
    return difference(precisions(runs, audit, SHADOW_MLP), precisions(runs, audit, rival))


def _lead_of_first_guess(runs: StudyRuns, audit: str) -> Estimate | None:
    rival = pick("reidentify_svm", hard=False)
    return difference(
        scores(runs, audit, SHADOW_MLP, "top1"), scores(runs, audit, rival, "top1")
    )


def _iid() -> Iterator[Conclusion]:
    def control(runs: StudyRuns, audit: str) -> Estimate | None:
        found = precisions(runs, audit, SHADOW_MLP, is_control=True)
        return ratio(found, chances(runs, audit, SHADOW_MLP))

    for key in ("blogs", "wisdm"):
        yield Conclusion(
            f"{key}_near_chance",
            f"{DATASETS[key][0]}: with examples redistributed at random, the average precision "
            "is near chance: 1.5 times or less.",
            each((key,), control),
            "below",
            1.5,
            words="times chance",
            audits=(key,),
        )


def _cross_modal() -> Iterator[Conclusion]:
    for key in ("blogs", "wisdm"):
        yield Conclusion(
            f"{key}_other_modality",
            f"{DATASETS[key][0]}: users are found by data of another modality: balanced pairs "
            "have an average precision above 0.5.",
            named(f"{key}_everyone_balanced"),
            "above",
            0.5,
            words="average precision of balanced pairs",
            audits=(key,),
        )


SEEN = (25, 50, 75, 100)


def _figure6() -> Iterator[Conclusion]:
    def at_least(runs: StudyRuns, audit: str) -> Estimate | None:
        return ratio(precisions(runs, audit, SHADOW_MLP), chances(runs, audit, SHADOW_MLP))

    def falls(key: str, runs: StudyRuns, values: Values) -> Statistics:
        few, all_seen = (
            precisions(runs, f"{key}_seen_{seen}", SHADOW_MLP) for seen in (25, 100)
        )
        return {"25 to 100 % known": difference(few, all_seen)}

    def rises(key: str, runs: StudyRuns, values: Values) -> Statistics:
        few, all_seen = (
            {run: precision / chance[run] for run, precision in found.items()}
            for found, chance in (
                (precisions(runs, audit, SHADOW_MLP), chances(runs, audit, SHADOW_MLP))
                for audit in (f"{key}_seen_25", f"{key}_seen_100")
            )
        )
        return {"25 to 100 % known": difference(all_seen, few)}

    for key in ("blogs", "wisdm"):
        name = DATASETS[key][0]
        audits = tuple(f"{key}_seen_{seen}" for seen in SEEN)
        yield Conclusion(
            f"{key}_identifies",
            f"{name}: with unknown users too, the MLP is much above chance: twice and more.",
            each(audits, at_least),
            "above",
            2.0,
            audits=audits,
        )
        yield Conclusion(
            f"{key}_precision_falls",
            f"{name}: the average precision falls as more users are known.",
            partial(falls, key),
            words="fall of the average precision",
            audits=(audits[0], audits[-1]),
        )
        yield Conclusion(
            f"{key}_times_chance_rises",
            f"{name}: as a multiple of chance it rises.",
            partial(rises, key),
            words="rise of times chance",
            audits=(audits[0], audits[-1]),
        )
        yield Conclusion(
            f"{key}_matches",
            f"{name}: the Siamese network tells pairs of one user, whoever is known.",
            named(*(f"{audit}_link_siamese_matching_auc" for audit in audits)),
            "above",
            0.5,
            audits=audits,
        )


def _table4() -> Iterator[Conclusion]:
    def identity(audit: str, attribute: str, runs: StudyRuns, values: Values) -> Statistics:
        joint = pick("reidentify_jointly", attribute=attribute)
        gain = difference(
            scores(runs, audit, joint, "top1"), scores(runs, audit, SHADOW_MLP, "top1")
        )
        return {attribute: gain}

    def of_attribute(audit: str, attribute: str, runs: StudyRuns, values: Values) -> Statistics:
        joint, single = (
            scores(
                runs,
                audit,
                pick("attribute_mlp", attribute=attribute, jointly=jointly),
                "accuracy",
            )
            for jointly in (True, False)
        )
        return {attribute: difference(joint, single)}

    for key, attributes in (
        ("blogs", ("gender", "age_group")),
        ("omniglot_writers", ("alphabet",)),
    ):
        audit = f"{key}_known"
        for attribute in attributes:
            words = attribute.replace("_", " ")
            yield Conclusion(
                f"{key}_{attribute}_helps_identity",
                f"Learning the {words} jointly improves top-1 of the identity by 2.5 points "
                "and more.",
                partial(identity, audit, attribute),
                "above",
                0.025,
                words="gain of top-1",
                audits=(audit,),
            )
            yield Conclusion(
                f"{key}_identity_helps_{attribute}",
                f"Learning the identity jointly improves the accuracy of the {words}.",
                partial(of_attribute, audit, attribute),
                words="gain of accuracy",
                audits=(audit,),
            )


def _figure7() -> Iterator[Conclusion]:
    def above_chance(runs: StudyRuns, audit: str) -> Estimate | None:
        return difference(precisions(runs, audit, SHADOW_MLP), chances(runs, audit, SHADOW_MLP))

    def grows(key: str, runs: StudyRuns, values: Values) -> Statistics:
        one, every = (
            precisions(runs, f"{key}_records_{count}", SHADOW_MLP) for count in (1, "all")
        )
        return {"1 to all": difference(every, one)}

    for key in ("blogs", "wisdm"):
        name, one = DATASETS[key][0], f"{key}_records_1"
        yield Conclusion(
            f"{key}_one_example",
            f"{name}: one prior record a user gives more than chance.",
            each((one,), above_chance),
            words="average precision above that of a random order",
            audits=(one,),
        )
        yield Conclusion(
            f"{key}_more_examples",
            f"{name}: the average precision grows with the number of prior records.",
            partial(grows, key),
            words="gain from one record to all",
            audits=(one, f"{key}_records_all"),
        )


def _figure8() -> Iterator[Conclusion]:
    for key in ("blogs", "wisdm"):
        name = DATASETS[key][0]
        yield Conclusion(
            f"{key}_one_update",
            f"{name}: one known update a user gives 3 times chance (1 / users) and more.",
            named(f"{key}_updates_1_times_users"),
            "above",
            3.0,
            words="times 1 / users",
            audits=(key,),
        )


def _depth(key: str, layers: Sequence[str], best: str, words: str) -> Iterator[Conclusion]:
    def layer_precisions(runs: StudyRuns) -> Mapping[str, ByRun]:
        # Attacks are in the order of the layers, and two parts of the model follow these.
        attacks = [one for one in runs.plans[key].threats[0].attacks if SHADOW_MLP(one)]
        return {
            layer: precisions(runs, key, partial(eq, chosen))
            for layer, chosen in zip(layers, attacks, strict=False)
        }

    def above_chance(runs: StudyRuns, values: Values) -> Statistics:
        chance = chances(runs, key, SHADOW_MLP)
        found = layer_precisions(runs)
        return {layer: difference(by_run, chance) for layer, by_run in found.items()}

    def lead(runs: StudyRuns, values: Values) -> Statistics:
        found = layer_precisions(runs)
        return {
            f"{best} over {layer}": difference(found[best], by_run)
            for layer, by_run in found.items()
            if layer != best
        }

    name = DATASETS[key][0]
    yield Conclusion(
        f"{key}_all_layers",
        f"{name}: every layer identifies users better than chance.",
        above_chance,
        audits=(key,),
    )
    yield Conclusion(f"{key}_best_layer", f"{name}: {words} tells most.", lead, audits=(key,))


TEXT_LAYERS = ("embedding", "lstm", "fully_connected")


def _table5() -> Iterator[Conclusion]:
    yield from _depth("blogs", TEXT_LAYERS, "lstm", "of a language model, the LSTM")
    yield from _depth("ages", TEXT_LAYERS, "embedding", "of ratings, the embedding")


def _figure9() -> Iterator[Conclusion]:
    layers = ("hidden_1", "hidden_2", "hidden_3", "hidden_4", "fully_connected")
    yield from _depth("wisdm", layers, "fully_connected", "the last layer")


def _figure10() -> Iterator[Conclusion]:
    for key in ("blogs", "wisdm"):
        yield Conclusion(
            f"{key}_rounds",
            f"{DATASETS[key][0]}: the rounds of known updates and of targets have little "
            "influence: the same rounds give less than a tenth more than others.",
            named(f"{key}_same_minus_other"),
            "below",
            0.1,
            words="average precision of the same rounds minus others",
            audits=(key,),
        )


def _figure11() -> Iterator[Conclusion]:
    for key in ("wisdm", "blogs"):
        yield Conclusion(
            f"{key}_bias",
            f"{DATASETS[key][0]}: a user's bias per class in private updates resembles that in "
            "the own prior updates more than those of others.",
            named(f"{key}_own_minus_other"),
            words="own correlation minus others'",
            audits=(key,),
        )


def _figure2() -> Iterator[Conclusion]:
    for key in ("blogs", "wisdm"):
        yield Conclusion(
            f"{key}_alike",
            f"{DATASETS[key][0]}: the examples of most users are closer to each other than to "
            "those of others.",
            named(f"{key}_above_diagonal"),
            "above",
            0.5,
            words="share of users",
            audits=(key,),
        )


def _figure5() -> Iterator[Conclusion]:
    def times_chance(attack: str, runs: StudyRuns, audit: str) -> Estimate | None:
        chosen = pick(attack)
        return ratio(precisions(runs, audit, chosen), chances(runs, audit, chosen))

    for attack, words in (
        ("reidentify_mlp", "the published network"),
        ("profile", "Overheard's profile"),
    ):
        yield Conclusion(
            f"wisdm_{attack}",
            "Devices that fit a profile can be singled out by examples of it, with "
            f"{words}: twice chance and more.",
            each(("wisdm",), partial(times_chance, attack)),
            "above",
            2.0,
            words="times chance",
            audits=("wisdm",),
        )


def _figure12(key: str, name: str, variances: Sequence[float]) -> Iterator[Conclusion]:
    def decrease(runs: StudyRuns, key: str, arm: str) -> ByRun:
        whole, left = (precisions(runs, key, SHADOW_MLP, one) for one in (UNDEFENDED, arm))
        return {run: 1 - left[run] / whole[run] for run in whole if run in left}

    def lead(key: str, others: Sequence[str], runs: StudyRuns, values: Values) -> Statistics:
        best = decrease(runs, key, "mm_aug 0.5")
        return {other: difference(best, decrease(runs, key, other)) for other in others}

    def price(key: str, arms: Sequence[str], runs: StudyRuns, values: Values) -> Statistics:
        utilities = named(*(f"{key}_{arm.replace(' ', '_')}_utility" for arm in arms))
        found = utilities(runs, values).values()
        return {
            arm: None
            if utility is None
            else mean_over_seeds(
                [one - (1 - utility.mean) for one in decrease(runs, key, arm).values()]
            )
            for arm, utility in zip(arms, found, strict=True)
        }

    if key == "wisdm":
        yield Conclusion(
            "photos_mm_aug",
            "OpenImages: at alpha 0.5, mm_aug lowers the average precision by 75 %, rand_aug "
            "by 45 % and bkg_repl by 67 %.",
            None,
            reason_not_run=NO_PHOTOS,
        )
    noise = tuple(f"noise {one:g}" for one in variances)
    yield Conclusion(
        f"{key}_mm_aug_is_best",
        f"{name}: at alpha 0.5, mm_aug lowers the average precision more than rand_aug and "
        "bkg_repl.",
        partial(lead, key, ("rand_aug 0.5", "bkg_repl 0.5")),
        words="decrease by mm_aug minus decrease by the other",
        audits=(key,),
    )
    yield Conclusion(
        f"{key}_mm_aug_above_noise",
        f"{name}: mm_aug at alpha 0.5 lowers the average precision more than noise of "
        "variance 0.01.",
        partial(lead, key, noise[:1]),
        words="decrease by mm_aug minus decrease by noise",
        audits=(key,),
    )
    yield Conclusion(
        f"{key}_noise_is_costly",
        f"{name}: noise costs more utility than it lowers the average precision.",
        partial(price, key, noise),
        "below",
        words="relative decrease of the average precision minus that of the utility",
        audits=(key,),
    )
    yield Conclusion(
        f"{key}_mm_aug_is_cheap",
        f"{name}: mm_aug at alpha 0.5 keeps 95 % of the utility and more.",
        named(f"{key}_mm_aug_0.5_utility"),
        "above",
        0.95,
        words="utility, 1 = without defenses",
        audits=(key,),
    )


CONCLUSIONS: Mapping[str, Callable[[], Iterator[Conclusion]]] = {
    "figure2": _figure2,
    "table2": _table2,
    "table3": _table3,
    "iid": _iid,
    "cross_modal": _cross_modal,
    "figure5": _figure5,
    "figure6": _figure6,
    "table4": _table4,
    "figure7": _figure7,
    "figure8": _figure8,
    "table5": _table5,
    "figure9": _figure9,
    "figure10": _figure10,
    "figure11": _figure11,
    "figure12": partial(_figure12, "wisdm", DATASETS["wisdm"][0], NOISE),
    "figure12_large": partial(_figure12, "large", "WISDM, a larger network", NOISE[:1]),
}
"""The statements of each table and figure."""


def with_conclusions(study: Study) -> Study:
    """Return the study with the paper's statements of it."""
    found = CONCLUSIONS.get(study.name)
    return study if found is None else replace(study, conclusions=tuple(found()))
