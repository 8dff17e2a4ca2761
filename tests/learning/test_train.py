"""Training: all engines give the same results."""

from dataclasses import replace
from functools import cache, partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import DroppedLinear
from overheard.learning.models.mobilenet import MobileNet
from overheard.learning.models.transformer import Transformer
from overheard.learning.train import (
    _may_gain_from_processes,
    prepare_workers,
    train_cohort,
    train_groups,
)
from overheard.learning.training_job import ClientTask, TrainingGroup
from overheard.learning.workers import starter
from overheard.learning.workers.processes import are_supported
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    FLOAT_LABEL_RECIPES,
    IMAGES,
    MLP,
    NORMED,
    READING,
    RECIPES,
    SEED,
    TABLE,
    TEXTS,
    WORDS,
    batch_normed,
    dropping,
    largest_difference,
    plain_loop,
    pool_of,
    same_bits,
    start_of,
)

CASES = {
    "mlp": (MLP, TABLE),
    "convolutions": (CONVOLUTIONS, IMAGES),
    "instance norm": (NORMED, IMAGES),
    "words": (WORDS, TEXTS),
    "reading": (READING, TEXTS),
}

SHORT = Recipe(rate=0.01, epochs=1, batch=8)
PRIVATE = replace(SHORT, private_steps=PrivateSteps(1.0, 1.0, 2, "poisson"))


def train(
    build, task=TABLE, recipe=RECIPES["sgd"], clients=CLIENTS, dtype=torch.float64, **settings
):
    """Train clients of the third round from the start weights of the cases."""
    settings = {"seed": SEED, "round": 3} | settings
    start, pool = start_of(build, dtype), pool_of(task, dtype)
    return train_cohort(build, start, pool, clients, recipe, **settings)


@cache
def plain_loops(build, task, recipe):
    """Train each client by a plain loop, once for all engines; its change and loss, by name."""
    start, pool = start_of(build), pool_of(task, torch.float64)
    return {one.name: plain_loop(build, start, pool, one, recipe) for one in CLIENTS}


def check_against_plain_loop(build, task, recipe, tolerance=1e-12, **settings):
    """Train as a plain loop with torch's optimizer does, and return the results."""
    trained = list(train(build, task, recipe, **settings))
    for each in trained:
        change, loss = plain_loops(build, task, recipe)[each.client.name]
        assert largest_difference(each.delta, change) < tolerance
        assert each.loss == pytest.approx(loss, abs=1e-12)
    return trained


@pytest.mark.parametrize("engine", ["sequential", "stacked", "auto"])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
@pytest.mark.parametrize("case", ["mlp", "convolutions"])
def test_equals_a_plain_loop_with_the_optimizer_of_torch(case, recipe, engine):
    trained = check_against_plain_loop(*CASES[case], recipe, engine=engine)
    assert [each.client for each in trained] == list(CLIENTS)


def short_head() -> nn.Module:
    """A network that is no plain MLP, so that stacks run it by `vmap`."""
    return nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 3))


@pytest.mark.parametrize("engine", ["sequential", "stacked", "processes"])
@pytest.mark.parametrize("build", [MLP, short_head], ids=["mlp", "vmap"])
@pytest.mark.parametrize("case", FLOAT_LABEL_RECIPES)
def test_tasks_without_classes_equal_a_plain_loop_too(case, build, engine):
    check_against_plain_loop(build, *FLOAT_LABEL_RECIPES[case], engine=engine, workers=2)


@pytest.mark.parametrize("engine", ["sequential", "auto"])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_running_statistics_change_as_in_torch(recipe, engine):
    # A bias before a batch norm has no gradient: without an L2 penalty, Adam's steps there are
    # its rounding, divided by 1e-8.
    tolerance = 1e-7 if recipe.optimizer == "adamw" else 1e-9
    for each in check_against_plain_loop(
        batch_normed, IMAGES, recipe, tolerance, engine=engine
    ):
        assert float(each.delta["5.running_var"].abs().min()) > 0


def test_a_last_batch_of_one_example_joins_the_batch_before_it():
    def of(examples: int, batch: int):
        recipe = Recipe(rate=0.1, epochs=1, batch=batch)
        lone = [ClientTask("client/0", torch.arange(examples))]
        (learned,) = train(batch_normed, IMAGES, recipe, lone)
        return learned.delta

    assert same_bits(of(5, 4), of(5, 5))
    with pytest.raises(PlanError, match="two examples or more"):
        of(1, 4)


def test_a_stack_refuses_a_batch_norm_whose_examples_mix():
    with pytest.raises(PlanError, match="batch norm"):
        list(train(batch_normed, IMAGES, SHORT, engine="stacked"))


def half_frozen() -> nn.Module:
    """A network whose first layer is frozen."""
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    model[0].requires_grad_(False)
    return model


