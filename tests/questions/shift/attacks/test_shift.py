"""The shift paper's attack, on two weights worked by hand and on digits."""

from dataclasses import replace
from math import nan, sqrt

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.shift.attacks.shift import ShiftTrend, model_change_series
from tests.runs.two_clients import KNOWLEDGE, SHIFT_ROUND, simulate_client_view

ONE = client(0)
SOON = (SHIFT_ROUND, SHIFT_ROUND + 1)
BLANK = Knowledge(2)


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2))


def view_of_models(*models, silent=()) -> View:
    """Build a view of one client whose only layer has these two weights by round."""
    start = {"0.weight": torch.zeros(2), "1.weight": torch.ones(1)}
    said = []
    for number, model in enumerate(models):
        said.append(Message(number, SERVER, frozenset({ONE}), Broadcast(start)))
        if number not in silent:
            delta = {"0.weight": torch.tensor(model), "1.weight": torch.zeros(1)}
            said.append(Message(number, ONE, frozenset({SERVER}), Update(delta, 5)))
    return View(frozenset({SERVER}), tuple(said))


def statistic_of(attack, view, target=COHORT, knowledge=KNOWLEDGE):
    evidence = attack.infer(view, [target], knowledge, Seed(0))[target].evidence
    return dict(zip(evidence.rounds, evidence.statistic, strict=True)), evidence


