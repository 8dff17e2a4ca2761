"""Membership by boosted stumps that are trained on the outputs of shadow models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
import torch
from annotated_types import Ge
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.attack import Attack, TrainingSource
from overheard.core.compute_settings import TensorCache
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.task import TaskKind
from overheard.core.view import View
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import (
    read_record_logits,
    record_confidence,
)
from overheard.questions.membership.estimators.shadow_logits import compute_shadow_logits
from overheard.simulation.cache_keys import combined_key

Booster = Literal["scikit-learn", "catboost"]

DEFAULT_STUMPS: dict[Booster, int] = {"scikit-learn": 300, "catboost": 10_000}
"""Default number of stumps; CatBoost's is that of FLiP (arXiv 2410.19548, VI-D2)."""

CATBOOST_MISSING = (
    "CatBoost is not installed: run pip install '.[membership]' in a checkout of Overheard, or "
    "omit booster to use scikit-learn"
)

LogOddsFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""For each row, the log-odds that its label is True, given equal base rates."""


def check_booster(booster: Booster) -> None:
    """Check that the booster is installed.

    Raises:
        NeedsError: if it is not installed.

    """
    if booster == "catboost":
        _load_catboost()


def fit_boosted_stumps(
    rows: NDArray[np.float64],
    labels: NDArray[np.bool_],
    *,
    booster: Booster,
    stumps: int,
    seed: Seed,
) -> LogOddsFunction:
    """Fit trees of depth 1 by boosting on the log-loss.

    The log-odds of the base rate among the rows are subtracted from the predictions. Training
    uses one core, writes no files, and gives the same bits for the same seed. CatBoost chooses
    its learning rate from the number of rows and stumps; scikit-learn uses 0.1.

    Args:
        rows: features, one row per example.
        labels: the label of each row; both labels occur.
        booster: the library to use.
        stumps: number of stumps.
        seed: the seed of the training.

    Raises:
        NeedsError: if CatBoost is selected but not installed.

    """
    predict = (_fit_catboost if booster == "catboost" else _fit_scikit_learn)(
        rows, labels, stumps, seed.value % 2**31
    )
    base_log_odds = np.log(labels.mean() / (1 - labels.mean()))
    return lambda new_rows: predict(new_rows) - base_log_odds


def _fit_scikit_learn(
    rows: NDArray[np.float64], labels: NDArray[np.bool_], stumps: int, state: int
) -> LogOddsFunction:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # class_weight is not used: with it, scikit-learn 1.9 spends most of its time on binning.
    model = HistGradientBoostingClassifier(
        max_depth=1, max_iter=stumps, early_stopping=False, random_state=state
    )
    log_odds: LogOddsFunction = model.fit(rows, labels).decision_function
    return log_odds


def _fit_catboost(
    rows: NDArray[np.float64], labels: NDArray[np.bool_], stumps: int, state: int
) -> LogOddsFunction:
    model = _load_catboost()(
        depth=1,
        iterations=stumps,
        random_seed=state,
        thread_count=1,
        allow_writing_files=False,
        logging_level="Silent",
    )
    model.fit(rows, labels.astype(np.int64))
    return lambda new_rows: np.asarray(
        model.predict(new_rows, prediction_type="RawFormulaVal", thread_count=1), np.float64
    )


# Any: CatBoost has no type hints.
def _load_catboost() -> Callable[..., Any]:
    try:
        from catboost import CatBoostClassifier
    except ImportError as missing:
        raise NeedsError(CATBOOST_MISSING) from missing
    classifier: Callable[..., Any] = CatBoostClassifier
    return classifier


TOP_PROBABILITIES = 10
"""Number of largest class probabilities given to the stumps."""

MAX_LABELS = 20
"""Maximum number of classes for which the stumps also get the record's label."""

LOG_ODDS_TENSOR = "odds"
"""The name of the tensor that is cached for a target and a round."""


