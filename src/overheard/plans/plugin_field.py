"""Fields of a plan that name a plugin and give its settings."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    final,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    create_model,
)
from pydantic_core import CoreSchema, core_schema

from overheard.core.errors import AuditError
from overheard.core.plugin_registry import PluginRegistry
from overheard.core.settings import declared_settings, default_of
from overheard.plans.strict_model import lists_to_tuples

T = TypeVar("T")


@final
@dataclass(frozen=True)
class PluginField(Generic[T]):
    """Marks a field of a plan as a plugin of a registry.

    In TOML a plugin is `{kind = "decaf", calibrator = false}`, or `"decaf"` for the default
    settings; in Python it is the object itself. Its settings are the fields of its dataclass,
    with their types; unknown settings are rejected.

    Args:
        registry: the registry.

    """

    registry: PluginRegistry[T]

    # Any: pydantic passes whatever annotation this marker is attached to.
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Make pydantic accept a table with a `kind`, a name, or the plugin itself."""
        plugins = self.registry.plugins()
        models = tuple(settings_model(name, plugin) for name, plugin in plugins.items())
        choice = models[0] if len(models) == 1 else Union[models]  # noqa: UP007
        tagged = Annotated[choice, Field(discriminator="kind")] if len(models) > 1 else choice
        return core_schema.no_info_wrap_validator_function(
            self._take,
            handler.generate_schema(tagged),
            serialization=core_schema.plain_serializer_function_ser_schema(plugin_table),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Let the JSON schema accept a name alone, for plugins that need no settings."""
        names = [name for name, one in self.registry.plugins().items() if _has_defaults(one)]
        return {"anyOf": [{"type": "string", "enum": names}, handler(schema)]}

    def _take(self, value: object, validate: Callable[[object], BaseModel]) -> T:
        if isinstance(value, self.registry.contract):
            return value
        plugins = self.registry.plugins()
        given = {"kind": value} if isinstance(value, str) else lists_to_tuples(value)
        if not (isinstance(given, dict) and given.get("kind") in tuple(plugins)):
            name = given.get("kind") if isinstance(given, dict) else None
            close = get_close_matches(str(name), plugins, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ValueError(
                f"{hint}name one of {', '.join(plugins)}, or give a table whose `kind` is one "
                "of them"
            )
        table = validate(given)
        plugin = plugins[getattr(table, "kind")]  # noqa: B009
        try:
            return plugin(**{name: getattr(table, name) for name in _names(plugin)})
        except AuditError as error:
            # As an error of this field, so that it is listed with its location.
            raise ValueError(str(error)) from error


# Any: a plugin is any frozen dataclass.
def plugin_table(plugin: Any) -> dict[str, Any]:
    """Return the table of a plugin in a plan, with all settings."""
    settings = {name: getattr(plugin, name) for name in _names(type(plugin))}
    return {"kind": plugin.name} | {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
        if value is not None
    }


def plugin_label(plugin: Any) -> str:
    """Return a short label: the plugin's name with all non-default settings.

    >>> from overheard.questions.label_shares.attacks.decaf import Decaf
    >>> plugin_label(Decaf()), plugin_label(Decaf(calibrator=False))
    ('decaf', 'decaf(calibrator=False)')
    """
    changed = [
        f"{field.name}={getattr(plugin, field.name)!r}"
        for field in fields(plugin)
        if getattr(plugin, field.name) != default_of(field)
    ]
    return f"{plugin.name}({', '.join(changed)})" if changed else str(plugin.name)


class SettingsModel(BaseModel):
    """The table of a plugin in a plan.

    Args:
        plugin: the class of the plugin.

    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    plugin: ClassVar[type]


def settings_model(name: str, plugin: type) -> type[SettingsModel]:
    """Create the model of a plugin's table in a plan.

    Raises:
        TypeError: if it is no dataclass, or a plan cannot represent one of its settings.

    """
    model = create_model(
        plugin.__name__,
        __base__=SettingsModel,
        __doc__=(plugin.__doc__ or "").split("\n", maxsplit=1)[0],
        kind=(Literal[name], name),  # type: ignore[arg-type]
        **declared_settings(plugin),
    )
    model.plugin = plugin
    return model


def _has_defaults(plugin: type) -> bool:
    return all(default_of(field) is not MISSING for field in fields(plugin))


def _names(part: type) -> list[str]:
    return [field.name for field in fields(part)]
