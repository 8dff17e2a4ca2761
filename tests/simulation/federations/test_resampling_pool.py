import numpy as np
import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.federations.resampling_pool import (
    MIN_COPIES_PER_CLASS,
    build_resampling_pool,
)

EXAMPLES = Examples(torch.arange(12.0).reshape(6, 2) * 100, torch.tensor([0, 0, 0, 0, 1, 1]))
POOL = build_resampling_pool(EXAMPLES, 50, Seed(0))


def test_every_class_has_enough_copies_and_each_original_its_own() -> None:
    assert POOL.examples.label_counts(2).tolist() == [MIN_COPIES_PER_CLASS] * 2
    rows = np.concatenate(POOL.copies)
    assert sorted(rows.tolist()) == list(range(2 * MIN_COPIES_PER_CLASS))
    for original, copies in enumerate(POOL.copies):
        assert copies[0] == original
        assert set(POOL.examples.labels[copies].tolist()) == {int(EXAMPLES.labels[original])}


def test_many_originals_are_not_altered_and_rare_classes_are() -> None:
    labels = (torch.arange(300) < 30).long()
    examples = Examples(torch.rand(300, 2), labels)
    few, many = (build_resampling_pool(examples, size, Seed(0)) for size in (101, 100))
    # 300 originals are enough for clients of 100 examples, and too few for 101.
    assert few.examples.label_counts(2).tolist() == [1200, 1200]
    assert many.examples.label_counts(2).tolist() == [270, MIN_COPIES_PER_CLASS]
    assert all(
        (len(copies) == 1) == (not label)
        for copies, label in zip(many.copies, labels.tolist(), strict=True)
    )


def test_a_population_is_a_bootstrap_within_each_label() -> None:
    generator = np.random.default_rng(0)
    populations = [POOL.draw_population(generator) for _ in range(200)]
    assert all(len(one.originals[0]) == 4 for one in populations)
    assert all(set(one.originals[1]) <= {4, 5} for one in populations)
    # One of two originals is missing in half of the draws.
    missing = np.mean([len(set(one.originals[1])) == 1 for one in populations])
    assert missing == pytest.approx(0.5, abs=0.12)


def test_a_chunk_is_a_multinomial_draw_of_the_population() -> None:
    generator = np.random.default_rng(1)
    population = POOL.draw_population(generator)
    counts = []
    for _ in range(200):
        rows = population.draw_chunk(50, np.array([0.2, 0.8]), generator)
        assert len(rows) == 50
        counts.append(int((POOL.examples.labels[rows] == 0).sum()))
    assert np.mean(counts) == pytest.approx(10, abs=1)
    assert np.std(counts) == pytest.approx((50 * 0.2 * 0.8) ** 0.5, rel=0.2)
    allowed = np.concatenate([POOL.copies[one] for one in population.originals[0]])
    zeros = rows[POOL.examples.labels[rows] == 0]
    assert set(zeros.tolist()) <= set(allowed.tolist())


def test_distinct_examples_are_all_originals_before_any_is_altered() -> None:
    population = POOL.draw_population(np.random.default_rng(2))
    held, shares = population.originals[0], np.array([1.0, 0.0])
    originals, generator = len(set(held.tolist())), np.random.default_rng(3)
    few = population.draw_chunk(len(held), shares, generator, distinct=True).tolist()
    # Each original once, and a copy for each repeat of the bootstrap.
    assert sorted(set(few) & {0, 1, 2, 3}) == sorted(set(held.tolist()))
    many = population.draw_chunk(3 * len(held), shares, generator, distinct=True).tolist()
    assert sum(row < len(EXAMPLES) for row in many) < len(many) - originals
    origin = {row: k for k, copies in enumerate(POOL.copies) for row in copies.tolist()}
    drawn = np.bincount([origin[row] for row in many], minlength=4)[:4]
    assert drawn.tolist() == (3 * np.bincount(held, minlength=4)[:4]).tolist()
