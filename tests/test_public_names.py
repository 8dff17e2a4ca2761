"""Public names are declared once, found in every import order, and quick to import."""

import subprocess
import sys
from pkgutil import iter_modules
from types import ModuleType

import pytest

import overheard
from overheard.plans.registries import REGISTRIES, questions

NAMES = set(dir(overheard))

TYPES = (
    "Algorithm", "Attack", "Audit", "Claim", "DataSource", "Defense", "Distillation",
    "Examples", "Finding", "GroundTruth", "Knowledge", "Model", "Need", "Party", "Plan",
    "Question", "Recipe", "Refusal", "Resources", "Score", "Scorer", "Seed", "Split",
    "Transcript", "View",
)  # fmt: skip

CLAIMS = tuple(one.scorer.claim_type.__name__ for one in questions().values())

FUNCTIONS = (
    "audit", "built_in_plan", "check", "draw_canaries", "import_recording", "knowledge",
    "open_transcript", "propose_cohorts", "propose_cohorts_of_plan", "read_plan",
    "score", "show", "simulate", "write_report",
)  # fmt: skip

ERRORS = (
    "AuditError", "ClaimError", "DataError", "FindingsError", "NeedsError", "OutputError",
    "PlanError", "TranscriptError", "WorkerError",
)  # fmt: skip

SHARED = {"Own"}
"""Class names that two parts share, which therefore have no public name."""


def run_in_new_process(*lines: str) -> str:
    """Run these lines in a new process; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_can_be_loaded_and_is_an_object_of_that_name():
    for name in NAMES:
        found = getattr(overheard, name)
        assert getattr(found, "__name__", name) == name


def test_the_class_of_every_built_in_plugin_is_public_unless_two_share_its_name():
    plugins = [
        plugin
        for kind in REGISTRIES
        for name, plugin in kind.plugins().items()
        if kind.origin(name) is None
    ]
    names = [plugin.__name__ for plugin in plugins]
    assert {name for name in names if names.count(name) > 1} == SHARED
    for plugin in plugins:
        if plugin.__name__ not in SHARED:
            assert getattr(overheard, plugin.__name__) is plugin
    assert not SHARED & NAMES


def test_type_checkers_know_every_name_that_is_no_plugin():
    plugins = {plugin.__name__ for kind in REGISTRIES for plugin in kind.plugins().values()}
    assert set(overheard.__all__) == NAMES - plugins - set(CLAIMS)


@pytest.mark.parametrize("names", [TYPES, CLAIMS, FUNCTIONS, ERRORS])
def test_types_claims_functions_and_errors_are_public(names: tuple[str, ...]):
    assert set(names) <= NAMES


def test_no_public_name_is_the_name_of_a_module():
    modules = {info.name for info in iter_modules(overheard.__path__)}
    assert len(modules) > 10
    assert not modules & NAMES
    assert not [name for name in NAMES if isinstance(getattr(overheard, name), ModuleType)]


ORDERS = {
    "the package alone": ["import overheard"],
    "a module of the same layer first": ["import overheard.auditing.run", "import overheard"],
    "the name itself": ["from overheard import audit", "import overheard"],
    "all packages first": [
        "import overheard, importlib, pkgutil",
        "for info in pkgutil.iter_modules(overheard.__path__):",
        "    if info.name != '__main__': importlib.import_module(f'overheard.{info.name}')",
    ],
}


FORGET = (
    "loaded = [name for name in sys.modules if name.split('.')[0] == 'overheard']",
    "for name in loaded: del sys.modules[name]",
)
"""Lines after which the package is imported anew, but no library that it needs."""

CAN_AUDIT = (
    "import overheard.report",
    "from overheard.auditing.run import audit",
    "assert overheard.audit is audit",
    "assert overheard.report.__name__ == 'overheard.report'",
    "assert overheard.write_report.__module__ == 'overheard.report.write'",
)


@pytest.mark.slow
def test_a_process_can_audit_after_any_import_order():
    lines = ["import sys"]
    for name, order in ORDERS.items():
        lines += [*FORGET, *order, *CAN_AUDIT, f"print({name!r})"]
    assert run_in_new_process(*lines).splitlines() == list(ORDERS)


HEAVY = "{'jinja2', 'matplotlib', 'numpy', 'pandas', 'pydantic', 'sklearn', 'torch'}"


def test_importing_the_package_or_printing_help_loads_no_large_library():
    loaded = f"print(sorted({HEAVY} & sys.modules.keys()))"
    assert run_in_new_process("import sys, overheard", loaded) == "[]\n"
    printed = run_in_new_process(
        "import sys, overheard.cli.main",
        "sys.argv = ['overheard', '--help']",
        "try: overheard.cli.main.main()",
        f"except SystemExit: {loaded}",
    )
    assert "reproduce" in printed
    assert printed.splitlines()[-1] == "[]"


def test_refuses_an_unknown_name_and_suggests_similar_ones():
    with pytest.raises(AttributeError, match=r"no public name 'Decaff': did you mean Decaf"):
        overheard.Decaff  # noqa: B018 - the access is the test
    with pytest.raises(AttributeError, match=r"did you mean built_in_plan"):
        overheard.builtin_plan  # noqa: B018 - the access is the test
    with pytest.raises(AttributeError, match=r"dir\(overheard\) lists them"):
        overheard.qqqq  # noqa: B018 - the access is the test
