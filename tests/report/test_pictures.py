"""Pictures of claims are on a page of their own, and on no other page or file."""

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import matplotlib.image
import pytest
import torch

from overheard.auditing.threat_results import with_verdicts
from overheard.core.claims import Picture
from overheard.core.errors import ClaimError
from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard.findings.finding import ClaimRow, Finding
from overheard.report.exports import as_csv, as_json
from overheard.report.page import render_page
from overheard.report.pictures import MAX_CLAIMS, MAX_PICTURES, PICTURES_FILE, render_pictures
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.write import write_release
from overheard.report.write import write_interim_report, write_report
from tests.report.evidence.test_write import DAY

DARK_RED = Picture("<i>first</i>\u202e", torch.tensor([0.2, 0.0, 0.0]).view(3, 1, 1))
GREY = Picture("true one", torch.full((1, 2, 3), 1.0))


def drawn(finding: Finding, *pictures: Picture) -> Finding:
    """The same finding, whose claim shows these pictures, beside a true one."""
    claimed = replace(finding.claimed, pictures=pictures)
    return replace(finding, claimed=claimed, true=ClaimRow((0.5, 0.5), pictures=(GREY,)))


@pytest.fixture
def shown(small: Audit) -> Audit:
    """An audit whose first finding has a picture."""
    first, *others = small.findings
    return with_verdicts(replace(small, findings=(drawn(first, DARK_RED), *others)))


def test_the_page_has_claimed_and_true_pictures(shown: Audit) -> None:
    page = render_pictures(shown)
    assert page.index("Claimed of client 0") < page.index("True of client 0")
    contents = [b64decode(one) for one in re.findall(r'"data:image/png;base64,([^"]+)"', page)]
    red, grey = (matplotlib.image.imread(BytesIO(one), format="png") for one in contents)
    assert red[..., :3].tolist() == [[[pytest.approx(0.2), 0, 0]]]
    assert grey.shape[:2] == (2, 3)
    assert float(grey.min()) == 1.0


def test_titles_name_the_targets_of_a_joint_claim_or_their_number(shown: Audit) -> None:
    joint, *_ = shown.findings
    for targets, title in (
        ((client(0), client(2)), "client 0 and client 2 together"),
        (tuple(map(client, range(7))), "7 clients together"),
    ):
        page = render_pictures(replace(shown, findings=(replace(joint, targets=targets),)))
        assert f"Claimed of {title}" in page
        assert f"True of {title}" in page


def test_the_page_escapes_names_and_may_load_nothing(shown: Audit) -> None:
    page = render_pictures(shown)
    assert "<i>" not in page
    assert "\u202e" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith("; img-src data:")


def test_no_other_page_or_file_has_them(shown: Audit, tmp_path: Path) -> None:
    assert "img-src" not in render_page(shown)
    for text in (render_page(shown), as_json(shown), as_csv(shown)):
        assert "data:image" not in text
    write_report(shown, tmp_path)
    assert (tmp_path / PICTURES_FILE).read_text() == render_pictures(shown)
    out = tmp_path / "out"
    write_release(tmp_path, out, ReleaseSettings(least_group=1, with_clients=True), DAY)
    assert all(b"data:image" not in one.read_bytes() for one in out.rglob("*") if one.is_file())


@pytest.mark.parametrize("write", [write_report, write_interim_report])
def test_pictures_of_an_earlier_audit_are_removed(
    write: Callable[[Audit, Path], None], small: Audit, tmp_path: Path
) -> None:
    (tmp_path / PICTURES_FILE).write_text("of a plan that asked for them")
    write(with_verdicts(small), tmp_path)
    assert (tmp_path / "report.html").exists()
    assert not (tmp_path / PICTURES_FILE).exists()


def test_there_is_no_page_without_pictures_and_none_for_controls(shown: Audit) -> None:
    first, *others = shown.findings
    control = replace(first, cell=replace(first.cell, is_control=True))
    assert render_pictures(replace(shown, findings=(control, *others))) == ""


def test_single_rounds_are_left_out_and_many_are_counted(shown: Audit) -> None:
    first = drawn(shown.findings[0], *[DARK_RED] * (MAX_PICTURES + 2))
    early = replace(first, cell=replace(first.cell, rounds=()))
    many = (early, *[first] * (MAX_CLAIMS + 1))
    page = render_pictures(replace(shown, findings=many))
    assert page.count("<img ") == MAX_CLAIMS * (MAX_PICTURES + 1)
    assert page.count("2 more are not drawn") == MAX_CLAIMS
    assert "Of 1 more claims" in page


@pytest.mark.parametrize(
    "pixels",
    [torch.zeros(2, 4, 4), torch.zeros(4, 4), torch.zeros(1, 0, 4), torch.tensor([[[1.1]]]),
     torch.tensor([[[float("nan")]]])],
)  # fmt: skip
def test_what_is_no_picture_is_refused(pixels: torch.Tensor) -> None:
    with pytest.raises(ClaimError, match="picture"):
        Picture("p", pixels)
