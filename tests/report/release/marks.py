"""Findings with a mark in every place to which names, paths or figures of clients can come."""

import base64
import html
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from overheard.report.release.safe_texts import IN_CLEAR
from tests.gate.documents import (
    JsonObject,
    document,
    epsilon_row,
    refusal,
    run,
    summary_row,
    verdict_row,
)

SHARES = (0.271828182845, 0.161803398874)
"""What is claimed and true of a client: digits that nothing else has."""


class Marks:
    """Gives each place a word that occurs nowhere else."""

    def __init__(self) -> None:
        self.places = dict[str, str]()

    def at(self, place: str) -> str:
        """Return the mark of a place."""
        number = len(self.places)
        return self.places.setdefault(place, f"Zq{number:03d}Xw")

    def path_at(self, place: str) -> str:
        """Return a path that contains the mark of a place."""
        return f"/home/{self.at(f'{place}: user')}/{self.at(place)}.csv"


def marked_findings(marks: Marks) -> JsonObject:
    """Return the findings of a recording, with marks wherever others than its owner write."""
    near, far = f"client/{marks.at('observer')}", f"client/{marks.at('target')}"
    own = f"{marks.at('module of an attack')}:Mine"
    path = f"decaf(solver='{marks.path_at('setting of an attack')}')"
    defense = f"{marks.at('own defense')}(file='{marks.path_at('setting of a defense')}')"
    observers: JsonObject = {"observers": [near, "server"]}
    nothing: JsonObject = {"gain": None, "score": "", "attack": ""}
    verdicts = [
        verdict_row(sentence=f"The server reads {marks.at('sentence')}."),
        verdict_row(
            "not enough to judge",
            **observers,
            sentence=f"Client {marks.at('sentence of a doubt')}.",
            why=marks.path_at("failure of a test"),
            withheld=marks.path_at("failure of a test"),
            attack=own,
            gain=None,
            shared_gains={own: 0.0, path: 0.0},
        ),
        verdict_row("unmeasured", None, question="label_shares", **nothing),
        verdict_row("unchecked", None, question="identity", **nothing),
        verdict_row(about="cohort", observers=[near]),
    ]
    rows = [
        summary_row(targets=9),
        summary_row(targets=9, attack=path),
        summary_row(targets=9, attack=f"decaf(solver='{marks.at('text of an attack')}')"),
        summary_row(**observers, targets=9, attack=own),
        summary_row(about="cohort", observers=[near], targets=1),
    ]
    refused = [
        refusal(question="label_shares", target=far, missing=[marks.at(f"missing {kind}")],
                kind=kind, attack=own, settings=marks.path_at("settings of a refusal"),
                label=marks.at("label of a refusal"), part=marks.at("part of a refusal"))
        for kind in ("missing", "failed", "contradicted")
    ]  # fmt: skip
    noise: JsonObject = {
        "settings": defense,
        "enforced_at": "client",
        "switched_off_by": marks.at("who switches off"),
        "promise": marks.at("promise"),
    }
    kinds = (*IN_CLEAR, marks.at("own kind"))
    lost = [
        {
            "party": f"client/{marks.at(f'sender of a lost reply, {one}')}",
            "rounds": [1],
            "is_unrecorded": one,
            "reason": marks.path_at(f"reason of a lost reply, {one}"),
        }
        for one in (True, False)
    ]
    fault: JsonObject = {
        "round": 1,
        "sender": f"client/{marks.at('sender of a fault')}",
        "fault": marks.at("fault"),
        "mend": marks.path_at("mend of a fault"),
        "is_refusal": False,
    }
    return document(
        *rows,
        title="Nine hospitals",
        is_recorded=True,
        subject=f"a recorded run of {marks.at('framework')}; model {marks.at('own model')}; "
        f"auxiliary examples from {marks.path_at('data')}",
        recording={
            "outcome": "contradicts",
            "reason": marks.at("reason"),
            "sentences": [marks.at("sentence of the check")],
            "mend": marks.path_at("mend"),
            "accepted": marks.at("acceptance"),
            "faults": [fault],
        },
        arms=[
            run(clients=9, in_clear=[{"kind": one, "text": marks.at(f"{one} in clear")}
                                     for one in kinds], unrecorded=2, lost_replies=lost),
            run("noisy", clients=9, defenses=[noise]),
        ],
        verdicts=verdicts,
        epsilon=[
            epsilon_row("unaccounted", defense=defense, observers=[near], claim="not confirmed",
                        switched_off_by=marks.at("who switches off"),
                        doubt=marks.at("unproven mechanism")),
            epsilon_row("holds", observers=["server"], ceiling=2.0, measured={
                "at_least": 0.5, "attack": own, "above": 0.5, "below": None, "said_in": 20,
                "said_out": 0, "right": 18, "members": 30, "outsiders": 30,
            }),
        ],
        findings=[claim(marks, near, far, own)],
        refusals=refused,
        plan=marked_plan(marks, near),
    )  # fmt: skip


