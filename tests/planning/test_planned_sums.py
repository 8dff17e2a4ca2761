"""The cohorts of a plan check are those of the run."""

from dataclasses import replace
from pathlib import Path

import torch

from overheard.algorithms.fed_avg import FedAvg
from overheard.core.algorithm.deduced_view import deduce_means, find_cohorts
from overheard.core.examples import Examples
from overheard.core.parties import client, late_joiner
from overheard.core.recipe import Recipe
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.federation.run import run
from overheard.participation.participation import find_participation
from overheard.planning.planned_sums import heard_participation, planned_participation
from tests.federation.conftest import federation


def test_the_cohorts_and_totals_are_those_of_the_run(tmp_path: Path):
    pool = Examples(torch.arange(1.0, 22).reshape(21, 1), torch.tensor([0, 1, 1] * 7))
    rows = [torch.arange(0, 1), torch.arange(1, 3), torch.arange(3, 6), torch.arange(6, 10)]
    rows += [torch.arange(10, 15), torch.arange(15, 21), torch.arange(0)]
    masked = replace(
        federation(pool, [rows] * 12, Recipe(rate=1e-3, epochs=1, batch=8)),
        defenses=(SecureAggregation(),),
        participation=0.5,
        failure_rate=0.2,
    )
    planned = planned_participation(masked)
    transcript, _ = run(masked, tmp_path)
    found = find_participation(transcript.messages)
    assert planned is not None
    assert found is not None
    assert planned.clients == found.clients
    assert planned.took_part.tolist() == found.took_part.tolist()
    assert planned.totals == found.totals
    cohorts = find_cohorts(transcript.messages)
    for observers, first in (((client(0), client(2)), 0), ((late_joiner(5),), 5)):
        seen = transcript.seen_by(*observers)
        view = deduce_means(seen, FedAvg(), is_known=True, cohorts=cohorts)
        read = find_participation(view.messages, observers)
        told = heard_participation(planned, observers, first)
        assert read is not None
        assert told is not None
        assert (told.clients, told.rounds) == (read.clients, read.rounds)
        assert told.took_part.tolist() == read.took_part.tolist()
        assert set(told.totals) == set(read.totals) == {None}
