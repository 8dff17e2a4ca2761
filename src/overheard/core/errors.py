"""What can go wrong, as a caller may want to catch it.

AuditError
├── PlanError            a plan or a policy asks for what there is not, or contradicts itself
├── DataError            a data set is missing, damaged or not what its name says
├── NeedsError           an attack needs what its threat does not grant
├── ClaimError           an attack's answer is not a possible answer
├── TranscriptError      a stored transcript is damaged, or of another format
├── FindingsError        a file of findings is damaged, or of another format
├── OutputError          an output folder cannot take what is to be written there
└── WorkerError          a worker process died, or failed at its training
"""


class AuditError(Exception):
    """Base of every error that a user can mend; its message says where and how."""


class PlanError(AuditError):
    """A plan or a policy asks for what there is not, or contradicts itself."""


class DataError(AuditError):
    """A data set is missing, damaged or not what its name says."""


class NeedsError(AuditError):
    """An attack needs what its threat does not grant."""


class ClaimError(AuditError):
    """An attack's answer is not a possible answer."""


class TranscriptError(AuditError):
    """A stored transcript is damaged, or of another format."""


class FindingsError(AuditError):
    """A file of findings is damaged, or of another format."""


class OutputError(AuditError):
    """An output folder cannot take what is to be written there."""


class WorkerError(AuditError):
    """A worker process died, or failed at its training."""
