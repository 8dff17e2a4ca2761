"""What the documentation shows runs as it stands there."""

import re
from pathlib import Path

from overheard.audit.plan import parse_plan
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.scoring.label_shares import LabelSharesScorer
from tests.attacks.planted import SKEWED, federate

ROOT = Path(__file__).parent.parent


def block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_plan_of_the_readme_is_a_plan():
    plan = parse_plan(block("README.md", "toml"), "README.md")
    assert [arm.name for arm in plan.arms] == ["no defense", "local DP"]


def test_the_example_attack_beats_a_blind_guess():
    home: dict[str, object] = {"__name__": "example"}
    exec(compile(block("docs/add-an-attack.md", "python"), "add-an-attack.md", "exec"), home)
    run, scorer = federate(SKEWED), LabelSharesScorer()
    attack = home["RisingBias"]()
    claims = attack.infer(run.transcript.seen_by(SERVER), [client(0)], run.knowledge, Seed(0))
    truth = scorer.truth(run.truth, client(0), (0,))
    l1 = scorer.score(claims[client(0)], truth, scorer.guesses(truth, run.knowledge))[0]
    assert l1.gain > 0.1


def test_every_page_that_is_linked_is_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