class TestSeries:
    def test_of_weights_compares_each_round_with_the_one_before(self):
        # Angles of 90 and 45 degrees.
        view = view_of_models([1.0, 0.0], [0.0, 2.0], [3.0, 3.0])
        cosines = model_change_series(view, ONE, BLANK, information="weights", layer="0")
        assert cosines == pytest.approx({1: 0, 2: sqrt(0.5)})

    def test_of_gradients_starts_a_round_later(self):
        # Steps (1, 0), (2, 0), (0, 1): parallel, then at right angles.
        view = view_of_models([0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [3.0, 1.0])
        assert model_change_series(view, ONE, BLANK) == pytest.approx({2: 1, 3: 0})

    def test_of_gradients_with_procrustes_and_cmd(self):
        view = view_of_models([0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [3.0, 1.0])
        distances = model_change_series(view, ONE, BLANK, metric="procrustes")
        assert distances == pytest.approx({2: 0, 3: sqrt(2)})
        # Entries of the first layer are -(1, 0), -(2, 0), -(0, 1): means 1/2, 1, 1/2, and
        # around them +-1/2, +-1, +-1/2, so |1/2| + |1/4 - 1| + |1/16 - 1| = 2.1875, twice.
        moments = model_change_series(view, ONE, BLANK, metric="cmd", layer="0")
        assert moments == pytest.approx({2: 2.1875, 3: 2.1875})

    def test_of_the_whole_network_concatenates_all_layers(self):
        # With the other layer's weight 1: (1, 0, 1) and (0, 2, 1).
        view = view_of_models([1.0, 0.0], [0.0, 2.0])
        cosines = model_change_series(view, ONE, BLANK, information="weights")
        assert cosines == pytest.approx({1: 1 / sqrt(2 * 5)})

    def test_does_not_compare_over_a_gap(self):
        models = [[float(number), 1.0] for number in range(7)]
        view = view_of_models(*models, silent={3})
        assert model_change_series(view, ONE, BLANK, information="weights").keys() == {
            1,
            2,
            5,
            6,
        }
        assert model_change_series(view, ONE, BLANK).keys() == {2, 6}

    def test_omits_comparisons_with_nan(self):
        models = [[float(number), 1.0] for number in range(7)]
        models[3] = [nan, 1.0]
        values = model_change_series(view_of_models(*models), ONE, BLANK, information="weights")
        assert values.keys() == {1, 2, 5, 6}

    def test_of_representations_depends_only_on_the_given_examples(self):
        # The second weight changes, but no given example uses it, so nothing changes.
        view = layered([[1.0, 0.0], [1.0, 7.0]])
        shown = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 9.0]])
        knowledge = Knowledge(2, build, Examples(shown, torch.tensor([0, 1, 1])))
        few, more = (
            model_change_series(
                view, ONE, knowledge, information="representations", layer="0", probe=count
            )
            for count in (1, 3)
        )
        assert few == pytest.approx({1: 1})
        assert more[1] < 0.5

    def test_of_representations_of_all_layers_includes_each(self):
        view = layered([[1.0, 0.0], [-1.0, 0.0]])
        shown = Examples(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
        knowledge = Knowledge(2, build, shown)
        by_layer = {
            layer: model_change_series(
                view, ONE, knowledge, information="representations", layer=layer
            )
            for layer in (None, "0", "1", "2")
        }
        # An example gives 1 and 0, the same after ReLU, and finally 1; then -1, 0 after ReLU,
        # and 1. So (1, 1, 1) against (-1, 0, 1): 0. After ReLU 1 against 0: 0.
        assert by_layer["0"] == pytest.approx({1: -1})
        assert by_layer["1"] == by_layer[None] == pytest.approx({1: 0})
        assert by_layer["2"] == pytest.approx({1: 1})


def layered(rows) -> View:
    """Build a view of one client of `build` whose first unit has these weights by round."""
    start = {
        "0.weight": torch.zeros(2, 2),
        "2.weight": torch.zeros(2, 2),
        "2.bias": torch.tensor([1.0, 0.0]),
    }
    said = []
    for number, row in enumerate(rows):
        delta = {name: torch.zeros_like(weight) for name, weight in start.items()}
        delta["0.weight"] = torch.tensor([row, [0.0, 0.0]])
        said.append(Message(number, SERVER, frozenset({ONE}), Broadcast(start)))
        said.append(Message(number, ONE, frozenset({SERVER}), Update(delta, 5)))
    return View(frozenset({SERVER}), tuple(said))


class TestClaim:
    def test_finds_the_round_of_a_change_of_direction(self):
        # Steps of (1, 0) up to round 6, of (0, 1) from round 7: the cosine is 0 at 7 only. The
        # line through (1, 1) is at 1, and through (1, 0) and (0, 1) at -1 and 2.
        models = [[float(n), 0.0] for n in range(7)] + [[6.0, float(n)] for n in range(1, 4)]
        statistic, evidence = statistic_of(
            ShiftTrend(trend=2), view_of_models(*models), ONE, BLANK
        )
        assert statistic == pytest.approx({4: 0, 5: 0, 6: 0, 7: 1, 8: 2, 9: 1})
        assert evidence.alarm is None
        assert evidence.false_alarm_rate is None
        statistic, evidence = statistic_of(
            ShiftTrend(trend=4), view_of_models(*models), ONE, BLANK
        )
        # Through (1, 1, 1, 0) the line is at 0, through (1, 1, 0, 1) at 1/2.
        assert statistic == pytest.approx({6: 0, 7: 1, 8: 1, 9: 0.5}, abs=1e-9)
        assert evidence.since == 7

    def test_refuses_rounds_with_too_many_gaps(self):
        models = [[float(number), 1.0] for number in range(14)]
        view = view_of_models(*models, silent={4, 9})
        with pytest.raises(
            NeedsError, match=r"shift on client/0 needs 8 .* 12 rounds, at most 4 consecutive"
        ):
            statistic_of(ShiftTrend(), view, ONE, BLANK)

    def test_names_the_rounds_with_nan_weights(self):
        models = [[float(number), 1.0] for number in range(9)]
        models[4] = [nan, 1.0]
        with pytest.raises(NeedsError, match=r"not finite around rounds 4, 5, 6$"):
            statistic_of(ShiftTrend(), view_of_models(*models), ONE, BLANK)

    @pytest.mark.parametrize("information", ["weights", "representations"])
    def test_refuses_an_unknown_layer_and_lists_the_layers(self, information):
        attack = ShiftTrend(information=information, layer="9")
        with pytest.raises(NeedsError, match=r"layer='9'.*choose one of .*'1'.*'3'"):
            statistic_of(attack, simulate_client_view(None, 0))

    def test_from_representations_needs_every_class_and_the_architecture(self):
        attack, view = ShiftTrend(information="representations"), simulate_client_view(None, 0)
        auxiliary = KNOWLEDGE.auxiliary
        lacking = replace(KNOWLEDGE, auxiliary=auxiliary.take(auxiliary.labels != 3))
        with pytest.raises(NeedsError, match="auxiliary examples of every class"):
            statistic_of(attack, view, knowledge=lacking)
        with pytest.raises(NeedsError, match="the architecture"):
            statistic_of(attack, view, knowledge=replace(KNOWLEDGE, build_model=None))
        # The other kinds of information need only messages.
        assert statistic_of(ShiftTrend(), view, knowledge=lacking)[0]
        assert statistic_of(ShiftTrend(), view, knowledge=Knowledge(10))[0]

    def test_does_not_depend_on_how_classes_are_numbered(self):
        attack = ShiftTrend(information="representations", probe=37)
        auxiliary = KNOWLEDGE.auxiliary
        other = Examples(auxiliary.inputs, (auxiliary.labels + 3) % 10)
        view = simulate_client_view(None, 0)
        assert (
            statistic_of(attack, view)[0]
            == statistic_of(attack, view, knowledge=replace(KNOWLEDGE, auxiliary=other))[0]
        )


CLEAR = [
    ShiftTrend(information="weights"),
    ShiftTrend(information="weights", metric="procrustes"),
    ShiftTrend(),
    ShiftTrend(metric="procrustes"),
    ShiftTrend(information="representations", metric="cosine"),
    ShiftTrend(information="representations", metric="procrustes"),
    ShiftTrend(information="representations", metric="cmd"),
    ShiftTrend(information="weights", layer="3"),
    ShiftTrend(information="representations", layer="1"),
    ShiftTrend(standardise=True),
    ShiftTrend(extract=False),
]


@pytest.mark.parametrize("attack", CLEAR, ids=repr)
class TestOnDigits:
    def test_a_strong_shift_of_the_rival_is_the_largest_break(self, attack):
        for seed in range(2):
            _, evidence = statistic_of(attack, simulate_client_view(0.9, seed))
            assert evidence.since in SOON

    def test_an_unchanged_rival_has_no_break_in_that_round(self, attack):
        for seed in range(2):
            quiet, evidence = statistic_of(attack, simulate_client_view(None, seed))
            loud, _ = statistic_of(attack, simulate_client_view(0.9, seed))
            assert evidence.since not in SOON
            assert max(loud[n] for n in SOON) > 5 * max(quiet[n] for n in SOON)


def test_gradients_do_not_distinguish_a_shift_from_an_exchange():
    # As the docstring warns, new examples of the same kind break the trend as well.
    for seed in range(2):
        statistic, evidence = statistic_of(ShiftTrend(), simulate_client_view(0.5, seed))
        assert evidence.since in SOON
        assert statistic[SHIFT_ROUND] > 10 * statistic[SHIFT_ROUND - 1]


def test_extraction_strengthens_the_evidence_of_the_rivals_shift():
    # Half of the global model is the observer's own part, which did not shift.
    for seed in range(2):
        view = simulate_client_view(0.9, seed)
        extracted, plain = (
            statistic_of(ShiftTrend(information="weights", extract=extract), view)[0][
                SHIFT_ROUND
            ]
            for extract in (True, False)
        )
        assert extracted > 1.5 * plain
