"""Table 4: attributes of the sender and who it is, each by itself and both jointly."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from overheard.core.attack import Attack
from overheard.learning.models.mlp import Mlp
from overheard.linkage.attribute_labels import Told
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.identifiers import published
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import told_attribute
from overheard.papers.deanonymization.rows import Rows, rows_of
from overheard.papers.deanonymization.world import BLOGS, OMNIGLOT, IdentityScenario
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.questions.attribute.attacks.attribute_mlp import AttributeMlp
from overheard.questions.identity.attacks.reidentify_jointly import ReidentifyJointly


@final
@dataclass(frozen=True, slots=True)
class AskedAttribute:
    """A data set, and the attributes of its users.

    Args:
        world: whose users.
        attributes: that are asked for.
        holdout: users who take no part, from whom attributes are learned where the server is
            told of no one who does.

    """

    world: IdentityScenario
    attributes: tuple[str, ...]
    holdout: int


PANELS = (
    AskedAttribute(BLOGS, ("gender", "age_group"), 29),
    AskedAttribute(OMNIGLOT, ("alphabet",), 40),
)

HURRIED = AskedAttribute(
    replace(OMNIGLOT, model=Mlp(), rounds=8, seeds=(0,)),
    ("alphabet",),
    40,
)


@final
@dataclass(frozen=True, slots=True)
class AttributesExperiment(Experiment):
    """Single and joint heads, told the attribute of everyone or of strangers only.

    Args:
        panels: data sets and attributes.
        reduced: those of a run in a hurry.
        name: of the table.

    """

    panels: tuple[AskedAttribute, ...] = PANELS
    reduced: tuple[AskedAttribute, ...] = (HURRIED,)
    name: str = "table4"

    @property
    def title(self) -> str:
        """What the table shows."""
        return "Attributes of the sender and who it is, learned singly and jointly"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} The paper's attributes are of the "
            "people on PIPA's photos (age, gender, glasses, hair), ours of bloggers (gender, "
            "age group) and drawers (alphabet, which the labels tell). A published number "
            "stands beside age and gender. As published, the server is told the attribute of "
            "the very users whom it is asked about, so that to recognise them is enough; "
            "beside it stands what it tells of people whose attribute it is told nothing of, "
            "having learned from as many holdout users as the folder says. Shadow devices "
            "give the labelled updates."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit in which all are known, and one with strangers."""
        plans = {}
        for one in self.reduced if quick else self.panels:
            world, known = one.world, tuple(map(str, one.attributes))
            singly: tuple[Attack[Any], ...] = (published(world, "shadow"),)
            of_known = tuple(
                attack
                for attribute in known
                for attack in (
                    _tell(world, attribute, False, "everyone"),
                    _tell(world, attribute, True, "everyone"),
                    ReidentifyJointly(attribute, updates="shadow", layer=world.layer),
                )
            )
            plans[f"{world.key}_known"] = plan(
                world, people("random"), (every_update((*singly, *of_known)),)
            )
            plans[f"{world.key}_strangers"] = plan(
                world,
                people("random", holdout=one.holdout),
                (
                    every_update(
                        tuple(
                            _tell(world, attribute, is_joint, "holdout")
                            for attribute in known
                            for is_joint in (False, True)
                        )
                    ),
                ),
                clients=world.clients - one.holdout,
            )
        return plans

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Top-1 accuracies, and for strangers the mean over values too."""
        full = self.plans(quick=False)
        figures: list[Figure] = []
        for one in self.panels:
            for told in ("known", "strangers"):
                key = f"{one.world.key}_{told}"
                if key in runs.audits:
                    run = runs.plans[key]
                    where = setting(one.world, run, full.get(key))
                    figures += _read(rows_of(runs.audits[key]), key, run, where)
        return tuple(figures)


def _tell(world: IdentityScenario, attribute: str, is_joint: bool, told: Told) -> AttributeMlp:
    return AttributeMlp(
        attribute, jointly=is_joint, told=told, updates="shadow", layer=world.layer
    )


def _read(rows: Rows, key: str, run: Plan, where: str) -> list[Figure]:
    threat, figures = run.threats[0], list[Figure]()
    for attack in threat.attacks:
        name = threat.named(attack)
        match attack:
            case AttributeMlp(attribute=str(attribute), jointly=is_joint):
                cell = f"attribute_{'joint' if is_joint else 'single'}"
                as_published = attack.told == "everyone"
                figures += [
                    rows.figure(
                        f"{key}_{attribute}_{cell}",
                        f"{where}; {attribute}, {cell.replace('_', ' ')}, accuracy",
                        (name, "accuracy"),
                        told_attribute(attribute, cell) if as_published else None,
                    ),
                    rows.figure(
                        f"{key}_{attribute}_{cell}_balanced",
                        f"{where}; {attribute}, {cell.replace('_', ' ')}, mean over values",
                        (name, "balanced_accuracy"),
                    ),
                ]
                row = rows.of(name, "accuracy")
                if not is_joint and row is not None and row.blind is not None:
                    figures.append(
                        Figure(
                            f"{key}_{attribute}_blind",
                            f"{where}; {attribute}, the best guess of who heard nothing",
                            row.blind,
                            None,
                            None,
                            None,
                            None,
                        )
                    )
            case ReidentifyJointly(attribute=str(attribute)):
                figures.append(
                    rows.figure(
                        f"{key}_{attribute}_identity_joint",
                        f"{where}; who it is, jointly with {attribute}, top-1",
                        (name, "top1"),
                        told_attribute(attribute, "identity_joint"),
                    )
                )
            case _:
                figures.append(
                    rows.figure(
                        f"{key}_identity_single",
                        f"{where}; who it is, by itself, top-1",
                        (name, "top1"),
                        told_attribute("identity", "identity_single"),
                    )
                )
    return figures
