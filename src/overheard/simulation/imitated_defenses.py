"""The defenses through which the data and updates of imitated clients pass."""

from dataclasses import dataclass
from typing import final

from overheard.core.defense import Defense, Moment
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Update
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.learning.cohort import Trained


@final
@dataclass(frozen=True, slots=True)
class ImitatedDefenses:
    """Known defenses in one round of an imitation, in the order in which they act.

    Args:
        defenses: through which data and updates pass.
        round: which.
        seed: of all draws.

    """

    defenses: tuple[Defense, ...]
    round: int
    seed: Seed

    def held(self, data: Examples, name: str, background: Examples | None) -> Examples:
        """What a client of this name trains on."""
        for defense in self.defenses:
            data = defense.on_data(data, self.moment(defense, name, background))
        return data

    def sent(self, trained: Trained) -> Update:
        """What a client sends once it is trained.

        Raises:
            PlanError: if its training ran away.

        """
        name = trained.member.name
        update = Update(trained.delta, len(trained.member.rows), {"loss": trained.loss})
        if not all(bool(part.isfinite().all()) for part in update.delta.values()):
            raise PlanError(
                f"the training of {name} ran away in round {self.round} (its weights are NaN "
                "or infinite): lower the rate of the recipe that the attacker takes clients "
                "to follow"
            )
        for defense in self.defenses:
            update = defense.on_update(update, self.moment(defense, name))
        return update

    def moment(self, defense: Defense, name: str, background: Examples | None = None) -> Moment:
        """When and to whom a defense acts."""
        return Moment(
            self.round,
            Party(name),
            self.seed.child("defense", defense.name, self.round, name),
            background=background,
            lasting=self.seed.child("lasting", defense.name, name),
        )
