import torch

from overheard.linkage.known_updates import KnownUpdates
from overheard.linkage.user_evidence import average_chunks, chunk_indices


def known(vectors, users, rounds, chunks) -> KnownUpdates:
    return KnownUpdates(
        torch.tensor(vectors),
        torch.tensor(users),
        torch.tensor(rounds),
        torch.tensor(chunks),
        ("ann", "ben", "cid"),
        2,
    )


# ann's two chunks and ben's one, in rounds 0 and 3.
CUT = known(
    [[1.0, 0], [3, 2], [0, 5], [2, 0], [0, 2], [7, 7]],
    [0, 0, 1, 0, 0, 1],
    [0, 0, 0, 3, 3, 3],
    [0, 1, 0, 0, 1, 0],
)


def test_numbers_updates_of_shadow_devices_in_turn() -> None:
    shadow_updates = known(
        [[0.0]] * 8, [0, 1, 0, 0, 0, 0, 1, 2], [0, 0, 1, 2, 3, 4, 4, 9], [0] * 8
    )
    # ann's are 0, 1, 2, 3 and 0 again, ben's 0 and 1, cid's 0.
    assert chunk_indices(shadow_updates).tolist() == [0, 0, 1, 2, 3, 0, 1, 0]


def test_averages_chunks_by_user_and_round() -> None:
    averaged = average_chunks(CUT, chunk_indices(CUT), [0, 1])
    assert averaged.users.tolist() == [0, 0, 1, 1]
    assert averaged.rounds.tolist() == [0, 3, 0, 3]
    assert averaged.vectors.tolist() == [[2, 1], [1, 1], [0, 5], [7, 7]]
