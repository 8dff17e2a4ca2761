"""The question which words a client used, in whole audits."""

from dataclasses import replace
from math import factorial
from pathlib import Path

import pytest
import torch

import overheard
from overheard.auditing.folder import AuditFolder
from overheard.core.examples import Examples
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth, Partition
from overheard.findings.planned_sizes import PlannedSizes
from overheard.questions.words.checks import OWN_WORDS, simulate_words
from overheard.questions.words.claim import Words
from overheard.questions.words.question import MOST_COMPARED, WordsQuestion, re_pair_words
from overheard.questions.words.statistics.other_clients import mean_against_others
from overheard.statistics.permutation_test import adjusted_p_values
from tests.questions.words.findings import CLIENTS, about, finding, leaking, silent

ANIMALS = ("bat", "cat", "cow", "dog", "elk", "emu", "fox", "gnu", "hen", "owl", "pig", "yak")

PLAN = """
title = "Notes"
seeds = [0, 1, 2]
[data]
source = {{ kind = "own", reference = "{file}", text = "note", user = "ward" }}
split = "by_user"
clients = 6
examples = 8
test = 4
[training]
model = {{ kind = "text_bag", dim = 8, hidden = 32 }}
rounds = 1
rate = 0.5
batch = 4
[[arms]]
name = "none"
[[arms]]
name = "noise"
defenses = [{{ kind = "noise", deviation = 10.0 }}]
[[threats]]
attacks = ["embedding_rows", "output_rows"]
by_round = false
"""


def write_notes(path: Path) -> None:
    """Six wards with two animals each, in every note."""
    lines = ["note,label,ward"]
    for ward in range(6):
        own = ANIMALS[2 * ward : 2 * ward + 2]
        for number in range(24):
            words = f"the patient saw {own[0]} and {own[1]}"
            lines.append(f"{words},{'ill' if number % 2 else 'well'},w{ward}")
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.slow
def test_words_of_wards_leak_and_noise_hides_them(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.csv")
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(file=(tmp_path / "notes.csv").as_posix()), encoding="utf-8")
    audit = overheard.audit(overheard.read_plan(plan), tmp_path / "audit")
    of_arm = {arm.name: arm.threat_results[0] for arm in audit.arm_results}
    assert of_arm["none"].verdict == "leaks"
    assert of_arm["none"].attack_results[0].headline_row.value.mean == pytest.approx(1)
    assert of_arm["noise"].verdict != "leaks"
    reasons = {" ".join(one.missing) for one in audit.refusals}
    assert any("the labels of this task are no words" in one for one in reasons)
    names = {name for one in audit.findings for name in one.claimed.candidates}
    assert names == {*ANIMALS, "the", "patient", "saw", "and"}

    # A recording states label counts and no texts: its claims are those, and unchecked.
    recording = AuditFolder(tmp_path / "audit").run_path("none", 0)
    recorded = overheard.read_plan(plan).model_copy(update={"seeds": (0,)})
    again = overheard.audit(recorded, tmp_path / "again", recording=recording)
    assert again.arm_results[0].threat_results[0].verdict == "unchecked"
    assert {one.is_checked for one in again.findings} == {False}
    simulated = {
        one.target: one.claimed
        for one in audit.findings
        if (one.cell.arm, one.cell.seed, one.cell.part) == ("none", 0, "embedding_rows")
    }
    found = {one.target: one.claimed for one in again.findings}
    assert found == simulated
    assert len(found) == 6


def test_fits_are_those_of_the_target_and_then_of_every_client():
    run, question = simulate_words(is_leaking=True), WordsQuestion()
    attack, view = overheard.EmbeddingRows(), run.transcript.seen_by(SERVER)
    claims = attack.infer(view, run.targets, run.knowledge, overheard.Seed(0))
    fits = question.redrawn_fits(claims[run.targets[2]], run.truth, run.targets[2], (0,))
    assert len(fits) == 1 + len(run.targets)
    assert fits[0] == fits[3] == max(fits)
    assert fits[0] > 0.9
    assert question.redrawn_fits(claims[run.targets[2]], run.truth, COHORT, (0,)) == ()


