"""Membership that boosted stumps learned from shadow models' answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.means import Shelf
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_readings import confidence, read_records
from overheard.questions.membership.estimators.shadow_answers import shadow_answers
from overheard.questions.membership.estimators.stumps import (
    STUMPS,
    Booster,
    boosted,
    check_booster,
)
from overheard.simulation.keys import key_of

LARGEST = 10
"""Answers that are told, the surest first."""

MOST_LABELS = 20
"""Classes up to which a record's label is told to the stumps."""

ODDS = "odds"
"""The name of the one tensor that the shelf keeps for a target and a round."""


@final
@dataclass(frozen=True, slots=True)
class ShadowMembership(Attack[Membership]):
    """A classifier of answers, trained where it is known who was inside.

    Shadow models learn from some of the attacker's examples and of the records in question. For
    each of them and each record it is known whether the record was inside; boosted stumps learn
    to tell it by the model's answers, the surest first, how sure it is of the true label, and
    which label that is. The mean over rounds of their log-odds is the score, less the log-odds
    of how frequent the two are among shadow models.

    The paper has 128 shadow models and CatBoost at depth 1 and 10,000 iterations: that is
    `ShadowMembership(models=128, booster="catboost")`, with the extra `membership`. What its
    classifier is told, and where its threshold lies, it does not say. The default is
    scikit-learn's boosting, in a fraction of the time. Either learns one rule for all records,
    so hard records that were trained on and easy ones that were not are told apart worse than
    by `lira`.

    Args:
        models: shadow models a round.
        booster: whose stumps.
        stumps: boosted; None = 300 of scikit-learn's, or 10,000 of CatBoost's.
        most_rounds: that are read, evenly from the first to the last.

    """

    models: int = 32
    booster: Booster = "scikit-learn"
    stumps: int | None = None
    most_rounds: int = 5

    name: ClassVar[str] = "shadow_membership"
    answers: ClassVar = Membership
    needs: ClassVar = frozenset(
        {
            UPDATES,
            BROADCASTS,
            AUXILIARY,
            MODEL,
            RECIPE,
            CANDIDATES,
        }
    )
    source: ClassVar[str] = (
        "Shokri et al. 2017 (Membership Inference Attacks Against Machine Learning Models, "
        "S&P), as in FLiP (arXiv 2410.19548), Sections V-B and VI-D2"
    )

    def __post_init__(self) -> None:
        """Refuse what learns nothing."""
        if self.models < 2 or self.boosted_stumps < 1 or self.most_rounds < 1:
            raise ValueError(
                f"models are 2 or more, stumps and most_rounds 1 or more, got {self}"
            )

    def uses_training(self) -> frozenset[TrainingPart]:
        """Tell on what of the known training its claims hang."""
        return frozenset({"model", "loss", "steps"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-odds of each record.

        Raises:
            NeedsError: if CatBoost is asked for and not installed.

        """
        assert knowledge.candidates is not None
        check_booster(self.booster)
        records = knowledge.candidates
        readings = read_records(view, targets, knowledge, self.most_rounds)
        shadows = shadow_answers(view, knowledge, readings.rounds, self.models, asked=True)
        odds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for number, answers in shadows.rounds.items():
            heard = {who: own[number] for who, own in readings.targets.items() if number in own}
            drawn = knowledge.means.seed.child("stumps", number)
            learner = _Learner(self.booster, self.boosted_stumps, drawn, knowledge.means.shelf)
            told = learner.odds(answers, shadows.inside, list(heard.values()), records)
            for who, own in zip(heard, told, strict=True):
                odds[who].append(own)
        return {who: Membership(torch.stack(own).mean(0).float()) for who, own in odds.items()}

    @property
    def boosted_stumps(self) -> int:
        """How many are boosted."""
        return STUMPS[self.booster] if self.stumps is None else self.stumps


@final
@dataclass(frozen=True, slots=True)
class _Learner:
    """Learns from the shadow models of a round, unless all that is asked is on the shelf.

    A round that is listened to alone is asked the same as among others, and to boost takes
    longer than all else where models are small.
    """

    booster: Booster
    stumps: int
    seed: Seed
    shelf: Shelf

    def odds(
        self,
        answers: Float[Tensor, "models records classes"],
        inside: Bool[Tensor, "models records"],
        targets: Sequence[Float[Tensor, "records classes"]],
        records: Examples,
    ) -> list[Float[Tensor, " records"]]:
        """The log-odds of each record, for each target's answers."""
        settings = repr((self.booster, self.stumps, self.seed, LARGEST, MOST_LABELS))
        common = key_of(settings, answers, inside, records.labels)
        keys = [key_of(common, own) for own in targets]
        kept = [self.shelf.load(key) for key in keys]
        missing = [place for place, one in enumerate(kept) if one is None]
        if missing:
            log_odds = boosted(
                _told(answers, records),
                inside.flatten().numpy(),
                booster=self.booster,
                stumps=self.stumps,
                seed=self.seed,
            )
            for place in missing:
                own = log_odds(_told(targets[place].unsqueeze(0), records))
                kept[place] = {ODDS: torch.from_numpy(own)}
                self.shelf.save(keys[place], {ODDS: torch.from_numpy(own)})
        return [one[ODDS] for one in kept if one is not None]


def _told(
    answers: Float[Tensor, "models records classes"], records: Examples
) -> NDArray[np.float64]:
    """What the stumps see of each model and record: rows of numbers."""
    classes = answers.shape[-1]
    surest = answers.double().softmax(-1).sort(-1, descending=True).values[..., :LARGEST]
    parts = [surest, confidence(answers, records).unsqueeze(-1)]
    if classes <= MOST_LABELS:
        label = one_hot(records.labels, classes).double()
        parts.append(label.expand(len(answers), -1, -1))
    told: NDArray[np.float64] = torch.cat(parts, -1).flatten(0, 1).numpy()
    return told
