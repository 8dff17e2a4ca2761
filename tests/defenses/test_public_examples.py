"""Defenses that draw other examples into a client's own."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.defenses import mm_aug
from overheard.defenses._background import share_count
from overheard.defenses._even_draws import draw_evenly
from overheard.defenses.bkg_repl import BkgRepl
from overheard.defenses.mm_aug import FEATURES, MmAug, compute_features, find_modes
from overheard.defenses.rand_aug import RandAug


def chunk(size: int, label: int) -> Examples:
    """Examples of one label, whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def test_rounds_a_share_up_from_its_decimal_digits() -> None:
    # 0.1 * 30 is 3.0000000000000004 in floats.
    assert [share_count(30, 0.1), share_count(31, 0.1), share_count(1, 0.25)] == [3, 4, 1]
    assert [share_count(7, 0.0), share_count(0, 0.5), share_count(7, 2.0)] == [0, 0, 14]


TOPICS = 6


def public(each: int = 20) -> Examples:
    """Dense clusters far apart; the label is the number of the cluster, from 1 on."""
    labels = torch.arange(TOPICS).repeat_interleave(each)
    noise = torch.randn(len(labels), TOPICS, generator=Seed(3).generator())
    return Examples(9 * torch.eye(TOPICS)[labels] + 0.1 * noise, labels + 1)


def moment(lasting: int = 0, background: Examples | None = None) -> DefenseContext:
    there = background or chunk(40, 1)
    return DefenseContext(
        2, client(1), Seed(5), background=there, persistent_seed=Seed(lasting)
    )


MIXING = [
    (BkgRepl(0.5), chunk(12, 0), chunk(30, 1)),
    (RandAug(1.0), chunk(12, 0), chunk(40, 1)),
    (MmAug(0.5, TOPICS), Examples(torch.zeros(12, TOPICS), torch.zeros(12).long()), public()),
]
"""Defenses, with examples of a client and public ones."""


@pytest.mark.parametrize(("defense", "data", "background"), MIXING)
def test_draws_the_same_mixture_in_every_round_and_another_per_client(
    defense: Defense, data: Examples, background: Examples
) -> None:
    first = defense.on_data(data, moment(1, background))
    later = replace(moment(1, background), round=7, seed=Seed(6))
    assert torch.equal(first.inputs, defense.on_data(data, later).inputs)
    others = [defense.on_data(data, moment(lasting, background)) for lasting in range(2, 8)]
    drawn = {tuple(one.inputs[one.labels > 0].flatten().tolist()) for one in (first, *others)}
    assert len(drawn) > 1


@pytest.mark.parametrize("background", [None, chunk(0, 1)])
@pytest.mark.parametrize(("defense", "data"), [one[:2] for one in MIXING])
def test_refuses_to_act_without_a_background(
    defense: Defense, data: Examples, background: Examples | None
) -> None:
    context = DefenseContext(0, client(3), Seed(0), background=background)
    words = rf"{defense.name}: it mixes .* client/3, .*; set data.background"
    with pytest.raises(PlanError, match=words):
        defense.on_data(data, context)


@pytest.mark.parametrize(
    ("alpha", "replaced"), [(0.0, 0), (0.25, 3), (0.5, 6), (0.75, 9), (1.0, 12), (0.01, 1)]
)
def test_replaces_the_share_and_keeps_the_size(alpha: float, replaced: int) -> None:
    mixed = BkgRepl(alpha).on_data(chunk(12, 0), moment())
    assert mixed.label_counts(2).tolist() == [12 - replaced, replaced]


@given(st.integers(0, 30), st.integers(1, 30), st.floats(0, 1))
def test_draws_no_example_twice_before_all_were_drawn(
    size: int, background: int, alpha: float
) -> None:
    mixed = BkgRepl(alpha).on_data(chunk(size, 0), moment(background=chunk(background, 1)))
    own, public = (mixed.inputs[mixed.labels == label].flatten() for label in (0, 1))
    assert len(own) + len(public) == size
    assert len(own.unique()) == len(own)
    assert len(public.unique()) == min(len(public), background)


