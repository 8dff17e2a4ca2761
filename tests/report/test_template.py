"""Templates escape every name, and their policy allows exactly their own style and script."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from overheard.report.template import load_template
from overheard_studies.pages.experiment_page import ExperimentPage


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("page.html.j2", "overheard.report"),
        ("experiment_page.html.j2", "overheard_studies.pages"),
    ],
)
def test_every_page_escapes_its_variables(name: str, package: str) -> None:
    assert load_template(name, package).environment.autoescape is True


def test_the_policy_allows_the_style_and_the_script_and_nothing_else() -> None:
    html = ExperimentPage("n", "t", "d", (), (), (), (), False).html()
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = [
        b64encode(sha256(text.encode()).digest()).decode("ascii") for text in (style, script)
    ]
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; "
        f"script-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("word", ["innerHTML", "outerHTML", "insertAdjacent", "eval", "fetch"])
def test_the_script_makes_no_markup_and_fetches_nothing(word: str) -> None:
    script = load_template("page.html.j2").globals["script"]
    assert word not in str(script)
    assert len(str(script).splitlines()) <= 200
