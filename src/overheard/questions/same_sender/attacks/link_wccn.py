"""Linkage of targets by the similarity of their updates in different rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge

from overheard.core.algorithm.control_variates import corrected_history
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.needs import UPDATES, USERS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.linkage.known_updates import UpdateSource, load_known_updates
from overheard.linkage.layers import DifferentLayers
from overheard.linkage.learns_from_updates import LearnsFromUpdates
from overheard.linkage.projected_updates import (
    ProjectedUpdates,
    project_updates,
    read_default_layers,
)
from overheard.linkage.round_evidence import CHUNK_FACTOR, RoundEvidence, fit_round_evidence
from overheard.linkage.user_evidence import fit_user_evidence
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.estimators.disjoint_rounds import compare_senders


@final
@dataclass(frozen=True, slots=True)
class LinkWccn(LearnsFromUpdates, Attack[SameSender]):
    """The similarity of two pseudonyms in the spaces of `reidentify_wccn`.

    Spaces and weights are fitted to known users; the senders need not be among them. Each
    target is compared with all others except those that sent an update in one of its own
    rounds: a sender sends one update per round. The score of two targets is the mean similarity
    of their updates, -1..1. As with `link_siamese`, a control with permuted examples does not
    reduce the result to chance: clients that keep the same examples send similar updates.

    Updates that control variates corrected differ from round to round. Their score is the
    log-probability that one known user sent both.

    Args:
        updates: source of known updates.
        layers: parts of an update that are read, each separately; None = the last layer's bias,
            if any, the last layer, and all layers.
        pieces: number of chunks of each user's prior, if users are simulated; at least 2.
        most_rounds: at most this many rounds of known users are simulated.

    """

    updates: UpdateSource = "simulated"
    layers: DifferentLayers | None = None
    pieces: Annotated[int, Ge(2)] = 4
    most_rounds: Positive = 6

    name: ClassVar[str] = "link_wccn"
    claim_type: ClassVar = SameSender
    needs: ClassVar = frozenset({UPDATES, USERS})
    source: ClassVar[str] = "Overheard; see reidentify_wccn"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, SameSender]:
        """Claim how similar each target is to the others.

        Raises:
            NeedsError: if no updates of known users are available, or a target shares a round
                with every other sender.

        """
        is_corrected = self.updates == "simulated" and bool(corrected_history(view))
        chunks = self.pieces * (CHUNK_FACTOR if is_corrected else 1)
        known = {
            layer: load_known_updates(
                view, knowledge, self.updates, layer, chunks, self.most_rounds
            )
            for layer in self.layers or read_default_layers(view)
        }
        devices = KnownUsers.of(knowledge).shadow_devices
        read: RoundEvidence | ProjectedUpdates
        if is_corrected:
            read = fit_round_evidence(view, known, devices)
            similarity = read.same_user()
        else:
            evidence = fit_user_evidence(known)
            read = project_updates(view, devices, evidence)
            similarity = evidence.similarity(read.projections)
        crowd, senders, rounds = tuple(read.sender_indices), read.senders, read.rounds
        return {
            target: compare_senders(
                self.name, crowd, senders, rounds, own, similarity[own].float()
            )
            for target in targets
            for own in ((senders == read.index_of(target)).nonzero().flatten(),)
        }
