"""Every command of the documentation runs, or is listed with the reason why no test runs it."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import torch
import typer
from safetensors.torch import save_file

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit as run_audit
from overheard.cli.exits import UsageError
from overheard.cli.main import app
from overheard.data.partition.candidates import CandidateSettings
from overheard.plans.plan import ThreatPlan
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.write import write_release
from overheard.report.write import write_report
from tests.auditing.plans import SERVER_THREAT, TINY, replace_tables
from tests.cli.conftest import Command
from website.generated_pages import generated_pages

ROOT = Path(__file__).parents[2]

PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
)

NOT_RUN = {
    "overheard audit": "takes a minute",
    "overheard audit plan.toml --workers ray://head:10001": "needs a cluster: "
    "tests/simulation/cluster/test_ray_executor.py starts one",
    "overheard audit examples/plugin/plan.toml --out audit": "needs the package in "
    "examples/plugin: tests/test_plugin.py audits this plan",
    "overheard check audit/findings.json --policy examples/plugin/policy.toml": "needs these "
    "findings: tests/test_plugin.py checks them",
    "overheard audit plans/algorithms.toml --out audits/algorithms": "takes some minutes",
    "overheard audit studies/plans/algorithms_identity.toml --data DATA": "needs WISDM",
    "overheard audit plans/identity.toml --data DATA": "takes some minutes",
    "overheard audit plan.toml --out audit --mlflow *": "logs to a server that is not there: "
    "tests/tracking logs to local stores",
    "overheard cohorts *": "takes some seconds: tests/cli/test_cohorts.py runs it for few "
    "clients",
    "overheard doctor my_app*": "reads or runs an app: tests/doctor reads and runs some",
    "overheard review my_app*": "reads an app: tests/cli/review reads one",
    "overheard review jobs/digits": "reads a job of NVFlare: tests/doctor/source reads one",
    "overheard init --from-recording recording*": "needs a recording of another framework: "
    "tests/cli/test_init.py makes one",
    "overheard truth recording *": "needs a table of the owners: tests/cli/truth has some",
    "overheard canaries --flower *": "needs an app: tests/cli/canaries has one",
    "overheard audit drawn/plan.toml *": "needs a recording of the app with these canaries: "
    "tests/recorders/test_canary_chain.py audits one",
    "overheard audit canaries/plan.toml *": "needs a recording of the app with these canaries: "
    "tests/auditing/test_canaries.py audits one",
    "overheard reproduce *": "takes minutes with --quick and hours without",
    "overheard verify audits/march --expect 5f2c...": "the digest is a placeholder: "
    "tests/cli/test_evidence.py takes a true one",
    "overheard import fbm-researcher/*": "needs an experiment of Fed-BioMed: "
    "tests/recorders/formats imports two",
    "overheard init --from-recording recordings/hospitals *": "needs an experiment of "
    "Fed-BioMed: tests/cli/test_importing.py makes such a plan",
    "overheard audit plan.toml --transcript recordings/hospitals": "needs an experiment of "
    "Fed-BioMed: tests/cli/test_importing.py audits one",
}
"""Commands that no test runs, each with the reason. One that ends in `*` is a beginning."""


@dataclass(frozen=True)
class Block:
    """A block of shell code of a page: its commands, in the order in which they are typed."""

    place: str
    commands: tuple[str, ...]


def shell_blocks() -> Iterator[Block]:
    """Every block with a command that can be run here, of the README and of all pages.

    The page on other apps has a test of its own, which makes their recordings.
    """
    for page in PAGES:
        if page.name == "other-apps.md":
            continue
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
        for number, (language, body) in enumerate(blocks, 1):
            found = tuple(filter(None, map(command_of, body.splitlines())))
            if found and language in ("", "sh", "bash"):
                yield Block(f"{page.relative_to(ROOT)} block {number}", found)


def command_of(line: str) -> str:
    """The command of a line, without variables before it and the comment; "" if it has none.

    >>> command_of("PYTHONPATH=. overheard audit plan.toml   # your plan")
    'overheard audit plan.toml'
    """
    found = re.fullmatch(r"\s*(?:\$ )?(?:\w+=\S+ )*((?:overheard|cp) .*|overheard)", line)
    return re.split(r"\s+# ", found[1])[0].strip() if found else ""


def mentioned_commands() -> Iterator[tuple[str, str]]:
    """Every `overheard ...` within a sentence, with its place."""
    for page in PAGES:
        for found in re.findall(r"`(overheard [^`]+)`", page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), " ".join(found.split())


def is_run(command: str) -> bool:
    """Whether a test runs a command."""
    return not any(
        command == key or (key.endswith("*") and command.startswith(key.removesuffix("*")))
        for key in NOT_RUN
    )


BLOCKS = list(shell_blocks())

RUN = [block for block in BLOCKS if any(map(is_run, block.commands))]

OUTPUTS = ("--out", "--junit", "--markdown", "--sarif", "--write-policy")
"""Options whose value is written, so that it need not be there."""

POLICY = '[[costs]]\nname = "it learns"\naccuracy_at_least = 0.0\nseeds_at_least = 1\n'


CANARIES = CandidateSettings(members=3, outsiders=9, canaries="mislabelled")

PLAN = replace_tables(
    TINY,
    data=TINY.data.model_copy(update={"candidates": CANARIES}),
    threats=(SERVER_THREAT, ThreatPlan(attacks=(LossMembership(),), by_round=False)),
)
"""The tiny plan, with canaries to draw and an attack that asks for them."""


def at_home(word: str, home: Path) -> str:
    """Return a word as a shell would pass it, with a folder where it names one at home."""
    if not word.startswith("~/"):
        return word
    folder = home / word.removeprefix("~/")
    folder.mkdir(exist_ok=True)
    return str(folder)


def write_models(folder: Path) -> None:
    """Save three global models beside each other."""
    folder.mkdir()
    for number in range(3):
        torch.save(
            {"fc.weight": torch.full((2, 3), 1.0 + number)}, folder / f"model_{number}.pt"
        )


def write_export(folder: Path) -> None:
    """Write the weights of one round of two clients."""
    for name in ("0/global", "0/client-0", "0/client-1", "1/global"):
        path = folder / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"weight": torch.ones(2)}, path)


def write_cases(path: Path) -> None:
    """Write a table of 60 cases with a diagnosis, a ward and two numbers."""
    numbers = range(60)
    pd.DataFrame(
        {
            "diagnosis": ["benign" if number % 2 else "malignant" for number in numbers],
            "ward": [f"ward {number % 4}" for number in numbers],
            "age": [20 + number * 7 % 45 for number in numbers],
            "size": [number % 7 / 2 for number in numbers],
        }
    ).to_parquet(path)


Provide = Callable[[Path], object]


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of the plan, with its report."""
    folder = tmp_path_factory.mktemp("documented") / "audit"
    found = run_audit(PLAN, folder, resources=Resources(device="cpu", workers=1))
    write_report(found, folder)
    return folder