def test_keeps_other_examples_of_another_client() -> None:
    one, other = (BkgRepl(0.5).on_data(chunk(12, 0), moment(n)).inputs[:6] for n in (1, 2))
    assert set(one.flatten().tolist()) != set(other.flatten().tolist())


@pytest.mark.parametrize(
    ("alpha", "added"), [(0.0, 0), (0.5, 5), (1.0, 10), (2.0, 20), (0.01, 1), (5.0, 50)]
)
def test_adds_alpha_n_examples(alpha: float, added: int) -> None:
    data = chunk(10, 0)
    mixed = RandAug(alpha).on_data(data, moment())
    assert torch.equal(mixed.inputs[:10], data.inputs)
    assert mixed.label_counts(2).tolist() == [10, added]
    # Of 40 public examples, 50 draws take each once and ten of them twice.
    assert len(mixed.inputs[10:].unique()) == min(added, 40)


def test_a_larger_alpha_adds_to_the_same_examples() -> None:
    some, more = (RandAug(alpha).on_data(chunk(10, 0), moment()) for alpha in (0.5, 2.0))
    assert torch.equal(some.inputs, more.inputs[:15])


def shares(data: Examples) -> torch.Tensor:
    return data.label_counts(3).double() / len(data)


def test_label_shares_of_two_clients_approach_by_the_equation() -> None:
    # One holds label 0 alone, the other 2 alone: an L1 distance of 2. The background bears all
    # labels, so each keeps 1 / (1 + alpha) of its own, and the distance falls to twice that.
    # Of 600 draws or more the share of a label has a deviation of 0.02 or less: two clients'
    # three shares together differ by 0.15 or less.
    background = Examples(torch.zeros(3000, 1), torch.arange(3000) % 3)
    for alpha in (0.0, 1.0, 3.0):
        one, other = (
            RandAug(alpha).on_data(chunk(600, label), moment(label, background))
            for label in (0, 2)
        )
        apart = float((shares(one) - shares(other)).abs().sum())
        assert apart == pytest.approx(2 / (1 + alpha), abs=0.15)


def own(size: int) -> Examples:
    return Examples(torch.zeros(size, TOPICS), torch.zeros(size, dtype=torch.int64))


def added(defense: MmAug, lasting: int, size: int = 10) -> Examples:
    """The background examples added to a client of this size."""
    mixed = defense.on_data(own(size), moment(lasting, public()))
    assert mixed.labels[:size].tolist() == [0] * size
    return mixed.take(torch.arange(size, len(mixed)))


@pytest.mark.parametrize(("alpha", "count"), [(0.0, 0), (0.5, 5), (1.0, 10), (2.0, 20)])
def test_adds_alpha_n_examples_of_one_topic(alpha: float, count: int) -> None:
    for lasting in range(5):
        got = added(MmAug(alpha, TOPICS), lasting)
        assert len(got) == count
        assert len(got.labels.unique()) <= 1


def test_draws_every_topic_about_equally_often() -> None:
    defense = MmAug(0.1, TOPICS)
    picked = [int(added(defense, lasting).labels[0]) for lasting in range(300)]
    counts = torch.tensor(picked).bincount(minlength=TOPICS + 1)[1:]
    # 300 draws at 1/6 expect 50, with a deviation of 6.5: five of them.
    assert int(counts.min()) >= 18
    assert int(counts.max()) <= 82


def parity(inputs: torch.Tensor) -> torch.Tensor:
    """An extractor that only distinguishes odd and even topics."""
    return (inputs.argmax(1) % 2)[:, None].float()


def test_uses_the_features_of_the_named_extractor() -> None:
    # 20 of each of three topics: all 60 are taken once.
    got = added(MmAug(6.0, 2, f"{__name__}:parity"), 0)
    assert len(set(got.labels.tolist())) == 3
    assert len({label % 2 for label in got.labels.tolist()}) == 1


