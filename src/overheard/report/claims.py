"""What attacks claim of a run whose truth is not known, beside what one would guess."""

from collections.abc import Sequence

import numpy as np

from overheard.drawing.charts import shares_chart
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.figures import NO_FIGURE, digits, percent
from overheard.findings.finding import Finding
from overheard.findings.names import all_others, called, shown, together
from overheard.questions.label_shares.pages.intervals import LEVEL
from overheard.questions.label_shares.pages.shares_plates import DRAWN, bounds_of
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.questions.membership.scorer import MembershipScorer

UNCHECKED = "Nothing was checked against the truth"


def claim_words(exposure: Exposure) -> tuple[str, ...]:
    """What these observers claim, in a few sentences, and that nobody checked it."""
    attacks = list(dict.fromkeys(one.cell.attack for one in exposure.claims))
    targets = {one.target for one in exposure.claims}
    whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
    if exposure.about == "clients":
        whom = f"{len(targets)} client{'' if len(targets) == 1 else 's'}"
    who, what = together(exposure.observers), shown(exposure.question).replace("_", " ")
    rounds = len(exposure.claims[0].cell.rounds)
    return (
        f"{who[0].upper()}{who[1:]} makes claims about {whom} ({what}) from {rounds} "
        f"round{'' if rounds == 1 else 's'}. {UNCHECKED}: how right they are is not known, and "
        "not known is not the same as no leak.",
        *(sentence for attack in attacks for sentence in _outside(exposure, attack)),
        f"Attacks: {', '.join(map(shown, attacks))}.",
    )


def claims_plates(every: Sequence[Arm], class_names: Sequence[str]) -> tuple[Plate, ...]:
    """Claimed shares of each client beside a guess, one figure an attack."""
    return tuple(
        _plate(exposure, attack, class_names)
        for arm in every
        for exposure in arm.exposures
        if exposure.question == LabelSharesScorer.name
        for attack in dict.fromkeys(one.cell.attack for one in exposure.claims)
    )


def claims_tables(arm: Arm) -> tuple[Table, ...]:
    """Claims about anything but shares, a line a target."""
    return tuple(
        _table(exposure, attack)
        for exposure in arm.exposures
        if exposure.question != LabelSharesScorer.name
        for attack in dict.fromkeys(one.cell.attack for one in exposure.claims)
    )


def _of(exposure: Exposure, attack: str) -> list[Finding]:
    return [one for one in exposure.claims if one.cell.attack == attack]


def _guess(finding: Finding) -> tuple[str, tuple[float, ...]] | None:
    """The guess of the attacker's own examples where it has some, else the customary one."""
    told = [(name, numbers) for name, numbers in finding.blind.items() if numbers]
    return told[-1] if told else None


def _outside(exposure: Exposure, attack: str) -> tuple[str, ...]:
    """In how many shares the stated interval leaves a guess out."""
    left_out, count, which = 0, 0, ""
    for one in _of(exposure, attack):
        guess = _guess(one)
        if one.low is None or one.high is None or guess is None:
            continue
        which, numbers = guess
        if len(numbers) != len(one.low):
            continue
        ends = zip(one.low, numbers, one.high, strict=True)
        left_out += sum(not low <= number <= high for low, number, high in ends)
        count += len(numbers)
    if not count:
        return ()
    return (
        f"{percent(left_out / count)} of the {count} intervals of {LEVEL} that {shown(attack)} "
        f"states leave out what one would guess ({shown(which)}); were the guess true, it "
        "would be some 10 %.",
    )


def _plate(exposure: Exposure, attack: str, class_names: Sequence[str]) -> Plate:
    held = _of(exposure, attack)
    drawn = _furthest(held)
    guess = _guess(held[0])
    bars = (0.0,) * len(class_names) if guess is None else guess[1]
    top = max(max(*bars, *one.claimed, *(one.high or ())) for one in drawn)
    where = f"{shown(exposure.arm)} · {exposure.title} · {shown(attack)}"
    names = {one.target: called(one.target, exposure.observers) for one in drawn}
    bar = "" if guess is None else f"Bar: what one would guess ({shown(guess[0])}). "
    bounded = any(one.low is not None for one in drawn)
    line = f" Line: its {LEVEL} interval." if bounded else ""
    more = (
        f" Drawn are the {len(drawn)} of {len(held)} clients that lie furthest from it; all "
        "others are in findings.csv."
        if len(drawn) < len(held)
        else ""
    )
    return Plate(
        where,
        f"{UNCHECKED}. {bar}Dot: what the observer infers.{line}{more}",
        None,
        tuple(
            Panel(
                names[one.target],
                shares_chart(
                    class_names,
                    bars,
                    one.claimed,
                    bounds_of(one),
                    top,
                    f"Guessed and inferred shares of {names[one.target]}: {where}",
                ),
            )
            for one in drawn
        ),
        Table(
            f"Inferred share of each class in % (bounds of the {LEVEL} interval): {where}",
            ("Client", *map(shown, class_names)),
            (
                *(
                    (f"a guess: {shown(name)}", *(digits(100 * one) for one in numbers))
                    for name, numbers in held[0].blind.items()
                ),
                *((names[one.target], *_cells(one)) for one in drawn),
            ),
            1,
        ),
        True,
    )


def _cells(finding: Finding) -> list[str]:
    bounds = bounds_of(finding)
    if bounds is None:
        return [digits(100 * share) for share in finding.claimed]
    return [
        f"{digits(100 * share)} ({digits(100 * low)} to {digits(100 * high)})"
        for share, low, high in zip(finding.claimed, bounds.low, bounds.high, strict=True)
    ]


def _furthest(findings: Sequence[Finding]) -> Sequence[Finding]:
    guess = _guess(findings[0])
    if len(findings) <= DRAWN or guess is None:
        return findings[:DRAWN]
    far = np.abs(np.array([one.claimed for one in findings]) - np.array(guess[1])).sum(1)
    chosen = np.sort(np.argsort(-far, kind="stable")[:DRAWN])
    return [findings[place] for place in chosen]


def _table(exposure: Exposure, attack: str) -> Table:
    held = _of(exposure, attack)
    more = "" if len(held) <= DRAWN else f" (the first {DRAWN} of {len(held)})"
    return Table(
        f"{UNCHECKED}: {shown(exposure.arm)} · {exposure.title} · {shown(attack)}{more}",
        ("Target", "Claim"),
        tuple((called(one.target, exposure.observers), _said(one)) for one in held[:DRAWN]),
        2,
    )


def _said(finding: Finding) -> str:
    """A claim that is no share, in words."""
    if finding.timeline is not None:
        alarm, since = finding.timeline.alarm, finding.timeline.since
        raised = "no alarm" if alarm is None else f"alarm in round {alarm}"
        return raised if since is None else f"{raised}; new data since round {since}"
    if finding.candidates:
        order = np.argsort(-np.array(finding.claimed), kind="stable")[:2]
        first = [
            f"{shown(finding.candidates[place])} ({digits(finding.claimed[place])})"
            for place in order
        ]
        none = finding.none_of_them
        nobody = "" if none is None else f"; none of them with a chance of {percent(none)}"
        return f"{', then '.join(first)}{nobody}"
    if finding.cell.question == MembershipScorer.name:
        inside = sum(score > 0 for score in finding.claimed)
        return f"{inside} of {len(finding.claimed)} records told as trained on"
    return ", ".join(map(digits, finding.claimed[:DRAWN])) or NO_FIGURE
