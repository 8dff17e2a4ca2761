"""The GitHub Action and the GitLab job end as `overheard check` does.

Most tests run them with a stub of the command, since the command takes seconds to start.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gate.documents import document, summary_row, write_document

ROOT = Path(__file__).parent.parent

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "integrations/github/action.yml").read_text())

GITLAB: dict[str, Any] = yaml.safe_load(
    (ROOT / "integrations/gitlab/overheard.gitlab-ci.yml").read_text()
)

POLICY = """[[leaks]]
name = "records"
question = "membership"
score = "membership_auc"
no_better_than = 0.6
"""

REAL = f"""#!/bin/sh
exec {sys.executable} -c "import overheard.cli.main as m; m.main()" "$@"
"""

STUB = """#!/bin/sh
printf '%s\\n' "$@" > told
if [ ! -f findings.json ]; then echo "no such regular file" >&2; exit 2; fi
while [ $# -gt 0 ]; do
  case "$1" in --sarif|--junit|--markdown) echo "## Overheard" > "$2" ;; esac
  shift
done
exit "$(cat findings.json)"
"""
"""Writes its arguments to the file `told`, and ends with the code in findings.json."""

CASES = [("pass", 0), ("fail", 1), ("inconclusive", 2)]


@dataclass(frozen=True)
class Ended:
    """How a job ended, and what it wrote."""

    code: int
    outputs: dict[str, str]
    summary: str
    printed: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a policy in a name with a space, and the command `overheard`."""
    tools = tmp_path / "tools"
    tools.mkdir()
    command = tools / "overheard"
    command.write_text(STUB)
    command.chmod(0o755)
    (tmp_path / "my policy.toml").write_text(POLICY)
    return tmp_path


