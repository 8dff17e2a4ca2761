import json
import math
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.archive.layout import truth_path
from overheard.archive.truth import has_truth, write_truth
from overheard.core.errors import DataError, TranscriptError
from overheard.core.facts import Facts
from overheard.core.parties import Party, client
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.record_owners import RecordOwners, RecordsDigest
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from tests.archive.stored_truth import read_truth


def test_shares_are_read_as_written(tmp_path: Path) -> None:
    even, skewed = (torch.tensor(one).double() for one in ([0.5, 0.5], [1.0, 0.0]))
    counts = LabelCounts({(number, client(0)): torch.tensor([1, 1]) for number in (1, 2)})
    drawn = DrawnShares({client(0): {0: even, 2: skewed}})
    write_truth(tmp_path, GroundTruth(Facts(counts, drawn)))
    stored = json.loads(truth_path(tmp_path).read_text())["drawn_from"]
    assert [one["round"] for one in stored] == [0, 2]
    found = read_truth(tmp_path).facts.need(DrawnShares)
    assert found.shares_of(client(0), 1).equal(even)
    assert found.shares_of(client(0), 2).equal(skewed)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x1b[31m", "a\nb", "\u202egpj"])
def test_unprintable_or_long_names_are_neither_written_nor_read(
    tmp_path: Path, name: str
) -> None:
    for fact in (
        UsersOfClients({client(0): name}),
        Attributes({name: {}}),
        Attributes({"age": {name: "20s"}}),
        Attributes({"age": {"u017": name}}),
    ):
        with pytest.raises(
            DataError, match=r"is no valid name of a .*; correct it in the data"
        ):
            write_truth(tmp_path, GroundTruth(Facts(fact)))
        text = json.dumps({"counts": [], "accuracy": [], **asdict(fact)})
        truth_path(tmp_path).write_text(text)
        with pytest.raises(TranscriptError, match="is no valid name of a"):
            read_truth(tmp_path)


def test_a_missing_truth_is_reported(tmp_path: Path) -> None:
    assert not has_truth(tmp_path)
    with pytest.raises(TranscriptError, match="claims cannot be scored"):
        read_truth(tmp_path)
    truth_path(tmp_path).write_text('{"counts": [], "accuracy": []}')
    assert has_truth(tmp_path)
    assert read_truth(tmp_path).facts == Facts()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"counts": [{"round": 0, "party": "../x", "labels": [1]}], "accuracy": []}',
        b'{"counts": [], "accuracy": [{"round": 0, "accuracy": NaN}]}',
        b'{"counts": [], "accuracy": [], "shifts": [{"party": "x", "rounds": ["1"]}]}',
        b'{"counts": [], "accuracy": [], "shifts": [{"party": "<x>", "rounds": [1]}]}',
        b'{"counts": [], "accuracy": [], "users": {"../x": "u017"}}',
        b'{"counts": [], "accuracy": [], "users": {"x": 17}}',
        b'{"counts": [], "accuracy": [], "attributes": {"age": {"u017": 20}}}',
    ],
)
def test_a_damaged_truth_is_refused(tmp_path: Path, content: bytes) -> None:
    truth_path(tmp_path).write_bytes(content)
    with pytest.raises(TranscriptError, match="is damaged"):
        read_truth(tmp_path)


