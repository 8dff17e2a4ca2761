"""Gradient-Leaks: the sender of an update, the sender's attributes, and defenses."""

from overheard_studies.deanonymization.conclusions import with_conclusions
from overheard_studies.deanonymization.defended import LARGE, REDUCED_LARGE, defended
from overheard_studies.deanonymization.other_claims import attributes, cross_modal
from overheard_studies.deanonymization.run_studies import (
    known_count,
    stages,
    utility,
)
from overheard_studies.deanonymization.setting import AGES, BLOGS, QUICK_SCENARIO, WISDM
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


def _studies() -> tuple[Study, ...]:
    texts = Varied(BLOGS, TEXT_LAYERS), Varied(AGES, TEXT_LAYERS)
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
            (perceptron(QUICK_SCENARIO, SHALLOW_DEPTH),),
        ),
        depth(
            "figure9",
            (perceptron(WISDM, DEEP_DEPTH),),
            (perceptron(QUICK_SCENARIO, DEEP_DEPTH),),
        ),
        stages(),
        bias(),
        defended(),
        defended(LARGE, REDUCED_LARGE, "figure12_large"),
    )
    return tuple(map(with_conclusions, studies))


PAPER = Paper(
    "deanonymization",
    "Gradient-Leaks: Understanding and Controlling Deanonymization in Federated Learning",
    "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (arXiv 1805.05838)",
    _studies,
)
