"""The page on apps that are not the textbook ones leads each of them to its claims."""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from torch import Tensor

from tests.cli.conftest import CPU, Command
from tests.readings import networks
from tests.readings.audited import auxiliary
from tests.readings.channels import save, write_truth
from tests.readings.federations import RATE, SavedRun, federations, simulate
from tests.readings.spoils import each_reply, each_tensor

PAGE = Path(__file__).parents[2] / "docs" / "other-apps.md"


@dataclass(frozen=True)
class Section:
    """A section of the page: its title and its blocks, with their languages."""

    title: str
    blocks: tuple[tuple[str, str], ...]


def sections() -> Iterator[Section]:
    """Every section with a command."""
    for text in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
        yield Section(text.partition("\n")[0], tuple(blocks))


SECTIONS = tuple(sections())


def encode(inputs: Tensor, labels: Tensor) -> Tensor:
    """Return notes whose first word tells the class."""
    draws = torch.Generator().manual_seed(len(labels))
    shape = (len(labels), networks.LENGTH)
    tokens = torch.randint(1, networks.VOCABULARY, shape, generator=draws)
    tokens[:, 0] = 1 + labels
    return tokens


def without(run: SavedRun, beginning: str) -> SavedRun:
    """Return a run in which tensors with this beginning of a name never travel."""

    def kept(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: one for name, one in tensors.items() if not name.startswith(beginning)}

    sent = each_reply(run, lambda start, end, examples: kept(end))
    rounds = tuple(replace(one, start=kept(one.start)) for one in sent.rounds)
    return replace(sent, rounds=rounds, final=kept(run.final))


def exported_runs() -> Mapping[str, SavedRun]:
    """By the name of a folder of the page, the run in it."""
    by_name = {run.name: run for run in federations()}
    weights = by_name["weights"]
    return {
        "adamw": by_name["adamw"],
        "changes": each_tensor(lambda start, end: end - start)(weights),
        "gradients": each_tensor(lambda start, end: (start - end) / RATE)(weights),
        "noisy": by_name["adamw"],
        "lora": by_name["LoRA"],
        "notes": simulate("notes", "Tokens", encode=encode),
        "normed": without(by_name["batch norm"], "1."),
        "models": by_name["adamw"],
    }


@pytest.fixture
def readers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a reader: network, examples and saved runs."""
    notes = next(
        body for one in SECTIONS for language, body in one.blocks if language == "python"
    )
    code = Path(networks.__file__).read_text(encoding="utf-8")
    (tmp_path / "clinic.py").write_text(f"{code}\n\n{notes}", encoding="utf-8")
    auxiliary(tmp_path).rename(tmp_path / "spare.npz")
    with np.load(tmp_path / "spare.npz") as spare:
        bytes_ = np.clip(spare["x"] * 25 + 100, 0, 255).astype(np.uint8)
        np.savez(tmp_path / "bytes.npz", x=bytes_, y=spare["y"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "clinic", raising=False)
    return tmp_path


def provide(name: str, section: Section) -> None:
    """Save the run of a section, with what its about.toml states."""
    folder, run = Path(name), exported_runs()[name]
    for language, body in section.blocks:
        if language == "toml" and "[[defenses]]" in body:
            run = replace(run, about=tomllib.loads(body))
    save(run, folder)
    if name == "models":
        for path in folder.rglob("client-*"):
            path.unlink()
        (folder / "about.toml").unlink()


def complete(plan: Path, body: str) -> None:
    """Write what a block states into the plan, and let attackers know the recipe."""
    content = tomllib.loads(plan.read_text(encoding="utf-8"))
    stated = tomllib.loads(body)["training"]
    content["training"] |= stated
    if "optimizer" in stated:
        for threat in content["threats"]:
            threat["knows"] = ["auxiliary", "model", "recipe"]
            threat["virtual"] = {"clients": 12}
    plan.write_text(tomli_w.dumps(content), encoding="utf-8")


def simulate_few(plan: Path) -> None:
    """Let the attackers of a plan simulate fewer clients than `init` proposes, to save time."""
    text = plan.read_text(encoding="utf-8")
    plan.write_text(re.sub(r"clients = 250\b", "clients = 12", text), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS, ids=lambda one: one.title)
def test_a_section_leads_to_claims(
    section: Section, readers_folder: Path, overheard: Command
) -> None:
    plan = None
    for language, body in section.blocks:
        if language == "toml" and "title" in body:
            Path("normed.toml").write_text(body, encoding="utf-8")
        elif language == "toml" and plan is not None:
            complete(plan, body)
        if language != "sh":
            continue
        for line in body.strip().splitlines():
            _, command, *words = shlex.split(line)
            if command == "init" and not Path(words[2]).exists():
                provide("adamw", section)
                overheard("import", "adamw", "--out", words[2])
            if command == "import":
                provide(words[0], section)
            if command == "init":
                plan = Path(words[0])
            if command == "audit":
                simulate_few(plan or Path(words[0]))
            said = overheard(command, *words, *(CPU if command == "audit" else ()))
            assert said.code == 0, said
            if command == "import" and words[0] != "models":
                write_truth(exported_runs()[words[0]], Path(words[-1]))
            if command == "audit":
                report = Path(words[-1], "findings.json").read_text(encoding="utf-8")
                assert '"target"' in report
    if section.title.startswith("Inputs on another scale"):
        assert plan is not None
        assert "by_255" in plan.read_text(encoding="utf-8") or "standardised" in said.out
