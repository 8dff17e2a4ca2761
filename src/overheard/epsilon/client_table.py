"""The report's tables on epsilon by client, and by unit of privacy."""

from collections.abc import Sequence
from math import ceil

from overheard.core.accounting.client_accounts import ClientAccount, ClientAccounts
from overheard.core.mechanism import MEANINGLESS_EPSILON, AccountUnit
from overheard.drawing.figures import ReportTable
from overheard.drawing.sections import SectionBlock
from overheard.epsilon.epsilon_results import EpsilonResult
from overheard.findings.names import make_printable

MAX_LISTED_CLIENTS = 20
"""Most clients that are listed one by one; of more, the extremes and the middle are."""

UNIT_WORDS: dict[AccountUnit, str] = {
    "record": "one record",
    "user": "one user with {:,} records",
    "client": "the client, with all its {:,} records",
}
"""What is added or removed, in words."""


def client_blocks(lines: Sequence[EpsilonResult]) -> tuple[SectionBlock, ...]:
    """Return the tables of mechanisms whose clients have accountants; nothing if none has."""
    found = {
        (make_printable(line.arm), make_printable(line.defense.settings)): (line, accounts)
        for line in lines
        if (accounts := line.defense.clients) is not None
    }
    return tuple(
        block
        for (arm, settings), (line, accounts) in found.items()
        for block in (
            _of_clients(f"{arm}, {settings.partition('(')[0]}", accounts),
            _of_units(f"{arm}, {settings.partition('(')[0]}", accounts),
        )
    )


def _of_clients(name: str, accounts: ClientAccounts) -> SectionBlock:
    count = len(accounts.accounts)
    if count <= MAX_LISTED_CLIENTS:
        rows = tuple(_client_cells("", one) for one in accounts.accounts)
    else:
        rows = (
            _client_cells("largest: ", accounts.largest),
            _client_cells("median: ", accounts.median),
            _client_cells("smallest: ", accounts.smallest),
        )
    table = ReportTable(
        f"Epsilon by client: {name}",
        ("Client", "Messages", "Steps", "Epsilon of one record", "Why it is infinite"),
        rows,
        3,
    )
    note = (
        f"Each of the {count:,} clients has an accountant over its own messages. The run's "
        f"epsilon is the largest: {_figure(accounts.largest.epsilon)}, of "
        f"{make_printable(accounts.largest.client)}. A client that sent nothing has spent "
        "nothing."
    )
    return SectionBlock("Epsilon by client", (note,), (table,))


def _client_cells(place: str, account: ClientAccount) -> tuple[str, ...]:
    return (
        f"{place}{make_printable(account.client)}",
        f"{account.messages:,}",
        f"{account.steps:,}",
        _figure(account.epsilon),
        make_printable(account.problem),
    )


def _of_units(name: str, accounts: ClientAccounts) -> SectionBlock:
    table = ReportTable(
        f"Units side by side: {name}",
        ("What is added or removed", "Epsilon"),
        tuple(
            (UNIT_WORDS[one.unit].format(one.records), _figure(one.epsilon))
            for one in accounts.units
        ),
        1,
    )
    note = (
        f"The units of {make_printable(accounts.largest.client)}, at the same delta. Several "
        "records of one user cost more than their number times the epsilon of one: their "
        "privacy losses are composed as a group."
    )
    if accounts.as_poisson is not None:
        note += (
            " Its batches are shuffled: each record is in one step an epoch, without "
            "amplification by sampling. With Poisson samples of the same rate epsilon of one "
            f"record would be {_figure(accounts.as_poisson)}, which is not this run's."
        )
    return SectionBlock("Units side by side", (note,), (table,))


def _figure(epsilon: float) -> str:
    """Format an upper bound, rounded up; above `MEANINGLESS_EPSILON` it protects nobody."""
    if epsilon > MEANINGLESS_EPSILON:
        return f"above {MEANINGLESS_EPSILON:g}: protects nobody"
    return f"{ceil(epsilon * 100) / 100:.2f}"