@pytest.mark.parametrize("engine", ["sequential", "stacked", "processes"])
def test_frozen_parameters_stay_and_are_not_sent(engine):
    start, pool = start_of(half_frozen), pool_of(TABLE, torch.float64)
    assert list(start) == ["2.weight", "2.bias"]
    base = fresh_model(half_frozen, Seed(0)).double()[0]
    head = {name.removeprefix("2."): one for name, one in start.items()}
    features = Examples(base(pool.inputs).relu().detach(), pool.labels)
    recipe = RECIPES["sgd"]
    for each in train(half_frozen, engine=engine):
        change, _ = plain_loop(partial(nn.Linear, 4, 3), head, features, each.client, recipe)
        moved = {name.removeprefix("2."): one for name, one in each.delta.items()}
        assert largest_difference(moved, change) < 1e-12


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
@pytest.mark.parametrize("build", [WORDS, READING], ids=["bag", "lstm"])
def test_sparse_steps_equal_dense_steps(build, recipe):
    check_against_plain_loop(build, TEXTS, recipe)


def test_changes_only_word_vectors_of_words_in_the_data():
    pool = pool_of(TEXTS, torch.float64)
    (each,) = train(READING, TEXTS, clients=CLIENTS[1:2])
    moved = each.delta["table.weight"].any(1).nonzero().flatten().tolist()
    # Padding is read too, and stays zero.
    assert moved == sorted(set(pool.inputs[CLIENTS[1].rows].flatten().tolist()) - {0})
    assert len(moved) < 20


def test_separable_convolutions_train_equally_stacked_and_alone():
    # The narrowest: 8 channels all the way.
    build = partial(MobileNet(alpha=0.001).build, IMAGES)
    for engine in ("sequential", "stacked"):
        check_against_plain_loop(build, IMAGES, SHORT, 1e-9, clients=CLIENTS[:2], engine=engine)


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
@pytest.mark.parametrize("case", ["mlp", "convolutions"])
def test_one_step_in_float32_follows_the_exact_gradient(case, engine):
    # One batch and a rate of 1: the change is the gradient, downhill.
    build, task = CASES[case]
    recipe = Recipe(rate=1.0, epochs=1, batch=64)
    exact = start_of(build, torch.float64)
    (each,) = train(build, task, recipe, CLIENTS[2:3], torch.float32, engine=engine)
    gradient, _ = plain_loop(build, exact, pool_of(task, torch.float64), CLIENTS[2], recipe)
    for name, slope in gradient.items():
        assert float((each.delta[name] - slope).norm() / slope.norm()) < 5e-5


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
@pytest.mark.parametrize("case", ["mlp", "convolutions"])
def test_two_runs_give_the_same_bits(case, engine):
    one, other = (
        [each.delta for each in train(*CASES[case], dtype=torch.float32, engine=engine)]
        for _ in range(2)
    )
    assert all(map(same_bits, one, other))


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
def test_a_client_does_not_depend_on_the_others(engine):
    recipe = RECIPES["momentum"]
    together = {each.client.name: each for each in train(MLP, recipe=recipe, engine=engine)}
    (alone,) = train(MLP, recipe=recipe, clients=CLIENTS[3:], engine=engine)
    assert largest_difference(together["client/3"].delta, alone.delta) < 1e-12


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
def test_the_start_is_not_changed(engine):
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)
    before = {name: weight.clone() for name, weight in start.items()}
    list(train_cohort(MLP, start, pool, CLIENTS, RECIPES["adam"], seed=SEED, round=3))
    assert same_bits(start, before)


@given(chunk=st.integers(1, 5), sizes=st.lists(st.integers(1, 13), min_size=1, max_size=5))
@settings(max_examples=15)
def test_results_do_not_depend_on_chunks_or_sizes(chunk, sizes):
    members = [ClientTask(f"client/{n}", torch.arange(size)) for n, size in enumerate(sizes)]
    recipe = Recipe(rate=0.1, epochs=2, batch=4, momentum=0.9, weight_decay=0.1)
    stacked = train(MLP, TABLE, recipe, members, engine="stacked", chunk=chunk)
    alone = train(MLP, TABLE, recipe, members, engine="sequential")
    for one, other in zip(stacked, alone, strict=True):
        assert largest_difference(one.delta, other.delta) < 1e-12


def test_clients_are_trained_lazily():
    # The second member's rows are not in the pool: it would fail if it were trained ahead.
    members = (CLIENTS[0], ClientTask("client/9", torch.tensor([99])))
    trained = train(MLP, clients=members, engine="stacked", chunk=1)
    assert next(trained).client is members[0]
    with pytest.raises(IndexError):
        next(trained)


