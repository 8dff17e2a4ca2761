"""Titles and units of this question's scores in reports."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.number_format import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "rare_word_precision": Measure("Average precision, rare words", f"{SPACE}%", 100.0),
        "rare_words_named": Measure("Correct among the first rare words", f"{SPACE}%", 100.0),
        "word_precision": Measure("Average precision, all words", f"{SPACE}%", 100.0),
    }
)