def run_shell(script: str, folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Run a script as GitHub does, which ends at the first command that fails."""
    path = f"{folder / 'tools'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def run_action(folder: Path, **given: str) -> Ended:
    """Run the shell steps of the action one after the other, as GitHub would."""
    inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    written = {"GITHUB_OUTPUT": folder / "output", "GITHUB_STEP_SUMMARY": folder / "summary"}
    for file in written.values():
        file.write_text("")
    outputs: dict[str, str] = {}
    code, printed = 0, ""
    for step in ACTION["runs"]["steps"][1:]:
        if "run" not in step or code:
            continue
        values = {
            **{f"inputs.{name}": value for name, value in inputs.items()},
            **{f"steps.check.outputs.{name}": value for name, value in outputs.items()},
        }
        variables = {name: _filled(text, values) for name, text in step["env"].items()}
        files = {name: str(file) for name, file in written.items()}
        code, said = run_shell(step["run"], folder, {**variables, **files})
        printed += said
        lines = written["GITHUB_OUTPUT"].read_text().splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
    return Ended(code, outputs, written["GITHUB_STEP_SUMMARY"].read_text(), printed)


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], text)


def run_gitlab(folder: Path, **variables: str) -> tuple[int, str]:
    job = GITLAB[".overheard"]
    script = "\n".join(job["script"])
    return run_shell(script, folder, {**job["variables"], **variables})


@pytest.mark.slow
def test_the_action_runs_the_command(folder: Path) -> None:
    (folder / "tools" / "overheard").write_text(REAL)
    write_document(folder, document(summary_row(0.7, 0.8)))
    ended = run_action(folder, findings="findings.json", policy="my policy.toml", out="a b")
    assert (ended.code, ended.outputs) == (1, {"status": "fail", "exit-code": "1"})
    assert ended.summary.startswith("## Overheard: fail")
    assert json.loads((folder / "a b" / "check.json").read_text())["status"] == "fail"
    assert {file.name for file in (folder / "a b").iterdir()} == {
        "check.json", "check.md", "check.sarif", "check.xml",
    }  # fmt: skip


@pytest.mark.parametrize(("status", "code"), CASES)
def test_the_action_ends_like_the_check(folder: Path, status: str, code: int) -> None:
    (folder / "findings.json").write_text(str(code))
    ended = run_action(folder, findings="findings.json", policy="my policy.toml")
    assert (ended.code, ended.outputs) == (code, {"status": status, "exit-code": str(code)})
    assert ended.summary == "## Overheard\n"
    assert (folder / "told").read_text().splitlines() == [
        *("check", "findings.json", "--json", "--policy", "my policy.toml"),
        *("--sarif", "overheard-check/check.sarif", "--junit", "overheard-check/check.xml"),
        *("--markdown", "overheard-check/check.md"),
    ]


def test_the_action_passes_on_a_reference_and_earlier_findings(folder: Path) -> None:
    (folder / "findings.json").write_text("0")
    run_action(folder, findings="findings.json", like="a.json", against="$(b).json")
    told = (folder / "told").read_text()
    assert "--like\na.json\n--against\n$(b).json\n" in told
    assert "--policy" not in told


def test_the_action_lets_inconclusive_checks_pass_only_if_told(folder: Path) -> None:
    for code, ended_with in ((2, 0), (1, 1)):
        (folder / "findings.json").write_text(str(code))
        ended = run_action(
            folder, findings="findings.json", policy="p.toml", allow_inconclusive="true"
        )
        assert ended.code == ended_with
        assert ("::warning::" in ended.printed) == (code == 2)


def test_the_action_never_takes_an_invalid_input_for_inconclusive(folder: Path) -> None:
    out = folder / "overheard-check"
    out.mkdir()
    (out / "check.md").write_text("of an earlier check")
    ended = run_action(folder, findings="none.json", policy="p.toml", allow_inconclusive="true")
    assert (ended.code, ended.outputs["status"], ended.summary) == (2, "error", "")
    assert "no such regular file" in ended.printed


@pytest.mark.parametrize(("status", "code"), CASES)
def test_the_gitlab_job_ends_like_the_check(folder: Path, status: str, code: int) -> None:
    (folder / "findings.json").write_text(str(code))
    ended, said = run_gitlab(folder, OVERHEARD_POLICY="my policy.toml")
    assert ended == code, (status, said)
    assert (folder / "told").read_text().splitlines()[-2:] == ["--policy", "my policy.toml"]
    assert (folder / "overheard-check" / "check.xml").exists()


def test_the_gitlab_job_fails_on_an_invalid_input(folder: Path) -> None:
    ended, said = run_gitlab(folder, OVERHEARD_POLICY="my policy.toml")
    assert ended == 3
    assert "no such regular file" in said


def test_no_input_is_written_into_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_action_uses_only_inputs_and_outputs_that_exist() -> None:
    text = (ROOT / "integrations/github/action.yml").read_text()
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(ACTION["inputs"])
    ids = {step["id"] for step in ACTION["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"steps\.([\w-]+)\.", text)) <= ids
    for step in ACTION["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step)
        assert "run" not in step or step["shell"] == "bash"
    for entry in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert entry["description"]


def test_the_gitlab_job_keeps_its_results_and_tolerates_only_inconclusive_checks() -> None:
    job = GITLAB[".overheard"]
    assert job["allow_failure"] == {"exit_codes": [2]}
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"]["junit"] == "$OVERHEARD_OUT/check.xml"
    used = set(re.findall(r"\$(OVERHEARD_\w+)", " ".join(job["script"])))
    assert used == set(job["variables"])
    assert GITLAB["overheard"]["extends"] == ".overheard"


def test_the_example_of_the_docs_gives_inputs_that_exist() -> None:
    page = (ROOT / "docs/pipelines.md").read_text()
    github, gitlab = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    (given,) = [step["with"] for step in github["steps"] if "with" in step]
    assert given.keys() <= ACTION["inputs"].keys()
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required <= given.keys()
    assert gitlab["include"] == [{"local": "overheard.gitlab-ci.yml"}]
    for name in re.findall(r"`(OVERHEARD_\w+)`", page):
        assert name in GITLAB[".overheard"]["variables"]