def dropped_before_last() -> nn.Module:
    """Dropout on the inputs, and before the last layer as a defense adds it."""
    return nn.Sequential(
        nn.Dropout(0.2), nn.Linear(6, 5), nn.Tanh(), DroppedLinear(nn.Linear(5, 3), 0.5)
    )


@pytest.mark.parametrize("recipe", ["sgd", "momentum"])
@pytest.mark.parametrize("build", [dropping, dropped_before_last])
def test_stacked_clients_drop_what_they_drop_alone(build, recipe):
    together = train(build, recipe=RECIPES[recipe], engine="stacked", chunk=3)
    one_by_one = train(build, recipe=RECIPES[recipe], engine="sequential")
    for stacked, alone in zip(together, one_by_one, strict=True):
        assert largest_difference(stacked.delta, alone.delta) < 1e-12
        assert stacked.loss == pytest.approx(alone.loss, abs=1e-12)


def test_dropout_does_not_depend_on_other_clients_or_the_global_generator():
    state = torch.get_rng_state()
    together = list(train(dropping))
    assert torch.equal(torch.get_rng_state(), state)
    (alone,) = train(dropping, clients=CLIENTS[2:3])
    assert largest_difference(together[2].delta, alone.delta) < 1e-12
    (later,) = train(dropping, clients=CLIENTS[2:3], round=4)
    assert largest_difference(later.delta, alone.delta) > 1e-3


def dropping_images() -> nn.Module:
    return nn.Sequential(CONVOLUTIONS(), nn.Dropout(0.5))


