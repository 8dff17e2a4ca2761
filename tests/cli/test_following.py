"""Following a recording, and progress."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from overheard.auditing.following.round_attacker import FollowedRound
from overheard.auditing.inputs import Resources
from overheard.auditing.progress import ProgressStep
from overheard.auditing.run import audit
from overheard.auditing.threat_results import with_verdicts
from overheard.cli import following as module
from overheard.cli.audit_and_report import audit_and_report
from overheard.cli.following import describe_round
from overheard.cli.progress import progress_bar
from overheard.core.accounting.accountant import AccountedMechanism, RecomputedEpsilon
from overheard.core.claims import Picture
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmDefense, Refusal
from overheard.plans.release_plan import ReportPlan
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.conftest import HERE
from tests.auditing.following.growing_copy import GrowingCopy
from tests.auditing.plans import COHORT_THREAT, TINY, replace_tables
from tests.cli.conftest import CPU, Command, assert_user_error, contents


@pytest.fixture
def growing(recording: Path, tmp_path: Path) -> GrowingCopy:
    """The recording of the tiny plan, of which nothing is written yet."""
    return GrowingCopy(recording, tmp_path / "growing")


def write_rounds(growing: GrowingCopy, report: Path) -> None:
    """Write the three rounds of the recording, the second once a report exists."""
    growing.commit_round(0)
    deadline = time.monotonic() + 30
    while not report.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    growing.commit_round(1)
    growing.reveal_truth()
    time.sleep(0.3)
    growing.commit_round(2)


@pytest.mark.slow
def test_follows_a_run_that_is_written_meanwhile(
    overheard: Command, plan: Path, growing: GrowingCopy, recording: Path, tmp_path: Path
) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    writer = threading.Thread(target=write_rounds, args=(growing, out / "report.html"))
    writer.start()
    said = overheard(
        "audit", plan, "--transcript", growing.folder, "--follow", "--out", out, *CPU
    )
    writer.join()
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].startswith("round 0, ") or lines[0].startswith("waiting for the first")
    assert "claimed, not checked" in next(one for one in lines if one.startswith("round 0"))
    assert f"  the report so far: {out / 'report.html'}" in lines
    assert "the run has ended: all of its rounds are audited now" in lines
    # In the end the folder is that of a plain audit.
    assert overheard("audit", plan, "--transcript", recording, "--out", plain, *CPU).code == 0
    followed = contents(out)
    assert followed.pop("followed.json").startswith(b'{"rounds":0,')
    assert followed == contents(plain)


@pytest.mark.slow
def test_a_report_so_far_has_no_data_files_and_says_so(
    overheard: Command,
    plan: Path,
    growing: GrowingCopy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, growing_audit = tmp_path / "out", {}
    growing.commit_round(0)
    real = module.write_interim_report

    def write(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        growing_audit.update(contents(out))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_interim_report", write)
    said = overheard(
        "audit", plan, "--transcript", growing.folder, "--follow", "--out", out, *CPU
    )
    assert said.code == 130
    assert "run the same command again to resume" in said.err
    assert set(growing_audit) == {"followed.json", "in-use.json", "plan.toml", "report.html"}
    assert b"(the run goes on)" in growing_audit["report.html"]


def told_by(folder: Path) -> str:
    """The report of an audit, with plain spaces."""
    return " ".join((folder / "report.html").read_text().split())


@pytest.mark.slow
def test_a_run_that_falls_silent_is_audited_and_can_be_followed_again(
    overheard: Command, plan: Path, growing: GrowingCopy, tmp_path: Path
) -> None:
    growing.commit_round(0)
    command = ("audit", plan, "--transcript", growing.folder, "--out", tmp_path / "out", *CPU)
    said = overheard(*command, "--follow", "--follow-timeout", "0.1")
    assert said.code == 0, said.err
    assert "no new round for 0.1 s, so the run counts as over" in said.out
    assert said.out.startswith("round 0, ")
    assert "from 1 round" in told_by(tmp_path / "out")
    growing.commit_round(1)
    growing.commit_round(2)
    again = overheard(*command, "--follow")
    assert again.code == 0, again.err
    assert again.out.startswith("the run has ended")
    assert "from 2 rounds" in told_by(tmp_path / "out")


@pytest.mark.slow
def test_needs_the_folder_of_a_recording(overheard: Command, plan: Path) -> None:
    assert_user_error(overheard("audit", plan, "--follow"), "--follow needs a recording")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_sigterm_ends_the_wait(plan: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "overheard", "audit", str(plan), "--follow"]
    command += ["--transcript", str(tmp_path / "later"), "--out", str(tmp_path / "out"), *CPU]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith("waiting for the first round of ")
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 143
    assert "Traceback" not in errors
    assert list((tmp_path / "out").iterdir()) == []


NOISE = Mechanism(1.0, 1.0, 1e-5, "server", "server")


@pytest.fixture(scope="module")
def found(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """The audit of a recording with ground truth: threats about clients and the cohort."""
    threats = (TINY.threats[0].model_copy(update={"by_round": False}), COHORT_THREAT)
    plan = replace_tables(TINY, threats=threats)
    out = tmp_path_factory.mktemp("round-lines") / "audit"
    return audit(plan, out, recording=recording, resources=Resources(device="cpu", workers=1))


def line(audit: Audit) -> str:
    return describe_round(FollowedRound(4, 5, 1.25, with_verdicts(audit)))


def with_defense(audit: Audit, mechanism: Mechanism, epsilon: float | None) -> Audit:
    recomputed = None if epsilon is None else RecomputedEpsilon(epsilon, epsilon, None, 1.0)
    accounted = AccountedMechanism(mechanism, RunParameters(5, 1.0), recomputed)
    defense = ArmDefense("Noisy(clip=1.0)", "server", "the server", "as recorded", accounted)
    return replace(audit, arms=(replace(audit.arms[0], defenses=(defense,)),))


def test_states_the_score_and_the_guess_of_each_threat(found: Audit) -> None:
    said = line(found)
    assert said.startswith(
        "round 4, 1.2 s after its end: the server, label shares of 3 clients: "
    )
    assert "the server, label shares of the cohort: " in said
    assert said.count("guessing: ") == 2
    assert "epsilon" not in said
    assert "\n" not in said


def test_unchecked_claims_have_an_example_and_no_score(found: Audit) -> None:
    unchecked = tuple(
        replace(one, true=None, scores=(), guesses={"uniform": (0.1,) * 10})
        for one in found.findings
    )
    said = line(replace(found, findings=unchecked))
    assert "label shares of 3 clients: claimed, not checked (for example, the attack" in said
    assert " % of the data of client" in said  # with a plain space, for a terminal
    assert "guessing" not in said


def test_says_what_attacks_lacked_that_could_not_run(found: Audit) -> None:
    first = found.findings[0]
    refusal = Refusal(first.cell, first.target, ("a reason that is long: " + 300 * "x",))
    said = line(replace(found, findings=(), refusals=(refusal,)))
    assert "the server, label shares: no attack could run (missing: a reason" in said
    assert said.endswith("x…)")


def test_states_the_epsilon_spent_so_far_beside_the_promise(found: Audit) -> None:
    assert line(with_defense(found, NOISE, 6.571)).endswith("; Noisy: epsilon 6.58 spent")
    promised = replace(NOISE, stated=8.0)
    assert line(with_defense(found, promised, 6.571)).endswith("spent (8 promised)")
    each = replace(promised, stated_for="round")
    assert line(with_defense(found, each, 6.571)).endswith("spent (8 a round promised)")


def test_a_mechanism_without_guarantee_spends_nothing(found: Audit) -> None:
    said = line(with_defense(found, replace(NOISE, bounded_at=None), 6.5))
    assert "; Noisy: no guarantee, its noise suits updates" in said
    assert "spent" not in said


def test_says_what_to_install_where_epsilon_cannot_be_computed(found: Audit) -> None:
    assert "computing epsilon requires dp-accounting" in line(with_defense(found, NOISE, None))


def drawn(*, terminal: bool, quiet: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100)
    with progress_bar(console, quiet) as on_step:
        for done in range(3):
            on_step(ProgressStep(f"[red]none[/red], seed {done}", done, 2))
    return file.getvalue()


def test_shows_progress_on_a_terminal():
    shown = drawn(terminal=True, quiet=False)
    assert "2/2" in shown
    assert "[red]none[/red], seed 2" in shown


def test_shows_no_progress_if_quiet_and_none_of_quick_work_without_a_terminal():
    assert drawn(terminal=False, quiet=False).strip() == ""
    assert drawn(terminal=True, quiet=True) == ""


def test_prints_plain_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch):
    clock = iter([0.0, 1.0, 16.0, 17.0])
    monkeypatch.setattr("overheard.cli.progress.monotonic", lambda: next(clock))
    said = drawn(terminal=False, quiet=False)
    assert said == "1 of 2, 16 s: [red]none[/red], seed 1\n"


def test_a_plan_that_asks_for_pictures_after_the_audit_gets_those_of_the_stored_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LabelShares, "pictures", lambda _: (Picture("x", torch.eye(2)[None]),))
    page = tmp_path / "pictures.html"
    asking = replace_tables(TINY, report=ReportPlan(pictures=True))
    for plan, is_asked in ((TINY, False), (asking, True), (TINY, False)):
        said = audit_and_report(plan, tmp_path, HERE, None, rerun=False, quiet=True)
        assert page.exists() == is_asked
        assert any(str(page) in one for one in said.further) == is_asked
        assert b"data:image" not in (tmp_path / "report.html").read_bytes()
