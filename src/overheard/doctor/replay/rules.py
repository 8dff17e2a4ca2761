"""The rules that a proof by record and replay holds against a client."""

from overheard.doctor.criticism import DoctorRule

_PAPER = "Cebere et al. 2026 (PETS, arXiv 2602.17454), re:cord-play"
_PITFALLS = 'McKenna and McMahan 2026 (JAX Privacy), "Sharp edges"'

SENSITIVITY = DoctorRule(
    "proof-sensitivity",
    "critical",
    "one record changes a noised sum by more than the stated sensitivity",
    "Clip the gradient of each record, over all parameters together, before gradients are "
    "added up, and add noise to nothing else.",
    f"{_PITFALLS}, sensitivity alignment; {_PAPER}",
)
NOISE_SCALE = DoctorRule(
    "proof-noise-scale",
    "critical",
    "the noise is smaller than noise multiplier times clip",
    "Draw noise of standard deviation noise multiplier * clip for the sum, and divide sum and "
    "noise by the same public number.",
    f"{_PITFALLS}, division by batch size; {_PAPER}",
)
NOISE_REPEATS = DoctorRule(
    "proof-noise-repeats",
    "critical",
    "the same noise is used more than once, or can be computed by others",
    "Seed no generator that draws noise, and draw new noise in each step, round and client.",
    f"{_PITFALLS}, random number generation; noise that repeats is no noise for the difference",
)
WITHOUT_NOISE = DoctorRule(
    "proof-without-noise",
    "critical",
    "arrays of the reply depend on one record without noise",
    "Send only what is computed from noised sums and from public values.",
    f"{_PITFALLS}, sensitivity alignment; {_PAPER}",
)
METRICS = DoctorRule(
    "proof-metrics",
    "critical",
    "numbers or texts of the reply depend on one record without noise",
    "Send no loss, metric, count or digest of private data, or add noise to it and account for "
    "it.",
    f"{_PITFALLS}, auxiliary information",
)
CONTROL_FLOW = DoctorRule(
    "proof-control-flow",
    "critical",
    "what the code does depends on one record",
    "Let steps, learning rates, shapes and branches depend on public values only.",
    f"{_PAPER}, control flow; {_PITFALLS}, non-finite gradients",
)
CROSS_RECORDS = DoctorRule(
    "proof-cross-records",
    "critical",
    "one record changes what the model computes for other records",
    "Normalise inputs with public constants, and replace batch norm by group norm.",
    f"{_PITFALLS}, cross-example operations",
)
BATCH_SIZES = DoctorRule(
    "proof-batch-sizes",
    "critical",
    "the number of records in a drawn batch is used without noise",
    "Divide by the expected size of a batch, and send no number of drawn records.",
    f"{_PITFALLS}, division by batch size",
)
NON_FINITE = DoctorRule(
    "proof-non-finite",
    "theoretical",
    "one record with a non-finite gradient makes the released arrays non-finite",
    "Set non-finite gradients of a record to zero before they are added up.",
    f"{_PITFALLS}, non-finite gradients",
)
RECORD_COUNT = DoctorRule(
    "proof-record-count",
    "theoretical",
    "the reply has the exact number of records",
    "State that the number of records is public, or send a constant.",
    f"{_PITFALLS}, public and private metadata",
)

PROOF_RULES = (
    SENSITIVITY,
    NOISE_SCALE,
    NOISE_REPEATS,
    WITHOUT_NOISE,
    METRICS,
    CONTROL_FLOW,
    CROSS_RECORDS,
    BATCH_SIZES,
    NON_FINITE,
    RECORD_COUNT,
)
"""All rules of a proof, in the order in which they are told."""
