"""The block for a model card uses terms of FAIR4ML and states what was measured."""

import json

from overheard.report.evidence.model_card import model_card
from overheard.report.evidence.officer import OfficerWords
from tests.report.evidence.annexes import read

DOMAINS = {
    "evaluatedMLModel": "MLModelEvaluation",
    "evaluationResults": "MLModelEvaluation",
    "hasEvaluation": "MLModel",
    "intendedUse": "MLModel",
    "legal": "MLModel",
    "modelRisksBiasLimitations": "MLModel",
}
"""The terms of FAIR4ML 0.1.0 that are used, and the type of what they describe.

Source: `release/0.1.0/fair4ml.jsonld` of github.com/RDA-FAIR4ML/FAIR4ML-schema, commit 3f295bc.
"""


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


def test_every_term_describes_what_it_is_defined_for() -> None:
    document = json.loads(model_card(read(), OfficerWords()))
    used = dict[str, str]()
    for entity in document["@graph"]:
        (kind,) = [one for one in entity["@type"] if one.startswith("fair4ml:")]
        for key in entity:
            if key.startswith("fair4ml:"):
                used[key.removeprefix("fair4ml:")] = kind.removeprefix("fair4ml:")
    assert used == DOMAINS


def test_values_are_texts_or_links_within_the_block() -> None:
    document = json.loads(model_card(read(), OfficerWords()))
    ids = {entity["@id"] for entity in document["@graph"]}
    for entity in document["@graph"]:
        for key, value in entity.items():
            for one in value if isinstance(value, list) else [value]:
                assert isinstance(one, str) or (set(one) == {"@id"} and one["@id"] in ids), key


def test_says_what_nobody_stated() -> None:
    model, _ = json.loads(model_card(read(), OfficerWords()))["@graph"]
    assert "To be filled in" in model["fair4ml:intendedUse"]
    assert "to be filled in" in model["fair4ml:modelRisksBiasLimitations"]
