"""The commands that read findings: `check`, `compare` and `records`."""

from dataclasses import asdict, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from overheard.cli.exits import UsageError
from overheard.cli.options import JsonOption, QuietOption
from overheard.cli.purging import print_purge
from overheard.cli.terminal import escaped_text

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.findings.document import FindingsDocument
    from overheard.findings.document_rows import FindingRow
    from overheard.report.release.left_out import ReleaseSettings


def check(
    findings: Annotated[Path, typer.Argument(help="findings.json of an audit, or its folder.")],
    policy: Annotated[
        Path | None, typer.Option("--policy", help="The policy (TOML). Or give --like.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--like", help="findings.json of a reference audit: no result may be worse."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            min=0.0,
            help="With --like: how much worse a score may be, in its own unit. Default: the "
            "margins of the reference.",
        ),
    ] = None,
    write_policy: Annotated[
        Path | None,
        typer.Option("--write-policy", help="With --like: write the policy to this file."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", help="findings.json of an earlier audit, for rules on growth."
        ),
    ] = None,
    sarif: Annotated[
        Path | None,
        typer.Option("--sarif", help="Write what does not pass to this file as SARIF 2.1.0."),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", help="Write the verdicts to this file as JUnit XML."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="Write the verdicts to this file as Markdown."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check an audit's findings against a policy, as a gate in a pipeline.

    Rules ask for verdicts without a leak (verdicts), and limit the success of
    attacks (leaks), claimed and proven epsilon (epsilons), and the cost of
    arms (costs). A limit is compared with the whole confidence interval of a
    value, never with its mean. Without a policy, --like makes one of the
    findings of a reference audit, and --write-policy keeps it.

    \b
    Exit codes:
      0  every rule passes
      1  a rule fails: a limit is exceeded, a privacy claim is refuted, or an
         exception has expired
      2  inconclusive, not measured, or an input is invalid

    \b
    A policy is TOML:
      [\\[verdicts]]
      name = "nothing leaks"

      [\\[leaks]]
      name = "membership stays hidden"
      question = "membership"
      score = "membership_auc"
      no_better_than = 0.6

      [\\[epsilons]]
      name = "local DP guarantee"
      arms = ["local DP"]
      guaranteed_at_most = 8.0

      [\\[exceptions]]
      rule = "membership stays hidden"
      reason = "accepted by the data protection officer, ticket 12"
      expires = 2027-01-31

    \b
    Examples:
      overheard check findings.json --policy policy.toml
      overheard check findings.json --policy policy.toml --sarif check.sarif
      overheard check findings.json --policy policy.toml --against earlier.json
      overheard check findings.json --like earlier.json --write-policy policy.toml
      overheard check findings.json --policy policy.toml --json | jq .status

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.checking import CheckOutputs, Reference, findings_path, run_check

    if (policy is None) == (like is None):
        raise UsageError("Give either --policy FILE or --like FILE.")
    if like is None and (tolerance is not None or write_policy is not None):
        raise UsageError("--tolerance and --write-policy belong to --like.")
    reference = (
        None if like is None else Reference(findings_path(like), tolerance, write_policy)
    )
    earlier = None if against is None else findings_path(against)
    outputs = CheckOutputs(sarif=sarif, junit=junit, markdown=markdown, json=json, quiet=quiet)
    print_purge(findings, quiet=quiet)
    code = run_check(findings_path(findings), policy, reference, earlier, outputs)
    raise typer.Exit(code)


def compare(
    before: Annotated[
        Path, typer.Argument(help="Folder of the first audit, or its findings.json.")
    ],
    after: Annotated[
        Path, typer.Argument(help="Folder of the second audit, or its findings.json.")
    ],
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="Write the changes to this file as Markdown."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what changed between two audits: verdicts, scores, epsilon, accuracy, plan.

    Of each attack, the score that verdicts judge is compared. A difference is
    "within the intervals" if the 95 % intervals of both audits allow that there
    is none. To fail on a change, use `overheard check --like`.

    If one of the two is a release, only what a release holds is compared.

    \b
    Exit codes:
      0  the audits were compared, whatever changed
      2  an input is invalid

    \b
    Examples:
      overheard compare audits/february audits/march
      overheard compare before.json after.json --markdown changes.md

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.cli.checking import findings_path, print_changes, refuse_to_overwrite
    from overheard.disk.writing import write_text
    from overheard.findings.document import read_findings
    from overheard.gate.audit_changes import compare_audits
    from overheard.gate.changes_text import changes_as_json, changes_as_markdown
    from overheard.report.release.left_out import read_release_settings

    paths = findings_path(before), findings_path(after)
    refuse_to_overwrite(paths, (markdown,))
    for path in (before, after):
        print_purge(path, quiet=quiet)
    first, second = read_findings(paths[0]), read_findings(paths[1])
    settings = [read_release_settings(path.parent) for path in paths]
    notes: tuple[str, ...] = ()
    if settings[0] is not None and settings[1] is None:
        second = _released(second, settings[0])
        notes = (_release_note(before),)
    elif settings[1] is not None and settings[0] is None:
        first = _released(first, settings[1])
        notes = (_release_note(after),)
    found = compare_audits(first, second)
    found = replace(found, notes=(*notes, *found.notes))
    if markdown is not None:
        text = changes_as_markdown(found)
        write_text(markdown, text, inside=markdown.parent, is_private=False)
    if json:
        typer.echo(changes_as_json(found), nl=False)
    elif not quiet:
        print_changes(found, Console(highlight=False))


def records(
    findings: Annotated[Path, typer.Argument(help="findings.json of an audit, or its folder.")],
    attack: Annotated[
        str, typer.Option("--attack", help="An attack on membership, such as lira_pooled.")
    ],
    rate: Annotated[
        float,
        typer.Option(
            "--rate", min=0.001, max=1.0, help="Largest expected share of false discoveries."
        ),
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """List the records of each client that an attack finds, by their numbers.

    A member is listed if it scores above the non-members of the same audit. On
    average at most the share --rate of a list are records of which the attack
    sees nothing (Benjamini and Hochberg). That holds where members and
    non-members are alike, as canaries are. If clients differ in their labels, an
    attack that sees only labels lists records too. Numbers count the candidate
    records of a seed from 0; no content of a record is printed.

    \b
    Example:
      overheard records audit --attack loss_membership --rate 0.05

    """  # noqa: D301 - a backspace tells click to keep the lines
    from json import dumps

    from overheard.cli.checking import findings_path
    from overheard.core.errors import FindingsError
    from overheard.report.release.released_findings import read_claims

    if isnan(rate):
        raise UsageError("--rate is no number: give a share, such as 0.1")
    path = findings_path(findings)
    claims = [
        one
        for one in read_claims(path)
        if one.question == "membership" and attack in (one.part, one.attack) and one.true
    ]
    if not claims:
        raise FindingsError(
            f"{path}: no scored claim of {attack!r} on membership: name an attack of the "
            "audit's plan, and audit a run whose ground truth is known"
        )
    rows = [_exposed_row(path, one, rate) for one in claims]
    if as_json:
        typer.echo(dumps(rows, indent=2))
    else:
        for row in rows:
            _print_exposed(row)
    if any(row["labels_differ"] for row in rows):
        typer.echo(
            "The labels of members and non-members differ, so the rate of false discoveries "
            "does not hold: a record may be listed for its label alone. Take canaries.",
            err=True,
        )


# Any: each key has values of its own type.
def _exposed_row(path: Path, claim: "FindingRow", rate: float) -> dict[str, Any]:
    """Return the records of a claim that its attack finds, as they are written in JSON."""
    from overheard.core.errors import FindingsError
    from overheard.questions.membership.measures import WITHIN_LABELS
    from overheard.questions.membership.statistics.exposed_records import find_exposed_records

    if len(claim.claimed) != len(claim.true):
        raise FindingsError(f"{path}: has damaged claims: run `overheard audit` again")
    scores, true = (
        tuple(number or 0.0 for number in row) for row in (claim.claimed, claim.true)
    )
    return {
        "arm": claim.arm,
        "seed": claim.seed,
        "rounds": claim.rounds,
        "target": claim.target,
        "members": sum(kind > 0 for kind in true),
        "labels_differ": any(one.name.endswith(WITHIN_LABELS) for one in claim.scores),
        "records": [asdict(one) for one in find_exposed_records(scores, true, rate)],
    }


def _print_exposed(row: dict[str, Any]) -> None:
    rounds = ", ".join(map(str, row["rounds"]))
    listed = ", ".join(f"{one['record']} (p {one['p_value']:.3g})" for one in row["records"])
    Console(highlight=False).print(
        escaped_text(
            f"{row['arm']}, seed {row['seed']}, {row['target']}, rounds {rounds}: "
            f"{len(row['records'])} of {row['members']} records{': ' * bool(listed)}{listed}"
        ),
        soft_wrap=True,
    )


def _released(found: "FindingsDocument", settings: "ReleaseSettings") -> "FindingsDocument":
    # Loads torch, which a comparison of two audits does without.
    from overheard.report.release.released_findings import release_findings

    return release_findings(found, (), settings).document


def _release_note(release: Path) -> str:
    return f"{release} is a release: what a release leaves out is not compared."