@final
@dataclass(frozen=True, slots=True)
class ShadowMembership(Attack[Membership]):
    """A classifier of model outputs, trained on shadow models with known membership.

    Shadow models train on some of the attacker's examples and candidate records. For each
    shadow model and record, membership is known. Boosted stumps learn to predict it from the
    model's largest class probabilities, the log-odds of the true label, and the label. Without
    classes, the errors of the outputs take the place of probabilities. The
    score is the mean of their log-odds over rounds, minus the log-odds of the base rate of
    members among shadow models.

    The paper uses 128 shadow models and CatBoost at depth 1 with 10,000 iterations:
    `ShadowMembership(models=128, booster="catboost")`, with the extra `membership`. It does not
    state the features or the threshold of its classifier. The default is scikit-learn's
    boosting, which takes a fraction of the time. Both learn one rule for all records, so they
    distinguish hard members from easy non-members less well than `lira`.

    Args:
        models: shadow models per round. One rule for all records needs fewer than `lira`.
        booster: the library of the stumps.
        stumps: number of stumps; None = 300 with scikit-learn, or 10,000 with CatBoost.
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    models: Annotated[int, Ge(2)] = 32
    booster: Booster = "scikit-learn"
    stumps: Positive | None = None
    most_rounds: Positive = 5

    name: ClassVar[str] = "shadow_membership"
    claim_type: ClassVar = Membership
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

    def training_source(self) -> TrainingSource:
        """Return that it trains shadow models."""
        return "shadow models"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-odds of each record.

        Raises:
            NeedsError: if CatBoost is selected but not installed.

        """
        check_booster(self.booster)
        records = candidate_records(knowledge)
        readings = read_record_logits(view, targets, knowledge, self.most_rounds)
        shadows = compute_shadow_logits(
            view, knowledge, readings.rounds, self.models, include_candidates=True
        )
        odds: dict[Party, list[Tensor]] = {target: [] for target in targets}
        for number, shadow_logits in shadows.rounds.items():
            logits_of = {
                target: by_round[number]
                for target, by_round in readings.targets.items()
                if number in by_round
            }
            round_seed = knowledge.compute.seed.child("stumps", number)
            classifier = _StumpClassifier(
                self.booster,
                self.stump_count,
                round_seed,
                knowledge.compute.cache,
                knowledge.kind,
            )
            predicted = classifier.predict_log_odds(
                shadow_logits, shadows.is_member, list(logits_of.values()), records
            )
            for target, log_odds in zip(logits_of, predicted, strict=True):
                odds[target].append(log_odds)
        return {
            target: Membership(torch.stack(rounds).mean(0).float())
            for target, rounds in odds.items()
        }

    @property
    def stump_count(self) -> int:
        """Return the number of stumps."""
        return DEFAULT_STUMPS[self.booster] if self.stumps is None else self.stumps


@final
@dataclass(frozen=True, slots=True)
class _StumpClassifier:
    """Boosted stumps for the shadow models of a round, with cached predictions.

    Claims about different sets of rounds need the same predictions, and boosting is the slowest
    step for small models.
    """

    booster: Booster
    stumps: int
    seed: Seed
    cache: TensorCache
    kind: TaskKind

    def predict_log_odds(
        self,
        logits: Float[Tensor, "models records classes"],
        is_member: Bool[Tensor, "models records"],
        targets: Sequence[Float[Tensor, "records classes"]],
        records: Examples,
    ) -> list[Float[Tensor, " records"]]:
        """Return the log-odds of each record, for each target's logits."""
        settings = repr((self.booster, self.stumps, self.seed, TOP_PROBABILITIES, MAX_LABELS))
        common = combined_key(settings, logits, is_member, *records.tensors()[1:])
        keys = [combined_key(common, target_logits) for target_logits in targets]
        cached = [self.cache.load(key) for key in keys]
        missing = [place for place, tensors in enumerate(cached) if tensors is None]
        if missing:
            log_odds = fit_boosted_stumps(
                _feature_rows(logits, records, self.kind),
                is_member.flatten().numpy(),
                booster=self.booster,
                stumps=self.stumps,
                seed=self.seed,
            )
            for place in missing:
                predicted = log_odds(
                    _feature_rows(targets[place].unsqueeze(0), records, self.kind)
                )
                cached[place] = {LOG_ODDS_TENSOR: torch.from_numpy(predicted)}
                self.cache.save(keys[place], {LOG_ODDS_TENSOR: torch.from_numpy(predicted)})
        return [tensors[LOG_ODDS_TENSOR] for tensors in cached if tensors is not None]


def _feature_rows(
    logits: Float[Tensor, "models records classes"], records: Examples, kind: TaskKind
) -> NDArray[np.float64]:
    """Return one row of features for each model and record."""
    outputs = logits.shape[-1]
    fit = record_confidence(logits, records, kind).unsqueeze(-1)
    if records.float_labels is not None:
        label = records.float_labels.double()
        is_number = kind in ("regression", "language_modeling")
        predicted = logits.double() if is_number else logits.double().sigmoid()
        errors = (predicted - label).abs().sort(-1).values[..., :TOP_PROBABILITIES]
        parts = [errors, fit]
    else:
        label = one_hot(records.labels, outputs).double()
        ranked = logits.double().softmax(-1).sort(-1, descending=True).values
        parts = [ranked[..., :TOP_PROBABILITIES], fit]
    if outputs <= MAX_LABELS:
        parts.append(label.expand(len(logits), -1, -1))
    rows: NDArray[np.float64] = torch.cat(parts, -1).flatten(0, 1).numpy()
    return rows
