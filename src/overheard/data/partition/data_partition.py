"""The partition of a data set: to clients round by round, to the attacker and to the test."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.core.task import Task
from overheard.data.content_hash import hash_contents
from overheard.data.dataset import Dataset
from overheard.data.partition.candidates import (
    CandidateSet,
    CandidateSettings,
    add_canaries,
    draw_candidates,
)
from overheard.data.partition.data_timeline import draw_timeline
from overheard.data.partition.first_round import (
    SplitSettings,
    draw_first_chunks,
    split_among_clients,
    users_of_clients,
)
from overheard.data.partition.known_user_settings import KnownUserSettings
from overheard.data.partition.reserved_examples import (
    AuxiliarySize,
    ReservedExamples,
    reserve_examples,
)
from overheard.data.partition.run_users import (
    RunUsers,
    draw_background,
    identify_users,
    permute_examples,
)
from overheard.data.partition.schedule import Schedule


@dataclass(frozen=True, slots=True)
class DataPartition:
    """The examples of clients, attacker and test set.

    Args:
        pool: the training part of the data set. If clients hold distorted examples: the
            undistorted examples that any client holds, then the distorted ones.
        rows: rows of the pool, by round and then by client.
        auxiliary: examples of the attacker; no client holds one of them, or a copy of one.
        test: examples that neither clients nor attacker hold.
        shifts: by client, the rounds in which its data distribution changes.
        run_users: the users behind the clients and what the attacker knows of them; None =
            not requested.
        background: public examples of users who take no part; None = there are none.
        candidates: candidate records for membership inference, drawn or listed.
        members: by client, the positions in `candidates` of those that it holds from round 0;
            listed ones of unknown owners are under `COHORT`.
        canary_odds: with canaries, the expected number per client for each held-out one; None
            = candidates are no canaries.
        offered: by client, the positions of the canaries that a fair coin gave to it or held
            out; empty = there are none.
        drawn_from: the label shares that each client's examples are drawn from, by round and
            then by client; None = label counts are exact.

    """

    pool: Examples
    rows: tuple[tuple[Rows, ...], ...]
    auxiliary: Examples
    test: Examples
    shifts: Mapping[Party, tuple[int, ...]]
    run_users: RunUsers | None = None
    background: Examples | None = None
    candidates: Examples | None = None
    members: Mapping[Party, tuple[int, ...]] = field(default_factory=dict)
    canary_odds: float | None = None
    drawn_from: tuple[tuple[Float[Tensor, " classes"], ...], ...] | None = None
    offered: Mapping[Party, tuple[int, ...]] = field(default_factory=dict)

    def client_examples(self, client: int, number: int) -> Examples:
        """Return the examples that a client holds in a round."""
        return self.pool.take(self.rows[number][client])


def draw_partition(
    dataset: Dataset,
    split_settings: SplitSettings | None,
    *,
    clients: int,
    auxiliary: AuxiliarySize,
    test: int | None,
    schedule: Schedule,
    seed: Seed,
    known_users: KnownUserSettings | None = None,
    is_permuted: bool = False,
    background: int | None = None,
    candidates: CandidateSettings | None = None,
    canaries_at_odds: bool = False,
) -> DataPartition:
    """Partition a data set; no training example is ever held by two parties.

    Steps, in this order:

    1. Auxiliary examples are drawn from content that the training and the test part have only
       once. If the attacker holds any example of a record, no client holds another one.
    2. Canaries are drawn, so that they do not depend on the clients' other examples.
    3. The split partitions examples among clients. If clients replace examples naturally, those
       of round 0 are drawn anew from the label shares that the split gave them. A client that
       is a user keeps its random choice of the user's examples.
    4. When clients replace examples later, they draw ones that no client has held before.

    Args:
        dataset: to be partitioned.
        split_settings: the rule; None = clients hold only their canaries.
        clients: the number of clients.
        auxiliary: the number of auxiliary examples.
        test: the number of test examples, drawn at random; None = all.
        schedule: when clients replace their examples.
        seed: determines the partition.
        known_users: what the attacker knows of the users behind the clients; None = nothing.
        is_permuted: whether the first examples of clients are permuted among them.
        background: the largest number of public examples: from those of the data set or, if
            it has none, from users who take no part. None = all that the data set has.
        candidates: the number of candidate records; None = none.
        canaries_at_odds: whether canaries are assigned as older versions did; see
            `candidates.assign_canaries`.

    Raises:
        PlanError: if the data set is too small.

    """
    smallest = _check_settings(
        dataset, split_settings, clients, auxiliary, test, schedule, known_users, candidates
    )
    contents = hash_contents(dataset)
    reserved = reserve_examples(
        *(dataset, contents),
        clients=clients,
        smallest=smallest,
        auxiliary=auxiliary,
        seed=seed,
        known_users=known_users,
        candidates=candidates,
        canaries_at_odds=canaries_at_odds,
    )
    dataset, free = reserved.dataset, reserved.free.clone()
    client_rows = split_among_clients(dataset, split_settings, clients, free, seed)
    users = users_of_clients(dataset, split_settings)
    client_rows, shares = draw_first_chunks(dataset, users, client_rows, free, schedule, seed)
    run_users = _identify(dataset, reserved, client_rows, known_users, seed.child("who"))
    public_rows, public = _draw_public(
        dataset, reserved, run_users, client_rows, background, seed.child("background")
    )
    free[public_rows] = False
    if is_permuted:
        client_rows = permute_examples(client_rows, seed.child("exchanged"))
    candidate_set, client_rows = _draw_candidates(
        dataset, reserved, candidates, client_rows, free, contents.is_unique, seed
    )
    timeline = draw_timeline(
        dataset, users, client_rows, free, schedule, seed.child("exchanges"), shares
    )
    shadows = () if run_users is None else run_users.shadow_rows
    return DataPartition(
        timeline.pool,
        tuple((*rows, *shadows) for rows in timeline.rows),
        dataset.train.take(reserved.auxiliary_rows),
        dataset.test.sample(test, seed.child("test")),
        timeline.shifts,
        run_users,
        public,
        *_candidate_records(dataset, candidate_set),
        None if candidates is None else candidates.canary_odds,
        timeline.drawn_from,
        _by_client(() if candidate_set is None else candidate_set.offered),
    )


def _candidate_records(
    dataset: Dataset, drawn: CandidateSet | None
) -> tuple[Examples | None, Mapping[Party, tuple[int, ...]]]:
    """Return the drawn or listed candidate records, and their places by client."""
    if drawn is not None:
        return dataset.train.take(drawn.rows), _by_client(drawn.members)
    listed = dataset.listed
    return (None, {}) if listed is None else (listed.records, listed.members)


def _by_client(places: tuple[tuple[int, ...], ...]) -> Mapping[Party, tuple[int, ...]]:
    return {client(number): one for number, one in enumerate(places)}


def _identify(
    dataset: Dataset,
    reserved: ReservedExamples,
    client_rows: tuple[Rows, ...],
    known_users: KnownUserSettings | None,
    seed: Seed,
) -> RunUsers | None:
    """Return what the attacker knows of the users behind the clients; None = nothing."""
    if known_users is None or reserved.user_split is None:
        return None
    return identify_users(dataset, reserved.user_split, client_rows, known_users, seed)


def _draw_public(
    dataset: Dataset,
    reserved: ReservedExamples,
    run_users: RunUsers | None,
    client_rows: tuple[Rows, ...],
    most: int | None,
    seed: Seed,
) -> tuple[Rows, Examples | None]:
    """Return the rows that become public, and all public examples; None = there are none."""
    unused = reserved.unused
    if run_users is not None:
        # Examples of holdout users are not public; those of all other absent users may be.
        unused = unused & ~run_users.is_holdout
    rows = draw_background(dataset, unused, client_rows, most, seed)
    if dataset.background is not None:
        return rows, dataset.background.sample(most, seed)
    return rows, dataset.train.take(rows) if len(rows) else None


def _draw_candidates(
    dataset: Dataset,
    reserved: ReservedExamples,
    settings: CandidateSettings | None,
    client_rows: tuple[Rows, ...],
    free: Bool[Tensor, " examples"],
    is_unique: Bool[Tensor, " examples"],
    seed: Seed,
) -> tuple[CandidateSet | None, tuple[Rows, ...]]:
    """Return the candidate records, which are no longer free, and rows with their canaries."""
    if reserved.canaries is not None:
        return reserved.canaries, add_canaries(client_rows, reserved.canaries)
    if settings is None:
        return None, client_rows
    own_seed = seed.child("candidates")
    drawn = draw_candidates(settings, client_rows, free, is_unique, own_seed, dataset.records)
    free[drawn.rows] = False
    return drawn, client_rows


def _check_settings(
    dataset: Dataset,
    split_settings: SplitSettings | None,
    clients: int,
    auxiliary: AuxiliarySize,
    test: int | None,
    schedule: Schedule,
    known_users: KnownUserSettings | None,
    candidates: CandidateSettings | None,
) -> int:
    """Return the size of the smallest client; refuse settings that cannot be met."""
    smallest, largest = (0, 0) if split_settings is None else split_settings.sizes
    if clients < 1 or (split_settings is not None and not 1 <= smallest <= largest):
        raise PlanError(
            "data: a partition needs 1 client or more and sizes of 1 example or more, smallest "
            f"first, got {clients} clients of sizes {(smallest, largest)}"
        )
    if dataset.listed is not None and (split_settings is not None or candidates is not None):
        raise PlanError(
            "data.source.candidates lists records of a recorded run: leave out "
            + (
                "data.candidates"
                if split_settings is None
                else "it, or data.split and examples"
            )
        )
    if test is not None and not 1 <= test <= len(dataset.test):
        raise PlanError(
            f"test: {test} is not in 1 to {len(dataset.test)}, the number of test examples: "
            "change it"
        )
    split = None if split_settings is None else split_settings.split
    refuse_classes_in_settings(
        dataset.task, split, auxiliary.per_class, schedule, known_users, candidates
    )
    # Distorted examples are rows of another pool.
    has_devices = known_users is not None and known_users.shadow_devices
    if has_devices and any(shift.distortion for shift in schedule.shifts):
        raise PlanError(
            "people: shadow devices cannot be combined with distorted inputs: leave out "
            "shadow_devices or the shift by distortion"
        )
    return smallest


def refuse_classes_in_settings(
    task: Task,
    split: Split | None,
    auxiliary_per_class: int | None,
    schedule: Schedule,
    known_users: KnownUserSettings | None,
    candidates: CandidateSettings | None,
) -> None:
    """Check that no setting means classes if examples have none.

    Raises:
        PlanError: naming all such settings, each with its mend.

    """
    if task.has_classes:
        return
    problems = []
    if split is not None and split.needs_classes:
        problems.append(
            f"split {split.name} deals classes to clients: choose iid, or by_user if the data "
            "name users"
        )
    if auxiliary_per_class:
        problems.append("auxiliary_per_class counts by class: set auxiliary instead")
    if any(one.shares is not None or one.weights is not None for one in schedule.shifts):
        problems.append(
            "shifts by shares or weights change the classes of a client: shift by distortion "
            "or new_user"
        )
    if known_users is not None and known_users.prior == "profile":
        problems.append("people.prior 'profile' is one profile per class: choose 'random'")
    if known_users is not None and known_users.per_label is not None:
        problems.append("people.per_label counts by class: leave it out")
    if candidates is not None and candidates.canaries == "mislabelled":
        problems.append("mislabelled canaries have another class: set canaries = 'labelled'")
    if problems:
        kind = task.kind.replace("_", "-")
        raise PlanError(f"data: a {kind} task has no classes, but " + "; ".join(problems))
