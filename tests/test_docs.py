"""Examples in the documentation are valid and run."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from overheard.core.defense import DefenseContext
from overheard.core.messages import Update
from overheard.core.needs import RECIPES
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.gate.policy import Policy, read_policy
from overheard.plans.plan import parse_plan, read_plan
from overheard.plans.strict_model import parse_toml
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.testing.planted_labels import SKEWED, simulate_one_round
from website.generated_pages import generated_pages

ROOT = Path(__file__).parent.parent
POLICY = ROOT / "plans" / "policy.toml"
PLANS = sorted(set((ROOT / "plans").glob("*.toml")) - {POLICY})


def block(page: str, language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return match[1]


def test_the_plan_of_the_readme_is_valid():
    plan = parse_plan(block("README.md", "toml"), "README.md")
    assert [arm.name for arm in plan.arms] == ["no defense", "local DP"]


def test_there_are_four_example_plans():
    names = ["algorithms.toml", "defenses.toml", "identity.toml", "shift.toml"]
    assert [path.name for path in PLANS] == names


def test_the_example_policy_names_arms_of_its_plan():
    policy, plan = read_policy(POLICY), read_plan(ROOT / "plans" / "defenses.toml")
    arms = {arm.name for arm in plan.arms}
    rules = (*policy.leaks, *policy.epsilons, *policy.costs)
    assert all(set(rule.arms) <= arms for rule in rules if rule.arms is not None)
    assert "plans/defenses.toml" in POLICY.read_text()


@pytest.mark.parametrize("page", ["check.md", "pipelines.md"])
def test_every_policy_in_the_docs_is_valid(page: str):
    text = (ROOT / "docs" / page).read_text()
    policies = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(policies) > 1
    for policy in policies:
        parse_toml(Policy, policy, page, "policy", has_dates=True)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_every_example_plan_is_equal_after_writing_and_parsing(path: Path):
    plan = read_plan(path)
    assert parse_plan(plan.toml(), "as resolved") == plan
    assert not plan.arms[0].defenses
    assert len(plan.arms) > 1


def test_the_shift_plan_has_a_weight_per_label_and_shifts_when_data_are_refreshed():
    data = read_plan(ROOT / "plans" / "shift.toml").data
    (shift,) = data.shifts
    assert len(shift.weights) == 10
    assert shift.round % data.refresh_every == 0


def test_the_identity_plan_has_pseudonyms_and_one_adaptive_attacker():
    plan = read_plan(ROOT / "plans" / "identity.toml")
    assert plan.data.people is not None
    assert plan.data.background is not None
    assert {threat.pseudonyms for threat in plan.threats} == {"round", "run"}
    assert [("defenses" in threat.knows) for threat in plan.threats] == [False, True, False]


def test_the_example_attack_beats_the_uninformed_guess():
    namespace: dict[str, object] = {"__name__": "example"}
    exec(
        compile(block("docs/add-an-attack.md", "python"), "add-an-attack.md", "exec"), namespace
    )
    run, scorer = simulate_one_round(SKEWED), LabelSharesScorer()
    attack = namespace["RisingBias"]()
    claims = attack.infer(run.transcript.seen_by(SERVER), [client(0)], run.knowledge, Seed(0))
    truth = scorer.true_claim(run.truth, client(0), (0,), claims[client(0)])
    l1 = scorer.score(claims[client(0)], truth, scorer.guesses(truth, run.knowledge))[0]
    assert l1.gain > 0.1


def test_every_linked_page_exists():
    generated = generated_pages()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            is_generated = page.parent.name == "docs" and link in generated
            assert is_generated or (page.parent / link).exists(), f"{page.name} links to {link}"


def fenced(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", [*GUIDES, "README.md"])
def test_every_block_of_python_and_toml_can_be_read(page: str):
    for code in fenced(page, "python"):
        if ">>> " not in code:
            # A decorator alone stands for one of a function.
            ast.parse(
                code if not code.rstrip().endswith("])") else f"{code}def function(): ..."
            )
    for table in fenced(page, "toml"):
        tomllib.loads(table)


def test_the_plan_for_a_recording_is_valid():
    plan, accept = fenced("docs/plan-for-a-recording.md", "toml")
    parsed = parse_plan(f"{plan}\n{accept}", "plan-for-a-recording.md")
    assert parsed.data.split is None
    assert parsed.recording.accept is not None
    assert [threat.observers for threat in parsed.threats] == [("server",), ("client/0",)]


def test_the_example_of_virtual_clients_has_an_attack_that_can_run_and_trains_them():
    tables = fenced("docs/threat-models.md", "toml")
    (example,) = [one for one in tables if "[[threats]]" in one and "[threats.virtual]" in one]
    plan = (ROOT / "plans" / "defenses.toml").read_text().partition("[[threats]]")[0]
    (whole,) = parse_plan(plan + example, "threat-models.md").threats
    for attack in whole.attacks:
        assert attack.training_source() == "virtual clients"
        assert RECIPES in attack.needs
    assert "recipe" not in whole.knows
    assert whole.virtual.prior.recipes


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_examples_for_researchers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in fenced("docs/researcher.md", "python"):
        exec(compile(code, "researcher.md", "exec"), names)
    table = names["table"]
    attacks = set(table["attack"])
    # One row for each alpha and attack: single rounds are not mixed with all rounds.
    assert len(table) == 2 * len(attacks)
    assert set(table["alpha"]) == {0.1, 10.0}
    assert len(names["frame"]) > 0
    assert (tmp_path / "sweep" / "alpha-0.1" / "plan.toml").exists()


def test_custom_data_model_and_defense_of_the_docs_work():
    names: dict[str, Any] = {"__name__": "example"}
    for code in fenced("docs/bring-your-own.md", "python"):
        exec(compile(code, "bring-your-own.md", "exec"), names)
    data = names["cases"]()
    model = names["build"](data.task)
    assert model(data.train.inputs[:3]).shape == (3, 2)
    assert not list(model.buffers())
    update = Update({"weight": torch.tensor([0.5, -2.0, 0.0])}, examples=3)
    context = DefenseContext(0, client(0), Seed(0))
    sent = names["SignOnly"](length=0.1).on_update(update, context)
    assert sent.delta["weight"].tolist() == pytest.approx([0.1, -0.1, 0.0])
    assert sent.examples == 3