COUNTS = [{"round": 0, "party": "client/0", "labels": [1, 1]}]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"counts": COUNTS * 2}, "counts states round 0 of client/0 twice: keep the one that"),
        ({"accuracy": [{"round": 3, "accuracy": 0.5}] * 2}, "accuracy states round 3 twice"),
        (
            {"shifts": [{"party": "client/0", "rounds": [1]}] * 2},
            "shifts states client/0",
        ),
        (
            {"shifts": [{"party": "client/0", "rounds": [1, 1]}]},
            "shifts of client/0 states",
        ),
        (
            {"drawn_from": [{"party": "client/0", "round": 0, "shares": [1, 0]}] * 2},
            "drawn_from states round 0 of client/0 twice",
        ),
        ({"shifts": [{"party": "client/0", "rounds": [2, 1]}]}, "not in order"),
        ({"counts": [{**COUNTS[0], "round": -1}]}, r"counts\.0\.round: .*; correct it"),
        (
            {"counts": [{**COUNTS[0], "round": 10**9}]},
            r"counts\.0\.round: .* below 1000000000",
        ),
        (
            {"counts": [{**COUNTS[0], "round": True}]},
            r"counts\.0\.round: .*whole number",
        ),
        (
            {"counts": [{**COUNTS[0], "labels": [1, 0.5]}]},
            r"counts\.0\.labels\.1: .*whole number",
        ),
        (
            {"counts": [{**COUNTS[0], "labels": [1, True]}]},
            r"counts\.0\.labels\.1: .*whole number",
        ),
        (
            {"counts": [{**COUNTS[0], "labels": [1, -1]}]},
            r"counts\.0\.labels\.1: .*0 or more",
        ),
        ({"counts": [{**COUNTS[0], "labels": [1, 10**400]}]}, "more than 300 digits"),
        (
            {"counts": [{**COUNTS[0], "labels": []}]},
            r"counts\.0\.labels: .*1 or more entries",
        ),
        ({"counts": [{**COUNTS[0], "labels": [2**53 - 1, 1]}]}, "at most 9007199254740991"),
        ({"counts": [*COUNTS, {**COUNTS[0], "round": 1, "labels": [1]}]}, "are of 1 labels"),
        ({"counts": [{**COUNTS[0], "party": "server"}]}, "names server, which is no client"),
        ({"users": {"cohort": "u017"}}, "users names cohort, which is no client"),
        *(({"canaries": one}, "is damaged") for one in ("<b>", "xyz", "0" * 201, 7)),
        ({"members": {"release": [0]}}, "members names release, which is no client"),
        ({"members": {"client/0": [-1]}}, r"members\.client/0\.0: must be 0 or more"),
        ({"members": {"client/1": [4, 1, 4]}}, "members of client/1 must be distinct indices"),
        (
            {"accuracy": [{"round": 0, "accuracy": 7.5}]},
            r"accuracy\.0\.accuracy: .*at most 1",
        ),
        ({"accuracy": [{"round": 0, "accuracy": 10**400}]}, "more than 300 digits"),
        ({"accuracy": [{"round": 0, "accuracy": True}]}, r"accuracy\.0\.accuracy: .*number"),
        (
            {"drawn_from": [{"party": "client/0", "round": 0, "shares": [0.5, 0.4]}]},
            "shares of client/0 in round 0 that sum to 0.9: shares sum to 1",
        ),
        (
            {"drawn_from": [{"party": "client/0", "round": 0, "shares": [1]}]},
            "one share per label, for client/0",
        ),
        (
            {"drawn_from": [{"party": "client/0", "round": 1, "shares": [0.5, 0.5]}]},
            "shares of client/0 in round 1, but there are no label counts",
        ),
        (
            {"drawn_from": [{"party": "client/9", "round": 0, "shares": [0.5, 0.5]}]},
            "shares of client/9 in round 0, but there are no label counts",
        ),
    ],
)
def test_refuses_what_is_stated_twice_or_impossible(
    more: dict[str, object], words: str, tmp_path: Path
) -> None:
    stored = {"counts": COUNTS, "accuracy": [], **more}
    truth_path(tmp_path).write_text(json.dumps(stored))
    with pytest.raises(TranscriptError, match=words):
        read_truth(tmp_path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"counts": [], "counts": [], "accuracy": []}', "counts"),
        (
            '{"counts": [], "users": {"client/0": "a", "client/0": "b"}}',
            "client/0",
        ),
        ('{"counts": [{"round": 0, "round": 1, "party": "client/0", "labels": []}]}', "round"),
    ],
)
def test_refuses_a_key_twice_in_an_object(text: str, key: str, tmp_path: Path) -> None:
    truth_path(tmp_path).write_text(text)
    with pytest.raises(TranscriptError, match=f"has the key '{key}' twice in one object"):
        read_truth(tmp_path)


