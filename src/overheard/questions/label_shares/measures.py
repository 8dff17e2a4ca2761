"""Titles and units of this question's scores in reports."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "l1": Measure("Data assigned to the wrong class", f"{SPACE}%", 50.0),
        "l2": Measure("Euclidean distance of label shares", "", 1.0, 0.0),
        "linf": Measure("Largest error of a label share", f"{SPACE}points", 100.0, 0.0),
        "wasserstein": Measure("Wasserstein distance of label shares", "", 1.0, 0.0),
        "kl": Measure("Kullback-Leibler divergence of label shares", f"{SPACE}nats", 1.0, 0.0),
        "js": Measure("Jensen-Shannon divergence of label shares", f"{SPACE}nats", 1.0, 0.0),
        "top1": Measure("Most frequent class identified", f"{SPACE}%", 100.0),
        "top3": Measure("Three most frequent classes identified", f"{SPACE}%", 100.0),
        "null_precision": Measure("Claims of absence that are correct", f"{SPACE}%", 100.0),
        "null_recall": Measure("Absent classes that are claimed absent", f"{SPACE}%", 100.0),
        "null_exact": Measure("Sets of absent classes that are correct", f"{SPACE}%", 100.0),
        "coverage": Measure("True shares inside the stated intervals", f"{SPACE}%", 100.0),
        "width": Measure("Mean width of the stated intervals", f"{SPACE}points", 100.0, 0.0),
        "doubted": Measure("Claims whose intervals the attack doubts", f"{SPACE}%", 100.0),
        "null_brier": Measure("Brier score of the absence probabilities", "", 1.0, 0.0),
        "size_factor": Measure(
            "Error of the number of examples", f"{SPACE}doublings", 1.0, 0.0
        ),
        "size_coverage": Measure(
            "True numbers of examples inside the stated intervals", f"{SPACE}%", 100.0
        ),
    }
)