@pytest.mark.parametrize("extractor", ["no reference", "package", "a:b:c"])
def test_refuses_an_extractor_that_is_no_reference(extractor: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        MmAug(extractor=extractor)


def clouds(each: int, of: int, seed: int = 3) -> Tensor:
    """Dense clusters far apart, one after the other."""
    labels = torch.arange(of).repeat_interleave(each)
    noise = torch.randn(len(labels), of, generator=Seed(seed).generator())
    return 9 * torch.eye(of)[labels] + 0.1 * noise


def test_each_cluster_is_a_mode() -> None:
    found = find_modes(clouds(30, 5), 5, None)
    assert sorted(rows.tolist() for rows in found) == [
        list(range(start, start + 30)) for start in range(0, 150, 30)
    ]


@given(st.integers(1, 60), st.integers(1, 80), st.integers(0, 5))
def test_every_example_is_in_one_mode_and_no_mode_is_empty(
    examples: int, modes: int, seed: int
) -> None:
    inputs = torch.randn(examples, 3, generator=Seed(seed).generator())
    found = find_modes(inputs, modes, None)
    assert 1 <= len(found) <= min(modes, examples)
    assert all(len(rows) for rows in found)
    assert sorted(torch.cat(found).tolist()) == list(range(examples))


def test_equal_examples_are_one_mode() -> None:
    (rows,) = find_modes(torch.ones(9, 2), 4, None)
    assert rows.tolist() == list(range(9))


def test_examples_outside_the_sample_join_the_nearest_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mm_aug, "SAMPLE_SIZE", 40)
    found = find_modes(clouds(30, 4, seed=8), 4, None)
    assert sorted(rows.tolist() for rows in found) == [
        list(range(start, start + 30)) for start in range(0, 120, 30)
    ]


ASKED: list[int] = []


def counted(inputs: Tensor) -> Tensor:
    ASKED.append(len(inputs))
    return inputs


def test_clusters_equal_inputs_once_also_in_a_new_tensor() -> None:
    ASKED.clear()
    reference, inputs = f"{__name__}:counted", clouds(5, 3, seed=4)
    first = find_modes(inputs, 3, reference)
    for again in (inputs, inputs.clone()):
        assert all(map(torch.equal, find_modes(again, 3, reference), first))
    assert ASKED == [15]
    find_modes(inputs, 2, reference)
    find_modes(inputs + 1, 3, reference)
    assert ASKED == [15, 15, 15]


def test_equal_inputs_give_the_same_modes() -> None:
    inputs = torch.randn(200, 6, generator=Seed(1).generator())
    torch.manual_seed(0)
    first = find_modes(inputs, 20, None)
    mm_aug._MODES.clear()
    before = torch.get_num_threads()
    torch.manual_seed(1)
    torch.set_num_threads(2)
    try:
        second = find_modes(inputs, 20, None)
    finally:
        torch.set_num_threads(before)
    assert len(first) == len(second)
    assert all(map(torch.equal, first, second))


def distances(features: Tensor) -> Tensor:
    return (features[:, None] - features).norm(dim=2)


def test_keeps_all_distances_up_to_64_dimensions() -> None:
    # Seven numbers span seven directions or fewer: turning loses nothing.
    inputs = torch.randn(30, 7, generator=Seed(0).generator())
    standard = (inputs - inputs.mean(0)) / inputs.std(0, correction=0)
    features = compute_features(inputs, None)
    assert features.shape == (30, 7)
    assert torch.allclose(distances(features), distances(standard), atol=1e-4)


def test_columns_of_a_table_have_equal_weight_in_any_unit() -> None:
    inputs = torch.randn(30, 3, generator=Seed(0).generator())
    scaled = inputs * torch.tensor([1000.0, 1.0, 0.01]) + 5
    one, other = (distances(compute_features(each, None)) for each in (inputs, scaled))
    assert torch.allclose(one, other, atol=1e-3)


def test_a_constant_column_has_no_effect() -> None:
    inputs = torch.randn(30, 3, generator=Seed(0).generator())
    constant = torch.cat([inputs, torch.full((30, 1), 2.0)], 1)
    one, other = (distances(compute_features(each, None)) for each in (inputs, constant))
    assert torch.allclose(one, other, atol=1e-4)


