"""The errors that a caller may want to catch.

AuditError
├── PlanError            a plan or a policy is invalid or contradicts itself
├── DataError            a data set is missing, damaged or not the one expected
├── NeedsError           an attack needs something that its threat does not grant
├── ClaimError           an attack's claim is not valid
├── TranscriptError      a stored transcript is missing, damaged or of another format
├── FindingsError        a findings file is damaged or of another format
├── OutputError          an output file or folder cannot be written or read
└── WorkerError          a worker process died, or its training failed
"""


class AuditError(Exception):
    """Base of all errors that a user can fix; the message says where and how."""


class PlanError(AuditError):
    """A plan or a policy is invalid or contradicts itself."""


class DataError(AuditError):
    """A data set is missing, damaged or not the one expected."""


class NeedsError(AuditError):
    """An attack needs something that its threat does not grant."""


class UnstatedTruthError(NeedsError):
    """The ground truth of a run that was not simulated states nothing of what is claimed."""


class ClaimError(AuditError):
    """An attack's claim is not valid."""


class TranscriptError(AuditError):
    """A stored transcript is missing, damaged or of another format."""


class FindingsError(AuditError):
    """A findings file is damaged or of another format."""


class OutputError(AuditError):
    """An output file or folder cannot be written or read."""


class WorkerError(AuditError):
    """A worker process died, or its training failed."""
