"""The data of a first plan whose network reads texts as token ids."""

from dataclasses import replace

from overheard.core.custom_code.reference import REFERENCE
from overheard.core.errors import PlanError
from overheard.data.datasets.custom import Own
from overheard.data.reading.formats.leaf import is_leaf
from overheard.data.reading.text_table import TABLE_SUFFIXES
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.networks.shown_task import ShownTask


def with_tokens(
    source: Own,
    shown: ShownTask | None,
    text: str | None,
    tokenizer: str | None,
    app: FederatedApp | None,
) -> Own:
    """Return the source with its column of texts, and with token ids if the network has them.

    Args:
        source: the data that the user gave.
        shown: what the network shows of its task; None = not known.
        text: the column of the texts; None = none given.
        tokenizer: what makes token ids of a text; None = none given.
        app: the Flower app, whose functions a refusal proposes.

    Raises:
        PlanError: if the network reads token ids, and nothing makes ids of the table's texts.

    """
    is_table = source.reference.endswith((*TABLE_SUFFIXES, ".jsonl")) or is_leaf(
        source.reference
    )
    arguments = None if app is None or tokenizer is None else app.arguments.get(tokenizer)
    source = replace(source, text=text, tokenizer=tokenizer, arguments=arguments)
    if shown is None or shown.vocabulary is None:
        return source
    if is_table and (text is None or tokenizer is None):
        known = () if app is None else app.encoders
        proposed = known[0] if known else "package.module:function"
        found = f" The app has {', '.join(known)}." if known else ""
        raise PlanError(
            f"{source.reference}: the network reads token ids, from 0 to "
            f"{shown.vocabulary - 1}, so its texts must be encoded as the app encodes them. "
            "Name the column of the texts, and the function that makes token ids of a text: "
            f"--text {text or 'COLUMN'} --tokenizer {tokenizer or proposed}.{found} Or give "
            "token ids by a function: --data package.module:function"
        )
    source = replace(
        source,
        token_ids=shown.vocabulary,
        padding=shown.padding or None,
        task=shown.kind if shown.kind == "language_modeling" else "classification",
    )
    is_cut = is_table or (tokenizer is not None and not REFERENCE.fullmatch(source.reference))
    return replace(source, tokens=max(source.tokens, *shown.shape)) if is_cut else source