def test_pixels_of_images_keep_their_scale() -> None:
    inputs = torch.randn(20, 1, 2, 3, generator=Seed(0).generator())
    inputs[:, 0, 0, 0] *= 100
    features = compute_features(inputs, None)
    assert torch.allclose(distances(features), distances(inputs.flatten(1)), atol=1e-3)


def test_keeps_the_leading_directions() -> None:
    # Three strong directions among 300 weak ones hold nearly all of every distance.
    generator = Seed(0).generator()
    strong = torch.randn(200, 3, generator=generator) @ torch.randn(3, 300, generator=generator)
    weak = 0.01 * torch.randn(200, 300, generator=generator)
    inputs = (strong + weak)[:, None, None]  # (examples, 1, 1, 300)
    features = compute_features(inputs, None)
    assert features.shape == (200, FEATURES)
    assert torch.allclose(distances(features), distances(inputs.flatten(1)), atol=0.3)


def test_texts_with_the_same_words_are_close_in_any_order_and_padding() -> None:
    texts = torch.tensor([[5, 6, 7, 0], [7, 5, 6, 0], [0, 6, 7, 5], [8, 9, 3, 0], [9, 8, 4, 0]])
    apart = distances(compute_features(texts, None))
    assert float(apart[:3, :3].max()) < 1e-3
    assert float(apart[3, 4]) < float(apart[3, 0])
    # No word in common: a right angle between two of length 1.
    assert float(apart[0, 3]) == pytest.approx(2**0.5, abs=1e-3)


def test_empty_texts_have_features_too() -> None:
    texts = torch.tensor([[0, 0], [2, 3], [4, 3]])
    assert compute_features(texts, None)[0].tolist() == pytest.approx([0.0] * 3)
    assert bool(compute_features(torch.zeros(3, 2, dtype=torch.int64), None).isfinite().all())


def halves(inputs: Tensor) -> Tensor:
    return inputs[:, :1] / 2


def words(inputs: Tensor) -> str:
    return "no features"


def too_few(inputs: Tensor) -> Tensor:
    return inputs[:1]


def endless(inputs: Tensor) -> Tensor:
    return inputs / 0


NO_FUNCTION = 3


def test_returns_the_features_of_a_custom_extractor() -> None:
    inputs = torch.ones(4, 2)
    assert compute_features(inputs, f"{__name__}:halves").tolist() == [[0.5]] * 4


@pytest.mark.parametrize("name", ["words", "too_few", "endless"])
def test_refuses_an_extractor_without_valid_features_by_name(name: str) -> None:
    with pytest.raises(
        PlanError, match=f"{name} must return a matrix of finite numbers with one row for each"
    ):
        compute_features(torch.ones(4, 2), f"{__name__}:{name}")


@pytest.mark.parametrize("reference", ["no_such_package:f", f"{__name__}:no_such_function"])
def test_refuses_a_missing_extractor_by_name(reference: str) -> None:
    with pytest.raises(PlanError, match=r"extractor: .*(cannot be imported|has no function)"):
        compute_features(torch.ones(4, 2), reference)


def test_refuses_an_extractor_that_is_no_function() -> None:
    with pytest.raises(PlanError, match="is a int; it must be a function"):
        compute_features(torch.ones(4, 2), f"{__name__}:NO_FUNCTION")


def test_does_not_use_the_global_generator() -> None:
    inputs = torch.randn(30, 100, generator=Seed(0).generator())
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = compute_features(inputs, None)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(one, compute_features(inputs, None))


def drawn(rows: list[int], count: int, seed: int = 0) -> list[int]:
    return draw_evenly(torch.tensor(rows), count, Seed(seed).generator()).tolist()


@given(st.integers(1, 20), st.integers(0, 70))
def test_draws_every_row_equally_often_up_to_one(there: int, count: int) -> None:
    taken = drawn(list(range(5, 5 + there)), count)
    assert len(taken) == count
    often = [taken.count(row) for row in range(5, 5 + there)]
    assert sum(often) == count
    assert max(often) - min(often) <= 1
