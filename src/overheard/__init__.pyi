# Every public name but the classes of plugins and claims, for type checkers and for
# `import overheard`.
# ruff: noqa: I001 - grouped by what they are

import typing

from .archive.reader import open_transcript as open_transcript
from .auditing.canaries import draw_canaries as draw_canaries
from .auditing.run import audit as audit
from .auditing.score import score as score
from .auditing.inputs import Resources as Resources
from .auditing.simulate import knowledge as knowledge
from .auditing.simulate import simulate as simulate
from .gate.check import check as check
from .planning.cohorts.design import propose_cohorts as propose_cohorts
from .planning.cohorts.planned_design import (
    propose_cohorts_of_plan as propose_cohorts_of_plan,
)
from .plans.built_in import built_in_plan as built_in_plan
from .plans.plan import Plan as Plan
from .plans.plan import read_plan as read_plan
from .recorders.folder_import import import_recording as import_recording
from .report.show import show as show
from .report.write import write_report as write_report

# The contracts, and the words that they use.
from .core.algorithm.algorithm import Algorithm as Algorithm
from .core.attack import Attack as Attack
from .core.claims import Claim as Claim
from .core.defense import Defense as Defense
from .core.examples import Examples as Examples
from .core.knowledge import Knowledge as Knowledge
from .core.needs import Need as Need
from .core.parties import Party as Party
from .core.recipe import Recipe as Recipe
from .core.scorer import Score as Score
from .core.scorer import Scorer as Scorer
from .core.seeds import Seed as Seed
from .core.split import Split as Split
from .core.transcript import Transcript as Transcript
from .core.truth import GroundTruth as GroundTruth
from .core.view import View as View
from .data.dataset import DataSource as DataSource
from .findings.audit import Audit as Audit
from .findings.finding import Finding as Finding
from .findings.finding import Refusal as Refusal
from .findings.question import Question as Question
from .learning.distillation.distillation import Distillation as Distillation
from .learning.model import Model as Model

# What can go wrong.
from .core.errors import AuditError as AuditError
from .core.errors import ClaimError as ClaimError
from .core.errors import DataError as DataError
from .core.errors import FindingsError as FindingsError
from .core.errors import NeedsError as NeedsError
from .core.errors import OutputError as OutputError
from .core.errors import PlanError as PlanError
from .core.errors import TranscriptError as TranscriptError
from .core.errors import WorkerError as WorkerError

# The classes of plugins and claims. `hatch_build.py` puts an import of each here in a wheel.
def __getattr__(name: str) -> typing.Any: ...
