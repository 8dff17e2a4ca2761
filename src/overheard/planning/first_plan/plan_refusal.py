"""What a user is told if no attack can run with what is known."""

from collections.abc import Mapping, Sequence

from overheard.data.datasets.no_examples import NoExamples
from overheard.planning.first_plan.plan_facts import PlanFacts

RECORDS = (
    "Records of which you know whether a client trained on them (--candidates FILE) add "
    "attacks on membership. "
)

TEXTS = (
    "List texts of which you know whether a client trained on them, half of them yes and half "
    "no, in a file like that of --data, with a column `owner` (a client, or none) or `member` "
    "(1 or 0): --candidates FILE adds attacks on membership. "
)


def say_what_is_missing(
    facts: PlanFacts,
    missing: Mapping[str, str],
    networks: Mapping[str, str],
    notes: Sequence[str],
    *,
    has_list: bool,
) -> str:
    """Return why no attack can run, and what to add; it asks for nothing that was given.

    Args:
        facts: the facts of the plan that cannot be written.
        missing: by attack, what is missing.
        networks: networks of the app that were looked at, with the reason against each.
        notes: sentences on what can be asked of the recording.
        has_list: whether records were listed whose membership is asked.

    """
    has_data = not isinstance(facts.source, NoExamples)
    told = "".join(f"{note}. " for note in notes)
    if facts.is_head_at_home and (has_data or has_list):
        return f"no attack can run on this recording. {told}{list_needs(missing)}"
    asked = []
    if not has_data:
        asked.append("labelled examples that no client holds (--data FILE --label COLUMN)")
    if not facts.is_model_known:
        asked.append(
            "the network, if the recording does not state it (--model package.module:Class, "
            "--flower FOLDER or --nvflare FOLDER)"
        )
    head = f": give {', and '.join(asked)}. " if asked else ". "
    if not has_list and not facts.is_head_at_home:
        head += TEXTS if facts.is_language_model else RECORDS
    proposal = "" if facts.proposal is None else f"{describe_proposal(facts.proposal)}. "
    return (
        f"no attack can run with what is known{head}{proposal}{told}"
        + "".join(f"{name} is not taken: {why}. " for name, why in networks.items())
        + list_needs(missing)
    )


def describe_proposal(reference: str) -> str:
    """Return a sentence on a network that a recording names."""
    return (
        f"The recording names the network {reference}. That is code, so nothing was imported: "
        f"if it is yours, add --model {reference}"
    )


def list_needs(missing: Mapping[str, str]) -> str:
    """Say what attacks need, those with the same need together."""
    names = dict[str, list[str]]()
    for name, what in missing.items():
        names.setdefault(what, []).append(name)
    return "; ".join(
        f"{', '.join(group)} need{'s' if len(group) == 1 else ''} {what}"
        for what, group in names.items()
    )
