"""Gradient-Leaks: the sender of an update, the sender's attributes, and defenses."""

from dataclasses import replace

from overheard_studies.deanonymization.conclusions import with_conclusions
from overheard_studies.deanonymization.defended import LARGE, REDUCED_LARGE, defended
from overheard_studies.deanonymization.other_claims import attributes, cross_modal
from overheard_studies.deanonymization.run_studies import (
    known_count,
    stages,
    utility,
)
from overheard_studies.deanonymization.setting import (
    AGES,
    BLOGS,
    QUICK_AGES,
    QUICK_BLOGS,
    QUICK_WISDM,
    WISDM,
)
from overheard_studies.deanonymization.studies import (
    DEEP_DEPTH,
    SHALLOW_DEPTH,
    TEXT_LAYERS,
    Varied,
    depth,
    iid,
    open_world,
    perceptron,
    prior_examples,
    profiles,
    reidentification,
)
from overheard_studies.deanonymization.training_steps import training_steps
from overheard_studies.deanonymization.variation import bias, distances
from overheard_studies.study import Paper, Study

PAPER_SIZE = "55 bloggers, 53 users of PIPA, 327 of OpenImages, 118 of Yelp; 200 rounds"

HOURS = {
    "figure2": 1.5,
    "table2": 2.2,
    "table3": 4.8,
    "iid": 1.0,
    "cross_modal": 1.2,
    "figure5": 0.2,
    "figure6": 3.5,
    "table4": 4.0,
    "figure7": 5.0,
    "figure8": 1.2,
    "table5": 3.2,
    "figure10": 1.1,
    "figure11": 1.1,
    "figure12": 6.0,
    "figure12_large": 0.1,
}
"""Rough core hours of what was not run at the full size: five runs on blogs take one to two
hours, and on WISDM ten minutes."""


def _studies() -> tuple[Study, ...]:
    texts = Varied(BLOGS, TEXT_LAYERS), Varied(AGES, TEXT_LAYERS)
    short_texts = Varied(QUICK_BLOGS, TEXT_LAYERS), Varied(QUICK_AGES, TEXT_LAYERS)
    studies = (
        distances(),
        training_steps(),
        utility(),
        reidentification(),
        iid(),
        cross_modal(),
        profiles(),
        open_world(),
        attributes(),
        prior_examples(),
        known_count(),
        depth(
            "table5",
            (*texts, perceptron(WISDM, SHALLOW_DEPTH)),
            (*short_texts, perceptron(QUICK_WISDM, SHALLOW_DEPTH)),
        ),
        depth(
            "figure9",
            (perceptron(WISDM, DEEP_DEPTH),),
            (perceptron(QUICK_WISDM, DEEP_DEPTH),),
        ),
        stages(),
        bias(),
        defended(),
        defended(LARGE, REDUCED_LARGE, "figure12_large"),
    )
    return tuple(
        replace(with_conclusions(one), paper_size=PAPER_SIZE, hours=HOURS.get(one.name, 0.0))
        for one in studies
    )


PAPER = Paper(
    "deanonymization",
    "Gradient-Leaks: Understanding and Controlling Deanonymization in Federated Learning",
    "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (arXiv 1805.05838)",
    _studies,
)
