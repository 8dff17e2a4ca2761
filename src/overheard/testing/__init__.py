"""Contract tests for plugins, including those of other packages.

Each function takes a plugin with its settings, and raises an AssertionError that names the
violated rule. No test runner is needed.
"""

from overheard.testing.algorithm import check_algorithm
from overheard.testing.attack import check_attack
from overheard.testing.dataset import check_dataset
from overheard.testing.defense import check_defense
from overheard.testing.distillation import check_distillation
from overheard.testing.model import check_model
from overheard.testing.scorer import check_question, check_scorer
from overheard.testing.split import check_split

__all__ = [
    "check_algorithm",
    "check_attack",
    "check_dataset",
    "check_defense",
    "check_distillation",
    "check_model",
    "check_question",
    "check_scorer",
    "check_split",
]