class Recurrent(nn.Module):
    """Word vectors, a recurrent layer, and a linear layer on the mean of its states."""

    def __init__(self, kind: type[nn.RNNBase], **settings: object) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4, padding_idx=0)
        self.recurrence = kind(4, 5, **settings)
        self.last = nn.Linear(5 * (2 if self.recurrence.bidirectional else 1), 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        vectors = self.table(tokens)
        if not self.recurrence.batch_first:
            vectors = vectors.transpose(0, 1)
        states, _ = self.recurrence(vectors)
        return self.last(states.mean(1 if self.recurrence.batch_first else 0))


@pytest.mark.parametrize(
    ("build", "task", "recipe", "word"),
    [
        (dropping_images, IMAGES, SHORT, "dropout"),
        (partial(Recurrent, nn.RNN), TEXTS, SHORT, "recurrent layer"),
        (partial(Recurrent, nn.LSTM, proj_size=2), TEXTS, SHORT, "recurrent layer"),
        (
            READING,
            TEXTS,
            replace(SHORT, private_steps=PrivateSteps(1.0, 1.0, 2, "poisson")),
            "dp_sgd",
        ),
    ],
)
def test_refuses_to_stack_what_vmap_cannot_run(build, task, recipe, word):
    with pytest.raises(PlanError, match=rf"{word}.*choose 'auto'"):
        train(build, task, recipe, engine="stacked")


class Looking(nn.Module):
    """Word vectors that no layer holds."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(30, 4))
        self.last = nn.Linear(4, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(functional.embedding(tokens, self.table, padding_idx=0).mean(1))


@pytest.mark.parametrize(
    "build",
    [
        WORDS,
        READING,
        Looking,
        partial(Recurrent, nn.GRU),
        partial(Recurrent, nn.LSTM, num_layers=2, bidirectional=True, batch_first=True),
        partial(Transformer(width=4, depth=1, heads=2).build, TEXTS),
    ],
    ids=["bag", "lstm", "function", "gru", "deep lstm", "transformer"],
)
def test_networks_for_texts_are_stacked(build):
    # The padding of every client is left alone, not only that of the first.
    recipe = replace(RECIPES["sgd"], epochs=1)
    check_against_plain_loop(build, TEXTS, recipe, engine="stacked")


def test_refuses_weights_of_another_model():
    start, pool = start_of(dropping), pool_of(TABLE, torch.float64)
    with pytest.raises(ValueError, match="start weights"):
        list(train_cohort(MLP, start, pool, CLIENTS, SHORT, seed=SEED, round=3))


@pytest.mark.parametrize("wrong", [{"chunk": 0}, {"workers": 0}])
def test_refuses_empty_chunks_and_fewer_than_one_worker(wrong):
    with pytest.raises(ValueError, match="1"):
        train(MLP, **wrong)


@pytest.mark.slow
def test_auto_trains_in_this_process_if_the_model_cannot_be_sent():
    def local() -> nn.Module:
        return CONVOLUTIONS()

    trained = list(train(local, IMAGES, workers=2))
    assert [each.client for each in trained] == list(CLIENTS)


@pytest.mark.skipif(not are_supported(), reason="no workers on this system")
@pytest.mark.parametrize(
    ("build", "gains"), [(CONVOLUTIONS, True), (WORDS, False), (READING, True)]
)
def test_processes_train_embeddings_only_in_recurrent_networks(build, gains):
    assert _may_gain_from_processes(build(), torch.device("cpu"), 2) == gains
    assert not _may_gain_from_processes(build(), torch.device("cpu"), 1)


def group_of(build, pool, members, number):
    """A group with start weights that depend on its number."""
    start = {name: weight + 0.1 * number for name, weight in start_of(build).items()}
    return TrainingGroup(start, pool, members, Seed(number))


@pytest.mark.parametrize("shares_pool", [True, False], ids=["one pool", "own pools"])
@pytest.mark.parametrize("engine", ["sequential", "stacked", "auto"])
@pytest.mark.parametrize("recipe", ["momentum", "adam"])
@pytest.mark.parametrize("case", ["mlp", "convolutions"])
def test_a_group_trains_equally_alone_and_with_others(case, recipe, engine, shares_pool):
    build, task = CASES[case]
    pools = [pool_of(task, torch.float64, examples) for examples in (30, 31, 32)]
    # Groups of one name and another number of examples, of all names, and of nobody.
    groups = [
        group_of(build, pools[0 if shares_pool else number], members, number)
        for number, members in enumerate([CLIENTS[2:3], CLIENTS, ()])
    ]
    together = train_groups(build, groups, RECIPES[recipe], round=3, engine=engine, chunk=3)
    for group in groups:
        for member in group.clients:
            each = next(together)
            (alone,) = train_cohort(
                build,
                group.start,
                group.pool,
                [member],
                RECIPES[recipe],
                seed=group.seed,
                round=3,
                engine="sequential",
            )
            assert each.client is member
            assert largest_difference(each.delta, alone.delta) < 1e-12
            assert each.loss == pytest.approx(alone.loss, abs=1e-12)
    assert next(together, None) is None


@given(
    chunk=st.integers(1, 7),
    sizes=st.lists(st.lists(st.integers(1, 9), max_size=3), max_size=4),
)
@settings(max_examples=15)
def test_results_of_groups_do_not_depend_on_chunks_or_sizes(chunk, sizes):
    pool = pool_of(TABLE, torch.float64)
    groups = [
        group_of(
            MLP,
            pool,
            [ClientTask(f"client/{n}", torch.arange(size)) for n, size in enumerate(own)],
            number,
        )
        for number, own in enumerate(sizes)
    ]
    train = partial(train_groups, MLP, groups, RECIPES["momentum"], round=0)
    stacked = train(engine="stacked", chunk=chunk)
    for one, other in zip(stacked, train(engine="sequential"), strict=True):
        assert one.client is other.client
        assert largest_difference(one.delta, other.delta) < 1e-12


@pytest.mark.parametrize("engine", ["sequential", "auto", "processes"])
def test_counters_that_are_not_sent_start_anew_in_each_group(engine):
    start, pool = start_of(batch_normed), pool_of(IMAGES, torch.float64)
    groups = [TrainingGroup(start, pool, CLIENTS[:1], SEED)] * 2
    first, second = train_groups(
        batch_normed, groups, RECIPES["sgd"], round=3, engine=engine, workers=2
    )
    assert largest_difference(first.delta, second.delta) == 0


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
def test_clients_with_one_name_draw_from_the_seeds_of_their_groups(engine):
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)
    groups = [TrainingGroup(start, pool, CLIENTS[:1], seed) for seed in (SEED, Seed(6), SEED)]
    first, other, same = train_groups(MLP, groups, RECIPES["sgd"], round=3, engine=engine)
    assert largest_difference(first.delta, other.delta) > 1e-6
    assert largest_difference(first.delta, same.delta) < 1e-12


def test_refuses_groups_with_different_dtypes():
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)
    single = {name: weight.float() for name, weight in start.items()}
    groups = [TrainingGroup(each, pool, CLIENTS[:1], SEED) for each in (start, single)]
    with pytest.raises(ValueError, match="start weights of one dtype"):
        list(train_groups(MLP, groups, RECIPES["sgd"], round=0, engine="stacked"))


def test_no_groups_have_no_results():
    for build, _ in CASES.values():
        assert not list(train_groups(build, [], RECIPES["sgd"], round=0))


@cache
def _mask() -> torch.Tensor:
    return torch.ones(4)


class Masked(nn.Linear):
    """A layer that keeps a tensor for all later models."""

    def __init__(self) -> None:
        super().__init__(4, 2)
        self.mask = _mask()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().forward(inputs * self.mask)


def test_a_model_that_keeps_tensors_for_later_ones_can_train_after_workers_are_prepared(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(starter, "start_for", lambda workers: None)
    _mask.cache_clear()
    prepare_workers(Masked, "auto", 1, "cpu")
    assert fresh_model(Masked, Seed(1))(torch.ones(3, 4)).shape == (3, 2)
