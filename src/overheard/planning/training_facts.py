"""How clients train, as far as it is known, with the source of each setting."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import final, get_args

from overheard.archive.run_config import SETTING_NAMES, parse_setting, plain_name
from overheard.core.recipe import OptimizerName, Recipe
from overheard.planning.apps.app_training import AppTraining, StatedSetting
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.recorded_facts import RecordedFacts

ASSUMED = {"rate": 0.1, "epochs": 1, "batch": 32}
"""The training that is assumed where nothing is stated."""

ROUNDS = 8
"""The rounds of a federation of which none are stated."""

MOST_VALUES = 4
"""The most values of a setting that changes that a sentence lists."""

NO_SETTINGS: Mapping[str, StatedSetting] = MappingProxyType({})

OF_OPTIMIZER = ("optimizer", "momentum", "weight_decay")
"""Settings that belong to an optimizer."""

SMOOTHING = "label_smoothing"
"""A setting that is 0 unless a source has it."""

SGD = StatedSetting("optimizer", "sgd", "")

WITHOUT_OPTIMIZER = (
    "optimizer not found: taken for SGD without momentum. If clients train by another, such as "
    "AdamW, attackers that know it would read more"
)


@final
@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """The settings of clients' training that are known.

    Args:
        settings: the values by the key of a plan, each of its best source.
        doubts: sentences on what was not found, or what the sources say differently.
        is_complete: whether all settings are known, and nothing speaks against them.

    """

    settings: Mapping[str, StatedSetting] = field(default_factory=lambda: NO_SETTINGS)
    doubts: tuple[str, ...] = ()
    is_complete: bool = False

    def number(self, key: str, otherwise: float) -> float:
        """Return the value of a setting that is a number; `otherwise` = it is not known."""
        found = self.settings.get(key)
        return otherwise if found is None else float(found.value)

    @property
    def optimizer(self) -> str:
        """The optimizer as a plan names it; SGD if it is not known."""
        found = self.settings.get("optimizer")
        return "sgd" if found is None else str(found.value)

    def lines(self) -> Iterator[str]:
        """Return what was found and what was not, in sentences without a full stop."""
        found = [
            f"{key} {_value(one)} ({one.source})"
            for key, one in self.settings.items()
            if one.source
        ]
        if found:
            yield f"How clients train: {', '.join(found)}"
        yield from self.doubts


def read_training_facts(recording: RecordedFacts | None, app: FederatedApp) -> TrainingFacts:
    """Collect how clients train from the recording and the app, the best source first.

    The order is: the recipe that the recording states, the configuration that its messages
    carry, the configuration of its run, the code of the app, the defaults of the app's
    configuration.
    """
    names = _usual_names(app.training)
    sources = _Sources()
    if recording is not None:
        if recording.manifest.recipe is not None:
            sources.add(_recipe_settings(recording.manifest.recipe))
        sources.add(_message_settings(recording, names, sources))
        sources.add(
            _config_settings(recording.run_config, names, "the configuration of the run")
        )
    sources.add(_code_settings(app.training, sources))
    place = app.config_place
    servers = app.training.server_names
    sources.add(_config_settings(app.config, names, place, servers))
    for name in app.config:
        if plain_name(name) in servers:
            sources.doubts.append(f"{name} in {place} is the server's, not the clients'")
    is_stated = recording is not None and recording.manifest.recipe is not None
    return sources.facts(app.training, is_stated=is_stated)


@final
class _Sources:
    """Settings of several sources, the best first."""

    def __init__(self) -> None:
        self.settings = dict[str, StatedSetting]()
        self.doubts = list[str]()
        self.unclear = set[str]()

    def add(self, found: Sequence[StatedSetting]) -> None:
        """Add the settings of the next source; those that differ are told."""
        for one in found:
            if one.key == "optimizer" and one.value not in get_args(OptimizerName):
                self.doubts.append(f"the optimizer {one.value} ({one.source}) is in no recipe")
                self.unclear.add(one.key)
                continue
            first = self.settings.setdefault(one.key, one)
            if first.value != one.value:
                self.doubts.append(
                    f"{one.key} is {_value(first)} ({first.source}), not {_value(one)} "
                    f"({one.source})"
                )

    def facts(self, training: AppTraining, *, is_stated: bool) -> TrainingFacts:
        """Return what is known; `is_stated` = the recording states all of it."""
        if self.settings.get("optimizer", SGD).value != SGD.value:
            self.settings["momentum"] = replace(SGD, key="momentum", value=0.0)
        missing = [key for key in SETTING_NAMES if key not in self.settings]
        doubts = [*self.doubts, *_describe_missing(missing, training)]
        if training.beyond and not is_stated:
            doubts.append(
                f"the code of the app has {', '.join(training.beyond)}, which the plan cannot "
                "state"
            )
        is_clear = not missing and not self.unclear and not training.beyond
        return TrainingFacts(
            MappingProxyType(
                {
                    key: self.settings[key]
                    for key in (*SETTING_NAMES, SMOOTHING)
                    if key in self.settings
                }
            ),
            tuple(doubts),
            is_stated or is_clear,
        )


def _describe_missing(missing: Sequence[str], training: AppTraining) -> Iterator[str]:
    """Yield a sentence for each setting that was not found."""
    if "optimizer" in missing:
        if len(training.optimizers) > 1:
            yield (
                f"the code makes several optimizers, {'; '.join(training.optimizers)}, so none "
                "is taken"
            )
        yield WITHOUT_OPTIMIZER
        missing = [key for key in missing if key not in OF_OPTIMIZER]
    if missing:
        *first, last = missing
        named = f"{', '.join(first)} and {last}" if first else last
        yield f"{named} not found: the plan has {'placeholders' if first else 'a placeholder'}"


def _usual_names(training: AppTraining) -> dict[str, tuple[str, ...]]:
    """Return the names of each setting: the one that the code reads comes first."""
    return {
        key: (*([plain_name(training.names[key])] if key in training.names else []), *usual)
        for key, usual in SETTING_NAMES.items()
    }


def _recipe_settings(recipe: Recipe) -> list[StatedSetting]:
    source = "the recipe that the recording states"
    keys = [*SETTING_NAMES, *([SMOOTHING] if recipe.label_smoothing else [])]
    return [StatedSetting(key, getattr(recipe, key), source) for key in keys]


def _message_settings(
    recording: RecordedFacts, names: Mapping[str, tuple[str, ...]], sources: _Sources
) -> list[StatedSetting]:
    """Return what the messages of a recording state; settings that change are unclear."""
    by_key: dict[str, list[StatedSetting]] = {}
    for config in recording.configs:
        for one in _config_settings(config, names, "the messages of the recording"):
            by_key.setdefault(one.key, []).append(one)
    found = list[StatedSetting]()
    for key, stated in by_key.items():
        counts = Counter(one.value for one in stated)
        # The first of those that are most frequent.
        value = counts.most_common(1)[0][0]
        found.append(next(one for one in stated if one.value == value))
        if len(counts) > 1:
            listed = ", ".join(f"{one}" for one in list(counts)[:MOST_VALUES])
            listed += ", ..." if len(counts) > MOST_VALUES else ""
            sources.doubts.append(
                f"{key} changes in the messages of the recording: {listed}. A plan has one "
                "value"
            )
            sources.unclear.add(key)
    return found


def _config_settings(
    config: Mapping[str, object],
    names: Mapping[str, tuple[str, ...]],
    place: str,
    excluded: frozenset[str] = frozenset(),
) -> list[StatedSetting]:
    """Return the settings of clients' training in a configuration."""
    by_name = {plain_name(name): (name, value) for name, value in config.items()}
    found = list[StatedSetting]()
    for key, usual in names.items():
        for name in usual:
            if name not in by_name or name in excluded:
                continue
            original, value = by_name[name]
            parsed = parse_setting(key, value)
            if parsed is not None:
                found.append(StatedSetting(key, parsed, f"{place}: {original}"))
                break
    return found


def _code_settings(training: AppTraining, sources: _Sources) -> list[StatedSetting]:
    """Return what the code states; a better source that differs makes a setting unclear."""
    for one in training.settings:
        first = sources.settings.get(one.key)
        if first is not None and first.value != one.value:
            sources.unclear.add(one.key)
    return list(training.settings)


def _value(setting: StatedSetting) -> str:
    return setting.value if isinstance(setting.value, str) else f"{setting.value:g}"
