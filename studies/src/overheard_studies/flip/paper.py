"""FLiP: federated learning by dataset distillation."""

from overheard_studies.flip.attribute import attribute
from overheard_studies.flip.samples import samples
from overheard_studies.flip.studies import accuracies, membership, methods
from overheard_studies.study import Paper

PAPER = Paper(
    "flip",
    "Privacy-Preserving Federated Learning via Dataset Distillation",
    "FLiP (arXiv 2410.19548)",
    lambda: (*accuracies(), samples(), attribute(), membership(), methods()),
)