@pytest.fixture
def inputs(audited: Path) -> Mapping[str, Provide]:
    """By name in the documentation: what makes an input that a reader has at this point."""

    def audit(path: Path) -> None:
        shutil.copytree(audited, path)

    def recorded(path: Path) -> None:
        shutil.copytree(audited / "runs" / "no_defense-seed0", path)

    return {
        "plan.toml": lambda path: path.write_text(PLAN.toml(), encoding="utf-8"),
        "canaries.toml": lambda path: path.write_text(PLAN.toml(), encoding="utf-8"),
        "policy.toml": lambda path: path.write_text(POLICY, encoding="utf-8"),
        "audit": audit,
        "audits/march": audit,
        "reference": audit,
        "released": lambda path: write_release(
            audited, path, ReleaseSettings(least_group=1), date(2026, 11, 27)
        ),
        "recording": recorded,
        "recordings/march": recorded,
        "noisy": recorded,
        "exported": write_export,
        "results": write_models,
        "cases.parquet": write_cases,
    }


def provide(command: list[str], folder: Path, inputs: Mapping[str, Provide]) -> None:
    """Make the inputs of a command that earlier commands of its block have not written."""
    pairs = pairwise(command)
    written = {value for option, value in pairs if option in OUTPUTS}
    for word in command[2:]:
        name = next((one for one in inputs if word == one or word.startswith(f"{one}/")), None)
        if name is not None and word not in written and not (folder / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            inputs[name](folder / name)


@pytest.mark.slow
@pytest.mark.parametrize("block", RUN, ids=lambda block: block.place)
def test_the_commands_of_a_block_run_one_after_the_other(
    block: Block,
    overheard: Command,
    inputs: Mapping[str, Provide],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in filter(is_run, block.commands):
        words = [at_home(word, tmp_path) for word in shlex.split(command)]
        provide(words, tmp_path, inputs)
        if words[0] == "cp":
            subprocess.run(words, check=True)
            continue
        said = overheard(*words[1:])
        assert said.code == 0, said


def test_every_reason_is_of_a_command_that_is_documented() -> None:
    documented = [command for block in BLOCKS for command in block.commands]
    for key in NOT_RUN:
        beginning = key.removesuffix("*")
        assert any(one == key or one.startswith(beginning) for one in documented), key


@cache
def all_commands() -> typer.core.TyperGroup:
    """The parsed command, which takes a tenth of a second to build."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return group


def usage_error(command: str) -> str:
    """What is wrong with the options or the name of a command; "" if nothing is."""
    group = all_commands()
    _, *words = [word for word in shlex.split(command) if word != "..."]
    if not words or words[0].startswith("-") or words[0].isupper():
        return ""
    if words[0] not in group.commands:
        return f"{command}: there is no command {words[0]}"
    known = group.commands[words[0]]
    context = known.context_class(known, info_name=words[0])
    try:
        known.make_parser(context).parse_args(words[1:])
    except UsageError as error:
        return f"{command}: {error.format_message()}"
    return ""


def test_every_command_within_a_sentence_exists_with_its_options() -> None:
    wrong = {f"{place}: {error}" for place, one in mentioned_commands()
             if (error := usage_error(one))}  # fmt: skip
    assert wrong == set()


def test_every_example_of_a_help_exists_with_its_options() -> None:
    lines = generated_pages()["commands.md"].splitlines()
    commands = [one for one in map(command_of, lines) if one.startswith("overheard ")]
    assert len(commands) > 10
    assert [error for one in commands if (error := usage_error(one))] == []


def test_a_wrong_option_is_noticed() -> None:
    assert "no such option" in usage_error("overheard audit --nope").lower()
    assert usage_error("overheard adit plan.toml").endswith("no command adit")
