"""Scores equal those of the code of LeakPro, of Privacy Meter and of GLiR's authors.

`published_scores.json` has small random inputs, and the scores that this code gives for them:

- LeakPro c47752f (30 June 2026, after its RMIA was mended in May): `AttackRMIA`, `AttackBASE`,
  `AttackP`;
- Privacy Meter e384af8 (26 April 2025): `run_rmia` of `modules/mia`;
- GLiR bd8c4f6 (27 July 2024): `GLiRAttack`.

Eight disagreements are expected, and avoided by the inputs. Any other one is a failure.

1. RMIA here is minus one half, so that 0 is a threshold.
2. LeakPro adds 1e-6 to each mean probability. A ratio within about that of gamma times another
   one may count in one code and not in the other.
3. LeakPro draws half of the population at random. Here all of it counts (its fraction is 1).
4. Offline, LeakPro averages p(z) over all shadow models, also over those that trained on z. The
   offline models here trained on no record.
5. Privacy Meter has gamma = 1, and of more models without a record than it asks for it takes
   those with the largest probabilities. Here it asks for all.
6. LeakPro's attack P takes the loss, here the log-odds; interpolated quantiles of the two
   differ. Both get the same numbers here.
7. The mean probability here weighs models with a record and without it equally. LeakPro has
   each record in half of its models. So have the online models here, and the means are equal.
8. GLiR's code hands the covariance to `cholesky_inverse`, which expects its factor. The scores
   compared are those with the inverse of the covariance plus a ridge, and with the degrees of
   freedom that this leaves.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from overheard.questions.membership.attacks.attack_p import AttackP
from overheard.questions.membership.attacks.glir import GradientSample
from overheard.questions.membership.attacks.probability_ratio import (
    BaseMembership,
    ProbabilityRatio,
    Rmia,
    log_probability,
    share_of_smaller,
)

PUBLISHED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "published_scores.json").read_text("utf-8")
)


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def probabilities(name: str) -> Tensor:
    """Return the log-probabilities of the labels at temperature 2."""
    return log_probability(tensor(PUBLISHED[name]) / 2, torch.tensor(PUBLISHED["labels"]))


def members(mode: str) -> Tensor:
    """Return which shadow models have each record; of the online ones exactly half."""
    online = torch.tensor(PUBLISHED["online_members"]).bool()
    return online if mode == "online" else torch.zeros_like(online)


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize(("kind", "name"), [(Rmia, "rmia"), (BaseMembership, "base")])
def test_rmia_and_base_have_the_scores_of_leakpro(
    kind: type[ProbabilityRatio], name: str, mode: str
) -> None:
    scores = kind(online=mode == "online").scores(
        probabilities("target"), probabilities(mode), members(mode)
    )
    expected = tensor(PUBLISHED[f"leakpro_{name}_{mode}"]) - (0.5 if kind is Rmia else 0)
    assert torch.allclose(scores, expected, rtol=0, atol=1e-6)


def test_rmia_has_the_scores_of_privacy_meter() -> None:
    ratios = Rmia(online=False).log_ratios(
        probabilities("target"), probabilities("offline"), members("offline")
    )
    assert torch.allclose(
        share_of_smaller(ratios, ratios, gamma=1.0),
        tensor(PUBLISHED["privacy_meter_rmia_offline"]),
        rtol=0,
        atol=1e-6,
    )


def test_attack_p_has_the_thresholds_of_leakpro() -> None:
    published = PUBLISHED["attack_p"]
    for rate, threshold in zip(published["rates"], published["thresholds"], strict=True):
        found = -AttackP(rate).threshold(-tensor(published["losses"]))
        assert float(found) == pytest.approx(threshold, abs=1e-6)


def test_glir_has_the_scores_of_its_authors_with_a_right_inverse() -> None:
    published = PUBLISHED["glir"]
    sample = GradientSample(
        tensor(published["gradients"]), len(published["repaired"]), published["ridge"]
    )
    assert sample.degrees == pytest.approx(published["degrees"])
    surprise = sample.log_surprise(tensor(published["mean"]), published["examples"])
    assert torch.allclose(-surprise.exp(), tensor(published["repaired"]), rtol=0, atol=1e-6)
    as_published = tensor(published["published"]).argsort()
    assert not as_published.equal(tensor(published["repaired"]).argsort())