NAMES = st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=9)
HOSTILE = st.sampled_from((-1, 10**9, 2**53, 10**400, True, 7.5, math.nan, math.inf))


@st.composite
def truths(draw: st.DrawFn, *, is_hostile: bool) -> GroundTruth:
    """Draw a truth; of a hostile one, any value may be one that no truth has."""
    numbers, floats = st.integers(0, 9), st.floats(0, 1)
    parties = st.sampled_from((client(0), client(1), Party("clinic/Łódź"), Party("shadow/0")))
    labels, widths, names = st.integers(0, 9), st.just(3), NAMES
    if is_hostile:
        numbers, floats = numbers | HOSTILE, floats | HOSTILE
        parties |= st.sampled_from((Party("server"), Party("cohort"), Party("../x")))
        labels |= st.sampled_from((-1, 2**53, 2**62))
        widths, names = st.integers(0, 4), NAMES | st.just("a\x1b")
    keys = draw(st.lists(st.tuples(numbers, parties), unique=True, max_size=4))
    lists = st.lists(numbers, unique=not is_hostile, max_size=3)
    if not is_hostile:
        lists = lists.map(sorted)
    values = st.dictionaries(names, names, max_size=2)
    places = st.dictionaries(parties, lists.map(tuple), min_size=1, max_size=2)
    shares: dict[Party, dict[int, torch.Tensor]] = {}
    for number, party in keys if draw(st.booleans()) else []:
        one = torch.tensor(draw(drawn_lists(st.floats(0, 2), st.just(3)))).double()
        shares.setdefault(party, {})[number] = one if is_hostile else one.softmax(0)
    counts = {key: torch.tensor(draw(drawn_lists(labels, widths))).long() for key in keys}
    facts = (
        LabelCounts(counts),
        DrawnShares(shares),
        UsersOfClients(draw(st.dictionaries(parties, names, min_size=1, max_size=2))),
        Attributes(draw(st.dictionaries(names, values, min_size=1, max_size=2))),
        Shifts(draw(places)),
        RecordOwners(draw(places)),
        RecordsDigest(draw(st.text("0123456789abcdef", min_size=1, max_size=9))),
    )
    return GroundTruth(Facts(*facts), draw(st.dictionaries(numbers, floats, max_size=3)))


def drawn_lists(
    numbers: st.SearchStrategy[int] | st.SearchStrategy[float], lengths: st.SearchStrategy[int]
) -> st.SearchStrategy[list[float]]:
    return lengths.flatmap(lambda length: st.lists(numbers, min_size=length, max_size=length))


def as_stored(truth: GroundTruth) -> list[object]:
    """Return all that is stored of a truth."""
    counts = truth.facts.get(LabelCounts) or LabelCounts({})
    drawn = truth.facts.get(DrawnShares) or DrawnShares({})
    rest = [fact for fact in truth.facts if not isinstance(fact, LabelCounts | DrawnShares)]
    return [
        {key: one.tolist() for key, one in counts.counts.items()},
        {
            (party, number): one.tolist()
            for party, stated in drawn.shares.items()
            for number, one in stated.items()
        },
        truth.accuracy,
        sorted(rest, key=repr),
    ]


@given(truths(is_hostile=False))
def test_each_possible_truth_is_read_as_written(truth: GroundTruth) -> None:
    with TemporaryDirectory() as folder:
        write_truth(Path(folder), truth)
        assert as_stored(read_truth(Path(folder))) == as_stored(truth)


@given(truths(is_hostile=True))
def test_what_would_not_be_read_as_written_is_not_written(truth: GroundTruth) -> None:
    with TemporaryDirectory() as folder:
        try:
            write_truth(Path(folder), truth)
        except DataError:
            assert not has_truth(Path(folder))
        else:
            assert as_stored(read_truth(Path(folder))) == as_stored(truth)
