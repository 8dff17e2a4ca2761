"""What all attacks on sources read: the rounds of several clients, and what clients state."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.questions.source_inference.claim import RecordSources
from overheard.statistics.evenly_spaced import select_evenly_spaced

EVEN_ODDS = 0.5
"""The probability that no client holds a record, where an attack does not estimate it."""


def rounds_to_read(
    view: View, targets: Sequence[Party], most_rounds: int, fewest_senders: int = 1
) -> Mapping[int, tuple[Party, ...]]:
    """Return the rounds to read, each with the targets that sent an update in it.

    They are evenly spaced among the rounds with a broadcast and with updates of enough targets.

    Args:
        view: what is observed.
        targets: the clients that may hold a record.
        most_rounds: the largest number of rounds.
        fewest_senders: the fewest targets whose updates a round needs.

    Raises:
        NeedsError: if there are fewer than two clients, or a target is in none of the rounds.

    """
    if len(targets) < 2 or COHORT in targets:
        raise NeedsError("updates of two clients or more, by each client")
    broadcasts, senders = view.broadcasts(), dict[int, list[Party]]()
    for target in targets:
        for number in view.rounds_with_updates(target):
            if number in broadcasts:
                senders.setdefault(number, []).append(target)
    readable = sorted(one for one, sent in senders.items() if len(sent) >= fewest_senders)
    chosen = select_evenly_spaced(readable, most_rounds) if readable else ()
    read = {number: tuple(senders[number]) for number in chosen}
    for target in targets:
        if not any(target in sent for sent in read.values()):
            last = max((one for one in readable if target in senders[one]), default=None)
            if last is None:
                raise NeedsError(
                    f"a round in which {target} and enough other clients sent an update"
                )
            read[last] = tuple(senders[last])
    return dict(sorted(read.items()))


def make_claim(
    targets: Sequence[Party],
    knowledge: Knowledge,
    log_odds: Float[Tensor, "clients records"],
    nobody: Float[Tensor, " records"] | None,
    examples: tuple[int, ...],
) -> RecordSources:
    """Return the claim whose probabilities of clients follow from log-odds.

    Args:
        targets: the clients.
        knowledge: what the attacker knows.
        log_odds: for each client and record, the log of its weight among the clients.
        nobody: the probability that no client holds a record; None = even odds.
        examples: the number of examples of each client; () = not known of all.

    """
    chances = log_odds.double().softmax(0).T  # (records, clients)
    if nobody is None:
        nobody = torch.full((len(chances),), EVEN_ODDS)
    outside = nobody.double()[:, None]
    return RecordSources(
        tuple(targets),
        torch.cat((chances * (1 - outside), outside), 1).float().cpu(),
        candidate_records(knowledge).labels.cpu() if knowledge.has_classes else None,
        examples,
    )


def stated_examples(view: View, targets: Sequence[Party]) -> tuple[int, ...]:
    """Return the number of examples that each client's last update states; () = not all do."""
    stated = [list(view.updates(target).values())[-1].examples for target in targets]
    known = tuple(size for size in stated if size is not None)
    return known if len(known) == len(stated) else ()
