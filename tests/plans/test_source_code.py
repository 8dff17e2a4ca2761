"""A digest of code changes if and only if code that a plugin depends on changes."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from overheard.defenses.noise import Noise
from overheard.learning.models.custom import Own as OwnModel
from overheard.plans.source_code import code_digest, file_digests, simulation_digest
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf

FILES = {
    "helper_of_mine.py": "RATE = 1\n",
    "parts/__init__.py": "",
    "parts/plugin.py": (
        "import torch\n"
        "from . import near\n"
        "class Plugin:\n"
        "    def run(self):\n"
        "        from helper_of_mine import RATE\n"
        "def build(task):\n"
        "    pass\n"
    ),
    "parts/near.py": "from overheard.core.seeds import Seed\n",
    "parts/stranger.py": "",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with the package `parts` and the module `helper_of_mine`."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [
        one for one in sys.modules if one.partition(".")[0] in ("parts", "helper_of_mine")
    ]:
        del sys.modules[name]


def load_plugin() -> object:
    """Load the modules anew, as another process would."""
    for name in [one for one in sys.modules if one.partition(".")[0] == "parts"]:
        del sys.modules[name]
    return importlib.import_module("parts.plugin").Plugin()


def test_follows_imports_in_functions_relative_ones_and_those_of_overheard(home: Path):
    found = file_digests((), (load_plugin(),))
    own = {name for name in found if not name.startswith("overheard")}
    assert own == {"parts", "parts.plugin", "parts.near", "helper_of_mine"}
    assert "overheard.core.seeds" in found
    assert "overheard.core.view" not in found


@pytest.mark.parametrize(
    "statement",
    [
        "import helper_of_mine",
        "import torch, helper_of_mine as helper",
        "if True: import helper_of_mine",
        "WHO = 1; import helper_of_mine",
        "from helper_of_mine import (\n    RATE,  # how fast (really)\n)",
        "from helper_of_mine \\\n    import RATE",
        "import torch, \\\n    helper_of_mine",
        '"""\nimport this and that\n"""\nimport helper_of_mine',
    ],
)
def test_follows_imports_in_any_form(home: Path, statement: str):
    (home / "parts/near.py").write_text(f"{statement}\n")
    assert "helper_of_mine" in file_digests(("parts.near",), ())


@pytest.mark.parametrize("name", ["parts/plugin.py", "parts/near.py", "helper_of_mine.py"])
def test_a_change_of_a_file_that_is_needed_changes_the_digest(home: Path, name: str):
    before = code_digest((), (load_plugin(),))
    assert code_digest((), (load_plugin(),)) == before
    (home / name).write_text(FILES[name] + "# changed\n")
    assert code_digest((), (load_plugin(),)) != before


def test_a_change_of_another_file_does_not(home: Path):
    before = code_digest((), (load_plugin(),))
    (home / "parts/stranger.py").write_text("WHO = 1\n")
    assert code_digest((), (load_plugin(),)) == before


def test_ends_of_lines_and_the_folder_do_not_matter(home: Path):
    before = code_digest((), (load_plugin(),))
    for name, content in FILES.items():
        (home / name).write_bytes(content.replace("\n", "\r\n").encode())
    assert code_digest((), (load_plugin(),)) == before


def test_a_file_that_changes_after_it_was_loaded_changes_nothing(home: Path):
    plugin = load_plugin()
    before = code_digest((), (plugin,))
    (home / "parts/plugin.py").write_text("# not loaded yet\n")
    assert code_digest((), (plugin,)) == before


def test_covers_functions_that_a_setting_names(home: Path):
    found = file_digests((), (OwnModel("parts.plugin:build"),))
    assert {"parts.plugin", "parts.near", "overheard.learning.models.custom"} <= found.keys()


def test_a_class_without_a_file_gives_another_digest_each_time(
    monkeypatch: pytest.MonkeyPatch,
):
    @dataclass(frozen=True)
    class Typed:
        pass

    Typed.__module__ = "typed_into_a_notebook"
    assert code_digest((), (Typed(),)) != code_digest((), (Typed(),))


def test_attacks_of_overheard_share_simulations_but_no_findings():
    assert simulation_digest((Decaf(),)) == simulation_digest((BiasInversion(),))
    assert code_digest((), (Decaf(),)) != code_digest((), (BiasInversion(),))
    assert code_digest((), (Decaf(), None)) == code_digest((), (Decaf(calibrator=False),))


def test_an_attack_depends_on_no_other_attack_no_report_and_no_installed_package():
    found = file_digests(("overheard.auditing.attack_runner",), (Decaf(), Noise(0.1)))
    tops = {name.partition(".")[0] for name in found}
    assert tops == {"overheard"}
    packages = {name.split(".")[1] for name in found if "." in name}
    assert packages.isdisjoint({"report", "cli", "gate", "papers", "testing", "drawing"})
    attacks = {name for name in found if ".attacks." in name}
    assert attacks == {"overheard.questions.label_shares.attacks.decaf"}
    assert {name for name in found if ".defenses." in name} >= {"overheard.defenses.noise"}
    assert "overheard.defenses.rand_aug" not in found
