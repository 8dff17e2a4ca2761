"""The block for a model card uses terms of FAIR4ML and states what was measured."""

import json

from overheard.report.evidence.model_card import model_card
from overheard.report.evidence.officer import OfficerWords
from tests.report.evidence.annexes import read

TERMS = {
    "MLModel",
    "MLModelEvaluation",
    "evaluatedMLModel",
    "evaluationResults",
    "hasEvaluation",
    "intendedUse",
    "legal",
    "modelRisksBiasLimitations",
}
"""Those of FAIR4ML 0.1.0 that are used; checked in its release file."""


def test_names_the_model_and_its_evaluation() -> None:
    words = OfficerWords(residual_risk="Low.\nSee the minutes.")
    document = json.loads(model_card(read(), words))
    model, evaluation = document["@graph"]
    assert document["@context"]["fair4ml"] == "https://w3id.org/fair4ml#"
    assert model["@type"] == ["CreativeWork", "fair4ml:MLModel"]
    assert model["fair4ml:modelRisksBiasLimitations"] == "Low. See the minutes."
    assert model["fair4ml:hasEvaluation"] == {"@id": evaluation["@id"]}
    assert evaluation["fair4ml:evaluatedMLModel"] == {"@id": model["@id"]}
    first, second = evaluation["fair4ml:evaluationResults"]
    assert "Leaks. The server tells members" in first
    assert "Not measured" in second


def test_uses_known_terms_only() -> None:
    text = model_card(read(), OfficerWords())
    used = {word.split('"')[0] for word in text.split("fair4ml:")[1:]}
    assert used == TERMS


def test_says_what_nobody_stated() -> None:
    model, _ = json.loads(model_card(read(), OfficerWords()))["@graph"]
    assert "To be filled in" in model["fair4ml:intendedUse"]
    assert "to be filled in" in model["fair4ml:modelRisksBiasLimitations"]