def test_words_of_all_clients_together_are_found_in_the_aggregate():
    run = simulate_words(is_leaking=True)
    view = run.transcript.seen_by(SERVER)
    claim = overheard.EmbeddingRows().infer(view, [COHORT], run.knowledge, overheard.Seed(0))
    true = WordsQuestion().scorer.true_claim(run.truth, COHORT, (0,), claim[COHORT])
    used = true.scores > 0
    assert used.sum() == 4 * OWN_WORDS
    assert claim[COHORT].scores[used].min() > claim[COHORT].scores[~used].max()


def test_a_claim_is_not_compared_with_hundreds_of_clients():
    pool = Examples(torch.tensor([[2, 3]]), torch.tensor([0]))
    words = TokenWords(4, 2)
    claim = Words(torch.tensor([1.0, 0.0]), words.names())
    for count, fits in ((MOST_COMPARED, MOST_COMPARED + 1), (MOST_COMPARED + 1, 0)):
        rows = {(0, client(number)): torch.tensor([0]) for number in range(count)}
        truth = GroundTruth(partition=Partition(pool, rows, words))
        assert len(WordsQuestion().redrawn_fits(claim, truth, client(0), (0,))) == fits


def test_claims_about_all_clients_together_have_no_pairings():
    question = WordsQuestion()
    assert question.count_planned_pairings(PlannedSizes(3, 5, 2, about="cohort")) == 1
    assert question.count_planned_pairings(PlannedSizes(3, 5, 2)) == 120


def test_true_pairing_fits_best_where_claims_leak():
    fits = re_pair_words(leaking(), Seed(0))
    assert fits.why_none == ""
    # Own less the mean of the run, (0.9 + 5 x 0.1) / 6, for each of six clients in two runs.
    assert fits.fits[0] == pytest.approx(12 * 2 / 3)
    assert fits.fits[0, 0] == fits.fits.max()
    assert fits.smallest_p_value == pytest.approx(1 / factorial(CLIENTS))
    assert adjusted_p_values(fits.fits)[0] == pytest.approx(1 / factorial(CLIENTS))


def test_all_pairings_fit_alike_where_claims_say_nothing_of_their_client():
    fits = re_pair_words(silent(), Seed(0))
    assert fits.fits == pytest.approx(0)
    # All clients use the same words as far as claims can tell.
    assert fits.smallest_p_value == 1


def test_pseudonyms_of_one_client_are_permuted_together():
    # Client 0 has the targets 0 and 1, client 1 the next two, client 2 the last.
    found = [
        replace(one, client=f"client/{number // 2}")
        for number, one in enumerate(leaking()[:CLIENTS])
    ]
    fits = re_pair_words(found, Seed(0))
    assert len(fits.fits) == factorial(3)
    assert fits.smallest_p_value == pytest.approx(1 / factorial(3))


def test_users_are_permuted_alike_in_all_runs():
    # User u0 is client 0 in the first run and client 1 in the second.
    found = [
        finding(
            seed,
            number,
            [0.9 if other == number else 0.1 for other in range(CLIENTS)],
            user=f"u{(number + seed) % CLIENTS}",
        )
        for seed in (0, 1)
        for number in range(CLIENTS)
    ]
    fits = re_pair_words(found, Seed(0))
    assert len(fits.fits) == factorial(CLIENTS)
    assert fits.fits[0, 0] == fits.fits.max()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "no claim was checked"),
        ([replace(leaking()[0], true=None)], "no claim was checked"),
        ([about(leaking()[0], COHORT)], "a claim about all clients together"),
        (leaking()[:3], "some clients have no claim"),
        ([replace(one, fits=()) for one in leaking()], "some clients have no claim"),
    ],
)
def test_states_why_there_is_no_test(found, why):
    assert re_pair_words(found, Seed(0)).why_none.startswith(why)


def test_mean_against_others_leaves_out_the_own_client():
    assert mean_against_others(leaking()) == pytest.approx(0.1)
    assert mean_against_others([replace(leaking()[0], fits=())]) is None


def test_order_of_clients_is_by_number():
    # With 11 clients, client/10 is the last column and not the third.
    numbers = range(11)
    found = [
        finding(0, number, [1.0 if other == number else 0.0 for other in numbers])
        for number in numbers
    ]
    assert found[10].target == client(10)
    fits = re_pair_words(found, Seed(0))
    assert fits.fits[0, 0] == fits.fits.max() == pytest.approx(11 * (1 - 1 / 11))
