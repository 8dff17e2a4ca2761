"""Parts named by their file, with their settings beside it."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from overheard.core.attack import Attack
from overheard.core.kind import Kind
from overheard.core.split import Split
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.shares import Shares
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.plans.kinds import ATTACKS, DATASETS, DEFENSES, MODELS, SPLITS
from overheard.plans.part import PartOf, label, part_record
from overheard.questions.label_shares.attacks.decaf import Decaf

ASplit = Annotated[Split, PartOf(SPLITS)]
AModel = Annotated[Model, PartOf(MODELS)]
AnAttack = Annotated[Attack[Any], PartOf(ATTACKS)]

WITH_DEFAULTS = [
    (kind, name)
    for kind in (ATTACKS, DEFENSES, DATASETS, SPLITS, MODELS)
    for name in kind.parts()
    if name not in ("own", "shares")
]


class House(BaseModel):
    """As much of a plan as a part needs."""

    model_config = ConfigDict(extra="forbid", strict=True)
    split: ASplit
    model: AModel


SPLIT = TypeAdapter[Split](ASplit)
MODEL = TypeAdapter[Model](AModel)
ATTACK = TypeAdapter[Attack[Any]](AnAttack)


def test_takes_a_name_alone_as_the_part_with_its_default_settings():
    assert SPLIT.validate_json('"dirichlet"') == Dirichlet()


def test_takes_a_table_with_settings():
    assert SPLIT.validate_json('{"kind": "dirichlet", "alpha": 2}') == Dirichlet(alpha=2.0)
    assert MODEL.validate_json('{"kind": "mlp", "hidden": [8, 4]}') == Mlp(hidden=(8, 4))


def test_takes_the_part_itself_as_it_is():
    part = Dirichlet(alpha=0.1)
    assert SPLIT.validate_python(part) is part


@pytest.mark.parametrize("given", ["dirichlet_", "Dirichlet", "", "../iid", "_shelf"])
def test_refuses_a_kind_that_there_is_not_and_lists_those_there_are(given: str):
    for value in (given, {"kind": given}):
        with pytest.raises(ValidationError, match=r"name one of .*dirichlet.*iid"):
            SPLIT.validate_python(value)


@pytest.mark.parametrize(
    "given",
    ["3", "null", "[]", "{}", '{"alpha": 1}', '{"kind": 3}', '{"kind": ["iid"]}', "true"],
)
def test_refuses_what_names_no_part(given: str):
    with pytest.raises(ValidationError, match="name one of"):
        SPLIT.validate_json(given)


@pytest.mark.parametrize(
    ("settings", "path", "kind"),
    [
        ('"alpha": "0.5"', ("split", "dirichlet", "alpha"), "float_type"),
        ('"alpha": true', ("split", "dirichlet", "alpha"), "float_type"),
        ('"beta": 1', ("split", "dirichlet", "beta"), "extra_forbidden"),
        ('"alpha": -1', ("split",), "value_error"),
        ('"alpha": NaN', ("split",), "value_error"),
    ],
)
def test_refuses_wrong_settings_at_their_path(settings: str, path: tuple[str, ...], kind: str):
    house = '{"split": {"kind": "dirichlet", ' + settings + '}, "model": "mlp"}'
    with pytest.raises(ValidationError) as refused:
        House.model_validate_json(house)
    (mistake,) = refused.value.errors()
    assert mistake["loc"] == path
    assert mistake["type"] == kind


def test_tells_the_mistakes_of_two_parts_at_once():
    # The one refuses by a ValueError, the other by a PlanError.
    wrong = {
        "split": {"kind": "dirichlet", "alpha": 0},
        "model": {"kind": "mlp", "hidden": []},
    }
    with pytest.raises(ValidationError) as refused:
        House.model_validate(wrong)
    assert [mistake["loc"] for mistake in refused.value.errors()] == [("split",), ("model",)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), WITH_DEFAULTS, ids=lambda x: getattr(x, "name", x))
def test_the_record_of_a_part_makes_the_same_part(kind: Kind[Any], name: str):
    adapter = TypeAdapter[Any](Annotated[kind.contract, PartOf(kind)])
    part = kind.parts()[name]()
    assert adapter.validate_python(part_record(part)) == part
    assert adapter.validate_json(adapter.dump_json(part)) == part
    assert label(part) == name


def test_the_record_spells_out_every_setting():
    assert part_record(Mlp(hidden=(8,))) == {"kind": "mlp", "hidden": [8], "activation": "relu"}


def test_a_label_tells_only_what_differs_from_the_defaults():
    assert label(Decaf()) == "decaf"
    assert (
        label(Decaf(calibrator=False, threshold=0.1))
        == "decaf(calibrator=False, threshold=0.1)"
    )
    assert label(Mlp(hidden=(8, 4))) == "mlp(hidden=(8, 4))"


def test_its_json_schema_names_every_kind_and_its_settings():
    schema = str(ATTACK.json_schema())
    for name in ATTACKS.parts():
        assert f"'{name}'" in schema
    assert "calibrator" in schema


def test_a_part_with_rows_of_shares_makes_the_round_trip():
    part = Shares(compositions=((0.25, 0.75), (1.0, 0.0)))
    assert SPLIT.validate_json(SPLIT.dump_json(part)) == part