def claim(marks: Marks, near: str, far: str, own: str) -> JsonObject:
    """Return what an attack claims of a client."""
    settings = marks.path_at("settings of a claim")
    return refusal(observers=[near], target=far, attack=own, settings=settings) | {
        "label": marks.at("label of a claim"),
        "part": marks.at("part of a claim"),
        "claimed": [SHARES[0]],
        "true": [SHARES[1]],
        "low": None,
        "high": None,
        "timeline": None,
        "true_since": None,
        "candidates": [marks.at("candidate")],
        "none_of_them": None,
        "true_user": marks.at("user"),
        "is_checked": True,
        "blind": {},
        "doubt": marks.at("doubt"),
        "learning_curve": None,
        "scores": [{"name": "membership_auc", "value": SHARES[0], "better": "higher",
                    "blinds": {}, "references": {}, "gain": None}],
    }  # fmt: skip


def marked_plan(marks: Marks, near: str) -> str:
    """Return a plan with names and paths in its comments and tables."""
    return f"""\
# {marks.at("comment of the plan")}
title = "Nine hospitals"
[data]
people = {{ share = 0.5, column = "{marks.at("column of users")}" }}
[data.source]
kind = "table"
path = "{marks.path_at("data of the plan")}"
[training]
rate = 0.1
optimizer = "sgd"
model = "{marks.at("module of a model")}:build"
[recording]
accept = "{marks.at("acceptance in the plan")}"
[[arms]]
name = "noisy"
defenses = [{{ kind = "{marks.at("kind of a defense")}" }}]
[[threats]]
observers = ["{near}", "server"] # {marks.at("comment of a threat")}
knows = ["auxiliary", "{marks.at("knowledge")}"]
attacks = [{{ kind = "{marks.at("kind of an attack")}" }}, "{marks.at("attack")}"]
[plugins.attacks]
decaf = {{ file = "{marks.path_at("plugin")}" }}
"""


def every_text(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield all texts that somebody could read out of the files of a folder, in small letters.

    Names of files, compressed parts and text of PDFs, numbers of characters in HTML and JSON,
    and what is coded in base 64 are read as well.
    """
    for path in sorted(folder.rglob("*")):
        yield path.name, str(path.relative_to(folder)).lower()
        if not path.is_file():
            continue
        content = path.read_bytes()
        parts = [content, *_inflated(content)]
        texts = [part.decode("utf-8", errors="replace") for part in parts]
        texts += [html.unescape(texts[0]), re.sub(r"\\u([0-9a-f]{4})", _character, texts[0])]
        if path.suffix == ".pdf":
            texts.append(pdf_text(content))
        texts += [
            base64.b64decode(one[: len(one) // 4 * 4]).decode("utf-8", errors="replace")
            for one in re.findall(r"[A-Za-z0-9+/]{12,}", texts[0])
        ]
        yield path.name, "\n".join(texts).lower()


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _inflated(content: bytes) -> Iterator[bytes]:
    for match in re.finditer(rb"stream\r?\n", content):
        try:
            yield zlib.decompressobj().decompress(content[match.end() :])
        except zlib.error:
            continue


def pdf_text(content: bytes) -> str:
    """Return the text of a PDF whose fonts say which character each glyph is.

    A string is read by the glyphs of each font, of which one is the right one.
    """
    fonts = [
        {int(code, 16): int(letter, 16) for code, letter in _GLYPH.findall(table)}
        for table in re.findall(rb"beginbfchar(.*?)endbfchar", content, re.DOTALL)
    ]
    shown = [
        re.sub(rb"\\(.)", _unescape, one, flags=re.DOTALL).decode("utf-16-be", errors="replace")
        for stream in _inflated(content)
        for one in re.findall(rb"\(((?:\\.|[^()\\])*)\) Tj", stream, re.DOTALL)
    ]
    return "\n".join(one.translate(glyphs) for glyphs in fonts for one in shown)


_GLYPH = re.compile(rb"<([0-9A-Fa-f]{2,4})> <([0-9A-Fa-f]{4})>")


def _unescape(match: re.Match[bytes]) -> bytes:
    return {b"r": b"\r", b"n": b"\n", b"t": b"\t"}.get(match[1], match[1])
