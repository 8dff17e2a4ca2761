"""A block of a model card, in the terms of FAIR4ML 0.1.0 (https://w3id.org/fair4ml/0.1.0)."""

import json
from collections.abc import Sequence

from overheard.findings.document import FindingsDocument
from overheard.findings.names import make_printable
from overheard.report.evidence.annex_results import result_sentence
from overheard.report.evidence.officer import OfficerWords, release_fields

JsonEntity = dict[str, object]
"""An entity of a JSON-LD document; further entities are named by their `@id`."""

VOCABULARY = "http://schema.org/"

FAIR4ML = "https://w3id.org/fair4ml#"

MODEL_ID = "#model"

EVALUATION_ID = "#privacy-evaluation"

CAUTION = (
    "Results are evidence for the attacks that were tested. They are no legal assessment, and "
    "do not state that a law or a standard is met."
)


def model_card(findings: FindingsDocument, words: OfficerWords) -> str:
    """Return the block as JSON-LD, to be put into a model card or beside it."""
    context = {"@vocab": VOCABULARY, "fair4ml": FAIR4ML}
    document = {"@context": context, "@graph": model_entities(findings, words)}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def model_entities(findings: FindingsDocument, words: OfficerWords) -> Sequence[JsonEntity]:
    """Return the trained model, and the evaluation of what it and its training reveal."""
    release = release_fields(words, findings.release)
    results = [result_sentence(one) for one in findings.verdicts]
    model: JsonEntity = {
        "@id": MODEL_ID,
        "@type": ["CreativeWork", "fair4ml:MLModel"],
        "name": f"Model of “{make_printable(findings.title)}”",
        "description": make_printable(findings.subject),
        "fair4ml:intendedUse": make_printable(release["purpose"].shown_text),
        "fair4ml:legal": CAUTION,
        "fair4ml:modelRisksBiasLimitations": make_printable(
            " ".join((words.residual_risk or "Residual risk: to be filled in.").split())
        ),
        "fair4ml:hasEvaluation": {"@id": EVALUATION_ID},
    }
    evaluation: JsonEntity = {
        "@id": EVALUATION_ID,
        "@type": ["CreativeWork", "fair4ml:MLModelEvaluation"],
        "name": "What the training reveals about its participants",
        "description": "Attacks on the messages of the training, compared with guessing. "
        f"{CAUTION}",
        "fair4ml:evaluatedMLModel": {"@id": MODEL_ID},
        "fair4ml:evaluationResults": results,
    }
    return (model, evaluation)
