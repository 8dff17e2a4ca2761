"""The page of pictures that claims show, beside the true ones: as sensitive as the data."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import final

import matplotlib.image
import torch

from overheard.core.claims import Picture
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Finding
from overheard.findings.names import make_printable, name_observers, name_targets
from overheard.report.template import load_template

PICTURES_FILE = "pictures.html"

MAX_CLAIMS = 24
"""Most claims of an attack that are drawn; of more the page gives the number."""

MAX_PICTURES = 64
"""Most pictures of a claim that are drawn; of more the page gives the number."""


@final
@dataclass(frozen=True, slots=True)
class _PictureRow:
    """Pictures side by side.

    Args:
        title: whose claim it is, or that it is the truth.
        pictures: by name, the address of each; names repeat.
        left_out: how many more there are.

    """

    title: str
    pictures: tuple[tuple[str, str], ...]
    left_out: int


@final
@dataclass(frozen=True, slots=True)
class _AttackPictures:
    """The pictures of an attack on a run, and how many claims are left out."""

    title: str
    rows: tuple[_PictureRow, ...]
    left_out: int


def render_pictures(audit: Audit) -> str:
    """Return a page with the pictures of an audit's findings; "" if there are none.

    They are of the claims over the most rounds. The page may load nothing; its policy allows
    the pictures that it contains.
    """
    by_attack: dict[Cell, list[Finding]] = {}
    for one in audit.findings:
        if one.claimed.pictures and not one.cell.is_control:
            by_attack.setdefault(replace(one.cell, rounds=()), []).append(one)
    if not by_attack:
        return ""
    return load_template("pictures.html.j2").render(
        title=make_printable(audit.title),
        attacks=[_attack(cell, findings) for cell, findings in by_attack.items()],
    )


def _attack(cell: Cell, findings: Sequence[Finding]) -> _AttackPictures:
    most = max(len(one.cell.rounds) for one in findings)
    overall = [one for one in findings if len(one.cell.rounds) == most]
    by = f"{cell.attack} by {name_observers(cell.observers)}"
    return _AttackPictures(
        make_printable(f"{cell.arm}, seed {cell.seed}: {by}"),
        tuple(row for one in overall[:MAX_CLAIMS] for row in _rows(one)),
        max(0, len(overall) - MAX_CLAIMS),
    )


def _rows(finding: Finding) -> Iterator[_PictureRow]:
    target = name_targets(finding.targets, finding.cell.observers)
    yield _row(f"Claimed of {target}", finding.claimed.pictures)
    if finding.true is not None and finding.true.pictures:
        yield _row(f"True of {target}", finding.true.pictures)


def _row(title: str, pictures: Sequence[Picture]) -> _PictureRow:
    return _PictureRow(
        title,
        tuple((make_printable(one.name), _address(one)) for one in pictures[:MAX_PICTURES]),
        max(0, len(pictures) - MAX_PICTURES),
    )


def _address(picture: Picture) -> str:
    """Return a picture as an address that contains it, as PNG."""
    pixels = (picture.pixels.detach().cpu().double() * 255).round().to(torch.uint8)
    content = BytesIO()
    matplotlib.image.imsave(
        content,
        pixels.expand(3, -1, -1).permute(1, 2, 0).numpy(),  # (height, width, channels)
        format="png",
    )
    return f"data:image/png;base64,{b64encode(content.getvalue()).decode('ascii')}"
