"""The public names: declared once, found in every order of imports, and quick to import."""

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

import overheard
from overheard.plans.kinds import KINDS
from tests.face import STUB, declared, stub_text

NAMES = declared(STUB.read_text())

WORDS = (
    "Attack", "Audit", "Claim", "DataSource", "Defense", "Distillation", "Examples", "Finding",
    "GroundTruth", "Knowledge", "Model", "Need", "Party", "Plan", "Question", "Recipe",
    "Refusal", "Resources", "Score", "Scorer", "Seed", "Split", "Transcript", "View",
)  # fmt: skip

CLAIMS = ("Attribute", "Identity", "LabelShares", "Membership", "SameSender", "Shift")

FUNCTIONS = (
    "audit", "built_in_plan", "check", "draw_canaries", "import_recording", "knowledge",
    "open_transcript", "read_plan", "reproduce", "score", "show", "simulate", "write_report",
)  # fmt: skip

ERRORS = (
    "AuditError", "ClaimError", "DataError", "FindingsError", "NeedsError", "OutputError",
    "PlanError", "TranscriptError", "WorkerError",
)  # fmt: skip

SHARED = {"Own"}
"""Names of two parts each, which no public name can stand for."""


def run_alone(*lines: str) -> str:
    """What a fresh process prints that runs these lines."""
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_name_is_what_its_module_has_by_that_name():
    for name, module in NAMES.items():
        assert getattr(overheard, name) is getattr(import_module(module), name), name


def test_dir_shows_the_public_names_and_no_others():
    assert dir(overheard) == sorted(NAMES)
    assert sorted(overheard.__all__) == sorted(NAMES)


def test_every_part_of_every_kind_has_a_public_name():
    for kind in KINDS:
        parts = {part.__name__: part for part in kind.parts().values()}
        missing = sorted(parts.keys() - NAMES.keys() - SHARED)
        assert not missing, f"of {kind.name} there lack {missing}: run `make face`"
        for name in parts.keys() - SHARED:
            assert getattr(overheard, name) is parts[name]


def test_the_stub_is_as_the_command_writes_it():
    text = STUB.read_text()
    assert stub_text(text) == text, "run `make face`"


def test_the_command_writes_a_part_that_the_stub_lacks():
    text = STUB.read_text()
    (line,) = (one for one in text.splitlines(keepends=True) if " Decaf as " in one)
    assert stub_text(text.replace(line, "")) == text


def test_a_name_of_two_parts_is_not_public():
    every = [part.__name__ for kind in KINDS for part in kind.parts().values()]
    assert {name for name in every if every.count(name) > 1} == SHARED
    assert not SHARED & NAMES.keys()


@pytest.mark.parametrize("names", [WORDS, CLAIMS, FUNCTIONS, ERRORS])
def test_the_words_the_claims_the_functions_and_the_errors_are_public(names: tuple[str, ...]):
    assert set(names) <= NAMES.keys()


def test_no_public_name_is_that_of_a_module_or_package_of_ours():
    ours = {info.name for info in iter_modules(overheard.__path__)}
    assert len(ours) > 10
    assert not ours & NAMES.keys()
    assert not [name for name in NAMES if isinstance(getattr(overheard, name), ModuleType)]


ORDERS = {
    "the package alone": ["import overheard"],
    "a module of the same floor first": ["import overheard.auditing.run", "import overheard"],
    "the name itself": ["from overheard import audit", "import overheard"],
    "all packages first": [
        "import overheard, importlib, pkgutil",
        "for info in pkgutil.iter_modules(overheard.__path__):",
        "    if info.name != '__main__': importlib.import_module(f'overheard.{info.name}')",
    ],
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_a_fresh_process_can_audit_whatever_it_imported_before(order: list[str]):
    said = run_alone(
        *order,
        "import overheard.report",
        "from overheard.auditing.run import audit",
        "assert overheard.audit is audit",
        "assert overheard.report.__name__ == 'overheard.report'",
        "assert overheard.write_report.__module__ == 'overheard.report.write'",
        "print('done')",
    )
    assert said == "done\n"


HEAVY = "{'jinja2', 'matplotlib', 'numpy', 'pandas', 'pydantic', 'sklearn', 'torch'}"


def test_to_import_the_package_or_to_ask_the_command_for_help_loads_no_library_of_weight():
    loaded = f"print(sorted({HEAVY} & sys.modules.keys()))"
    assert run_alone("import sys, overheard", loaded) == "[]\n"
    said = run_alone(
        "import sys, overheard.cli.main",
        "sys.argv = ['overheard', '--help']",
        "try: overheard.cli.main.main()",
        f"except SystemExit: {loaded}",
    )
    assert "reproduce" in said
    assert said.splitlines()[-1] == "[]"


def test_an_unknown_name_is_refused_with_those_that_are_spelled_much_like_it():
    with pytest.raises(AttributeError, match=r"no public name 'Decaff': did you mean Decaf"):
        overheard.Decaff  # noqa: B018 - to ask for it is the test
    with pytest.raises(AttributeError, match=r"did you mean built_in_plan"):
        overheard.builtin_plan  # noqa: B018 - to ask for it is the test
    with pytest.raises(AttributeError, match=r"dir\(overheard\) lists them"):
        overheard.qqqq  # noqa: B018 - to ask for it is the test
