"""The conclusions of all papers: what each says, and whether it holds here."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import format_number
from overheard_studies.conclusion import Conclusion, lacks_runs
from overheard_studies.experiments import StoredExperiment
from overheard_studies.measurements import paper as measurements
from overheard_studies.pages.experiment_page import PaperStatement, State

STATES: dict[State, str] = {
    "yes": "holds here",
    "no": "does not hold here",
    "undecided": "undecided",
    "cannot be run here": "cannot be run here",
}

AT_REDUCED_SIZE: dict[State, str] = {
    "yes": "holds at a reduced size",
    "no": "does not hold at a reduced size",
}
"""What a run by `--quick` tells."""

COUNTED = (
    *(words[state] for state in AT_REDUCED_SIZE for words in (STATES, AT_REDUCED_SIZE)),
    *(words for state, words in STATES.items() if state not in AT_REDUCED_SIZE),
)
"""The states in the order in which they are counted."""

HEAD = """\
# Conclusions of the papers

Look up here what the papers say, and whether it holds in the runs of this repository. A command
writes this page from the stored values:

```sh
overheard reproduce --report --out studies/reproduced --markdown studies/conclusions.md
```

Each conclusion was stated as code: a statistic, the side of a margin on which it must lie, and
the audits. It holds here if the 95 % interval over at least five runs lies on the paper's side
of the margin. It does not hold here if the interval lies on the other side. Otherwise it is
undecided. The size says how much was run: "full" is the paper's size, "own size" another one.
At a "reduced" size, that of `--quick`, there are fewer rounds, clients or examples, or attacks
do less work. What holds there, or does not, may be otherwise at the paper's size: it is counted
apart.
A commit that ends with "-dirty" was changed before the run. Core hours spent are a lower
bound: commands that were killed, or ran in another folder, are not counted.
"""


def of_papers(experiments: Iterable[StoredExperiment]) -> list[StoredExperiment]:
    """Return the experiments that repeat a paper."""
    return [
        one for one in experiments if not one.name.startswith(f"{measurements.PAPER.name}/")
    ]


def by_paper(
    experiments: Iterable[StoredExperiment],
) -> Mapping[str, Sequence[StoredExperiment]]:
    """Return the experiments of each paper, by its name."""
    of_paper = defaultdict[str, list[StoredExperiment]](list)
    for one in experiments:
        of_paper[one.name.partition("/")[0]].append(one)
    return of_paper


def judge_stored(one: StoredExperiment) -> Iterator[tuple[StoredExperiment, PaperStatement]]:
    """Yield each conclusion of an experiment, as stored values judge it, with their run.

    The run of the full size counts where it has enough runs. Otherwise that by `--quick`
    counts, if it decides. A conclusion that was changed after it was stored is undecided.
    """
    runs = [run for run in (one, one.quick_run) if run is not None]
    for conclusion in one.study.conclusions:
        found = [(run, told) for run in runs if (told := _find(run, conclusion)) is not None]
        counts = [
            (run, told)
            for run, told in found
            if told.holds in ("yes", "no") or (run is one and not lacks_runs(told))
        ]
        yield next(iter([*counts, *found]), (one, _not_judged(one, conclusion)))


def _find(run: StoredExperiment, conclusion: Conclusion) -> PaperStatement | None:
    stated = (conclusion.key, conclusion.statement, conclusion.condition)
    stored = () if run.stored is None else run.stored.conclusions
    same = [one for one in stored if (one.key, one.statement, one.condition) == stated]
    return same[0] if same else None


def _not_judged(one: StoredExperiment, conclusion: Conclusion) -> PaperStatement:
    reason = conclusion.reason_not_run or one.study.reason_not_run
    told = "not judged: its values were stored before it was stated so"
    return PaperStatement(
        conclusion.key,
        conclusion.statement,
        "cannot be run here" if reason else "undecided",
        reason or (one.size if one.stored is None else told),
        conclusion.condition,
    )


def conclusions_table(experiments: Sequence[StoredExperiment]) -> ReportTable:
    """Return a row for each conclusion of the experiments."""
    return ReportTable(
        "Conclusions of the papers",
        (
            "Experiment",
            "The paper says",
            "State",
            "Statistic with 95 % interval",
            "It must lie",
            "Size and commit",
        ),
        tuple(
            (
                one.name,
                make_printable(each.statement),
                state_words(run, each),
                make_printable(each.evidence),
                each.condition,
                make_printable(_origin(run)),
            )
            for one in experiments
            for run, each in judge_stored(one)
        ),
        6,
    )


def state_words(run: StoredExperiment, judged: PaperStatement) -> str:
    """Return in words whether a conclusion holds, as this run judges it."""
    is_reduced = run.stored is not None and run.stored.quick
    return ((STATES | AT_REDUCED_SIZE) if is_reduced else STATES)[judged.holds]


def _origin(run: StoredExperiment) -> str:
    if run.how_run is None:
        return run.size
    return f"{run.size} ({run.how_run.size}), commit {run.how_run.short_commit}"


def conclusion_counts(experiments: Sequence[StoredExperiment]) -> ReportTable:
    """Return how many conclusions of each paper hold here, and the core hours."""
    rows = list[tuple[str, ...]]()
    for paper, those in by_paper(experiments).items():
        counts = Counter(state_words(*judged) for one in those for judged in judge_stored(one))
        rows.append(
            (
                paper,
                str(len(those)),
                str(sum(one.stored is not None for one in those)),
                *(str(counts[state]) for state in COUNTED),
                format_number(sum(one.hours_spent for one in those)),
                format_number(sum(one.hours_left for one in those)),
            )
        )
    headers = (
        "Paper",
        "Experiments",
        "Run",
        *(state.capitalize() for state in COUNTED),
        "Core hours spent",
        "Core hours not run",
    )
    return ReportTable("Conclusions by paper", headers, tuple(rows), 1)


def sizes_table(experiments: Sequence[StoredExperiment]) -> ReportTable:
    """Return the size of each experiment here, beside that in the paper."""
    headers = ("Experiment", "Run", "Size here", "Size in the paper", "Run on")
    return ReportTable(
        "Sizes",
        headers,
        tuple(
            (
                one.name,
                make_printable(one.size),
                "" if one.how_run is None else make_printable(one.how_run.size),
                make_printable(one.study.paper_size),
                ""
                if one.how_run is None
                else make_printable(f"{one.how_run.date}, {one.how_run.device}"),
            )
            for one in experiments
        ),
        5,
    )


def conclusions_page(experiments: Sequence[StoredExperiment]) -> str:
    """Return the page of all conclusions, in Markdown."""
    parts = [HEAD, "## By paper\n", _markdown(conclusion_counts(experiments))]
    for paper, of_paper in by_paper(experiments).items():
        table = conclusions_table(of_paper)
        if table.rows:
            parts += [f"## {paper}\n", _markdown(table)]
    return "\n".join([*parts, "## Sizes\n", _markdown(sizes_table(experiments))])


def _markdown(table: ReportTable) -> str:
    lines = [table.headers, tuple("---" for _ in table.headers), *table.rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    escaped = escape(" ".join(text.split()), quote=False)
    for mark in "\\|*_`[]":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
