"""Mean scores and guesses by target."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import client
from overheard.drawing.sentences import means_by_target
from overheard.findings.audit import Audit
from tests.runs.audits import shares_finding


def test_averages_score_and_guess_over_the_runs_of_each_target(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), (1.0, 0.0), (0.9, 0.1)),
        shares_finding("none", client(0), (1.0, 0.0), (0.7, 0.3), seed=1),
        shares_finding("none", client(1), (0.2, 0.8), (0.2, 0.8)),
    )
    (arm, _) = with_verdicts(replace(small, findings=findings)).arm_results
    means = means_by_target(arm.threat_results[0].attack_results[0], "linf")
    # 0.1 and 0.3; guessing 0.5 in both runs. Then 0, guessing 0.3.
    assert [(mean.value, mean.best_uninformed) for mean in means.values()] == [
        (pytest.approx(0.2), 0.5),
        (0.0, pytest.approx(0.3)),
    ]
    assert list(means) == [client(0), client(1)]


def test_a_score_without_findings_has_no_means(small: Audit) -> None:
    assert (
        means_by_target(small.arm_results[0].threat_results[0].attack_results[0], "nobody")
        == {}
    )
