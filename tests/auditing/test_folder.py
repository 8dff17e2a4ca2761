"""The output folder belongs to one plan."""

from pathlib import Path

import pytest
import torch

from overheard.auditing.folder import AuditFolder
from overheard.core.errors import OutputError
from overheard.disk.writing import partial_path


def test_creates_the_folder_and_accepts_it_again(tmp_path: Path):
    home = AuditFolder(tmp_path / "deep" / "audit")
    home.reserve("a = 1\n")
    assert (home.path / "plan.toml").read_text() == "a = 1\n"
    home.reserve("a = 1\n")


def test_checking_changes_nothing(tmp_path: Path):
    AuditFolder(tmp_path / "audit").check_plan("a = 1\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["check_plan", "reserve"])
def test_refuses_the_folder_of_another_plan_and_says_how_they_differ(tmp_path: Path, step: str):
    AuditFolder(tmp_path).reserve("a = 1\nb = 2\n")
    with pytest.raises(OutputError, match=r"another plan \(-b = 2; \+b = 3\): choose another"):
        getattr(AuditFolder(tmp_path), step)("a = 1\nb = 3\n")
    assert (tmp_path / "plan.toml").read_text() == "a = 1\nb = 2\n"


def test_refuses_a_folder_whose_recording_was_changed(tmp_path: Path):
    AuditFolder(tmp_path).reserve("# recording 12\nseeds = [0]\n")
    with pytest.raises(OutputError, match=r"another recording, or this one was changed"):
        AuditFolder(tmp_path).check_plan("# recording 34\nseeds = [0, 1]\n")


WEAK, STRONG = (f"[[arms]]\nname = '{name}'\nclip = 1\n" for name in ("weak", "strong"))


@pytest.mark.parametrize(
    ("first", "then", "is_kept"),
    [
        ("# made by 1\nseeds = [0]\na = 1\n", "# made by 1\nseeds = [0, 1]\na = 1\n", True),
        (f"seeds = [0]\n{WEAK}", f"seeds = [0]\n{STRONG}{WEAK}", True),
        (f"seeds = [0]\n{WEAK}", f"seeds = [0]\n{STRONG}", False),
    ],
    ids=["a further seed", "a further arm", "without an arm"],
)
def test_a_plan_that_continues_another_keeps_its_claims(
    tmp_path: Path, first: str, then: str, is_kept: bool
):
    home = AuditFolder(tmp_path)
    home.reserve(first)
    home.cells_path.mkdir()
    home.check_plan(then)
    assert home.cells_path.exists()
    home.reserve(then)
    assert home.plan_text() == then
    assert home.cells_path.exists() == is_kept


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (f"seeds = [0]\n{WEAK}", r"its seeds are 0, 1\): begin with the same .* --runs 2"),
        (f"seeds = [1, 0]\n{WEAK}", "its seeds are 0, 1"),
        (f"seeds = [0, 2]\n{WEAK}", "another plan"),
        (f"seeds = [0, 1]\n{WEAK.replace('1', '2')}", r"its arm 'weak' has other .*\): give"),
        ("seeds = [0, 1]\narms = 3\n", "another plan"),
        ("seeds = [0, 1]\n[[arms]]\nclip = 1\n", "another plan"),
        (f"# made by 2\nseeds = [0, 1, 2]\n{WEAK}", "another plan"),
        (f"seeds = [0, 1, 2]\na = 2\n{WEAK}", "another plan"),
        (f"seeds = [[0], 1, 2]\n{WEAK}", "another plan"),
        (WEAK, "another plan"),
    ],
)
@pytest.mark.parametrize("step", ["check_plan", "reserve"])
def test_the_refusal_of_another_plan_names_what_differs(
    tmp_path: Path, other: str, reason: str, step: str
):
    home = AuditFolder(tmp_path)
    home.reserve(f"seeds = [0, 1]\n{WEAK}")
    with pytest.raises(OutputError, match=reason):
        getattr(home, step)(other)


def test_refuses_a_folder_with_other_files_and_changes_nothing(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="choose another folder with --out"):
        AuditFolder(tmp_path).reserve("a = 1\n")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_takes_a_folder_in_which_a_killed_audit_wrote_no_whole_file(tmp_path: Path):
    partial_path(tmp_path / "plan.toml").write_text("a =")
    AuditFolder(tmp_path).reserve("a = 1\n")
    assert AuditFolder(tmp_path).plan_text() == "a = 1\n"


@pytest.mark.parametrize("linked", ["cells", "runs", "bank", "runs/a-seed0"])
def test_nothing_is_written_or_removed_through_a_link_in_the_folder(
    tmp_path: Path, linked: str
):
    home, victim = AuditFolder(tmp_path / "audit"), tmp_path / "victim"
    home.reserve("a = 1\n")
    (home.path / linked).parent.mkdir(exist_ok=True)
    (home.path / linked).symlink_to(victim)
    (victim / "a-seed0").mkdir(parents=True)
    (victim / "precious").write_text("")
    run = home.run_path("a", 0)
    actions = {
        "cells": lambda: home.replace_plan("a = 2\n"),
        "bank": lambda: home.tensor_cache(None).save("0" * 8, {"x": torch.ones(1)}),
    }
    for action in (
        [actions[linked]]
        if linked in actions
        else [
            lambda: home.begin_run(run, {}),
            lambda: home.discard_other_origin(run, {"a": "b"}),
        ]
    ):
        with pytest.raises(OutputError, match=f"{linked} is a link"):
            action()
    assert {path.name for path in victim.rglob("*")} == {"a-seed0", "precious"}


def test_a_cache_that_the_user_named_may_be_a_link(tmp_path: Path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "shared")
    cache = AuditFolder(tmp_path / "audit").tensor_cache(tmp_path / "cache")
    cache.save("0" * 8, {"x": torch.ones(1)})
    assert cache.load("0" * 8) == {"x": torch.ones(1)}


def test_refuses_a_file_as_folder_and_a_folder_as_plan(tmp_path: Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "odd" / "plan.toml").mkdir(parents=True)
    for place in ("file", "odd"):
        with pytest.raises(OutputError, match="neither empty nor the folder of an audit"):
            AuditFolder(tmp_path / place).reserve("a = 1\n")


def test_a_plan_that_is_not_utf8_is_another_plan(tmp_path: Path):
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(OutputError, match="another plan"):
        AuditFolder(tmp_path).reserve("a = 1\n")
    assert (tmp_path / "plan.toml").read_bytes() == b"\xff\xfe"


def test_a_replaced_plan_drops_cells_and_keeps_simulations(tmp_path: Path):
    home = AuditFolder(tmp_path)
    home.reserve("a = 1\n")
    for folder in (home.cells_path, home.path / "bank"):
        folder.mkdir()
        (folder / "stored").write_text("")
    home.replace_plan("a = 1\n")
    assert home.cells_path.exists()
    home.replace_plan("a = 2\n")
    assert home.plan_text() == "a = 2\n"
    assert not home.cells_path.exists()
    assert (home.path / "bank").exists()


def test_each_arm_seed_and_control_has_its_own_folder():
    home = AuditFolder(Path("audit"))
    assert home.run_path("local DP", 3) == Path("audit/runs/local_DP-seed3")
    control = home.run_path("local DP", 3, "-control")
    assert control == Path("audit/runs/local_DP-seed3-control")
    assert home.cells_path == Path("audit/cells")
