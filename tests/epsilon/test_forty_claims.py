"""Twenty true claims are not called false, and twenty false ones do not hold."""

import math
from dataclasses import dataclass, replace

import pytest

from overheard.core.defense import RunParameters
from overheard.core.mechanism import ClientSampling, Mechanism, RecordSampling
from overheard.epsilon.epsilon_results import epsilon_results
from tests.auditing.epsilon_audits import audit_of
from tests.core.accounting.test_accountant import DELTA, FEDAVG, OPACUS
from tests.core.closed_form_epsilon import closed_epsilon


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a run, with the epsilon of their accountant."""

    mechanism: Mechanism
    run: RunParameters
    epsilon: float

    @property
    def is_bounded_below(self) -> bool:
        """Whether a lower bound of epsilon is known, as without sampling or with Poisson's."""
        sampled = (self.mechanism.record_sampling, self.run.sampling)
        return not {"fixed", "shuffled"} & {*sampled}


def of_records(
    kind: RecordSampling, noise: float, rate: float, steps: int, rounds: int, epsilon: float
) -> Plan:
    moves = 2.0 if kind == "fixed" else 1.0
    return Plan(
        Mechanism(
            noise, 1.0, DELTA, "client", "client", moves, "record", steps,
            record_sampling=kind, record_rate=None if kind == "none" else rate,
        ),
        RunParameters(rounds, 1.0, sampling="none"),
        epsilon,
    )  # fmt: skip


def of_clients(
    kind: ClientSampling, noise: float, rate: float, rounds: int, epsilon: float
) -> Plan:
    return Plan(
        Mechanism(noise, 1.0, DELTA, "server", "client", is_drawn=True),
        RunParameters(rounds, rate, rate, kind),
        epsilon,
    )


def gaussian(noise: float, draws: int) -> float:
    return closed_epsilon(math.sqrt(draws) / noise, DELTA)


PLANS = (
    *(of_records("poisson", z, q, 1, steps, epsilon) for z, q, steps, epsilon in OPACUS[:3]),
    # Three rounds of six steps are as eighteen rounds of one.
    of_records("poisson", *OPACUS[0][:2], 6, 3, OPACUS[0][3]),
    of_records("none", 8.0, 1.0, 5, 10, gaussian(8.0, 50)),
    of_records("none", 1.0, 1.0, 1, 1, gaussian(1.0, 1)),
    of_records("none", 40.0, 1.0, 20, 30, gaussian(40.0, 600)),
    # A replaced record changes a batch of a fixed size as a replaced client changes a cohort.
    *(of_records("fixed", z, q, 1, steps, epsilon) for _, z, q, steps, epsilon in FEDAVG[4:7]),
    # Batches of a quarter: twelve steps are three epochs, in each of two rounds.
    of_records("shuffled", 5.0, 0.25, 12, 2, gaussian(5.0, 6)),
    of_records("shuffled", 2.0, 0.01, 100, 3, gaussian(2.0, 3)),
    # Seven batches of 16 of 100 records are an epoch.
    of_records("shuffled", 3.0, 0.16, 14, 1, gaussian(3.0, 2)),
    *(of_clients(*one) for one in FEDAVG[1:8]),
)


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_a_true_claim_holds_and_one_of_half_its_epsilon_does_not(plan: Plan) -> None:
    verdicts = list[str]()
    for claimed in (1.02 * plan.epsilon, plan.epsilon / 2):
        stated = audit_of(replace(plan.mechanism, stated=claimed), run=plan.run)
        line = epsilon_results(stated)[-1]  # of the readers of models
        verdicts.append(line.accounted.claim)
        assert (line.verdict == "not tested") == (line.accounted.claim == "holds")
    assert verdicts == ["holds", "false" if plan.is_bounded_below else "not confirmed"]


def test_there_are_forty_claims_of_each_kind_of_sampling() -> None:
    assert len(PLANS) == 20
    records = {one.mechanism.record_sampling for one in PLANS} - {None}
    clients = {one.run.sampling for one in PLANS if one.mechanism.unit == "client"}
    assert records == {"poisson", "none", "fixed", "shuffled"}
    assert clients == {"poisson", "none", "fixed"}


def test_a_claim_whose_sampling_is_not_stated_is_not_confirmed() -> None:
    # DP-SGD of Opacus: 8.54 with its Poisson samples, 23.22 without any.
    opacus = of_records("poisson", *OPACUS[0][:2], 6, 3, OPACUS[0][3])
    silent = replace(opacus.mechanism, stated=9.0, record_sampling=None, record_rate=None)
    line = epsilon_results(audit_of(silent, run=opacus.run))[0]
    assert line.verdict == "not confirmed"
    assert line.accounted.doubt.endswith("is not stated (record_sampling)")
    assert line.upper_bound == pytest.approx(23.22, abs=0.01)
    assert line.accounted.recomputed is not None
    assert line.accounted.recomputed.lower == 0


def test_a_claim_without_relation_is_false_only_for_a_removed_client() -> None:
    # Noise of 4.845 clips is for an epsilon of 1 by the classical Gaussian mechanism. It has
    # 0.80 for a removed client, and 1.61 for a replaced one.
    silent = Mechanism(4.845, 1.0, DELTA, "client", "client", is_relation_stated=False)
    run = RunParameters(1, 1.0)
    for claimed, claim in ((0.7, "false"), (1.0, "not confirmed"), (1.7, "holds")):
        line = epsilon_results(audit_of(replace(silent, stated=claimed), run=run))[0]
        assert line.accounted.claim == claim
    replaced = replace(silent, stated=1.0, is_relation_stated=True)
    assert epsilon_results(audit_of(replaced, run=run))[0].accounted.claim == "false"


def test_a_record_of_clients_that_are_sampled_has_no_lower_bound() -> None:
    # A client that is seldom asked reveals less of a record than one that is always asked.
    always = of_records("none", 1.0, 1.0, 1, 10, 0.0)
    seldom = replace(always.run, participation=0.1, sampling="poisson")
    stated = replace(always.mechanism, stated=1.0)
    assert epsilon_results(audit_of(stated, run=always.run))[0].verdict == "false"
    assert epsilon_results(audit_of(stated, run=seldom))[0].verdict == "not confirmed"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (of_records("fixed", 1.0, 0.1, 1, 10, 0.0), "batches of a fixed size"),
        (of_clients("fixed", 1.0, 0.1, 10, 0.0), "a fixed number of sampled clients"),
    ],
)
def test_a_fixed_size_is_accounted_for_only_if_a_unit_is_replaced(
    plan: Plan, words: str
) -> None:
    removed = replace(plan.mechanism, moves=1.0)
    line = epsilon_results(audit_of(removed, run=plan.run))[-1]
    assert (line.verdict, line.upper_bound) == ("unaccounted", None)
    assert line.accounted.doubt.startswith(words)


def test_clients_sampled_with_replacement_are_not_accounted_for() -> None:
    plan = of_clients("with_replacement", 1.0, 0.1, 10, 0.0)
    line = epsilon_results(audit_of(plan.mechanism, run=plan.run))[-1]
    assert line.verdict == "unaccounted"
    assert line.accounted.doubt.endswith("with replacement")
