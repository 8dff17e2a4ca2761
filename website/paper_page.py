"""The page on papers: every table and figure that can be repeated, with its command."""

from overheard_studies.reproduce import find_papers
from website.site_markdown import cell, table

_HEAD = """\
# Papers

Look up here which tables and figures of papers Overheard repeats. The command `overheard
reproduce PAPER/EXPERIMENT --data DATA` runs one of them. It puts every value beside the
published one. With `--quick` it runs a smaller size, which takes minutes.
[Repeat a paper's results](reproductions.md) tells how, [the journal](studies/reproductions.md)
what came out, and [another page](reproduced/index.html)
shows every stored value beside the published one. `overheard list papers` prints this list.
"""


def paper_page() -> str:
    """Return the page on all experiments of all papers."""
    return _HEAD + "".join(
        f"\n## {paper.title} {{#{name}}}\n\n{cell(paper.source)}\n\n"
        + table(
            ("name", "what it shows"),
            [(f"`{name}/{key}`", cell(one.title)) for key, one in paper.studies().items()],
        )
        for name, paper in find_papers().items()
    )
