"""A new engine or accountant in each message."""

from typing import final

from overheard.doctor.source.accountants import (
    MADE,
    Accountant,
    epochs_of,
    fresh_accountants,
    mentions_rounds,
)
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode


@final
class NewAccountantInCode(SourceRule):
    """An engine that is made for each message knows the steps of one message only."""

    name = "accountant-per-round"
    severity = "critical"
    title = "a new privacy engine in each message"
    mend = (
        "Keep one engine over all rounds, or keep its accountant's state between messages and "
        "load it into the new engine; choose noise for the steps of all rounds."
    )
    reference = "flwrlabs/flower, examples/opacus; meta-pytorch/opacus #688"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether an engine or an accountant is made."""
        return any(MADE.fullmatch(site.dotted) for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Look where engines are made, and what is read from them."""
        kept = list(app.kept_clients())
        for one in fresh_accountants(app):
            place = app.code.place(one.site.call, one.site.function)
            targets = [
                site for site in one.targets if not mentions_rounds(app, epochs_of(site), site)
            ]
            if kept and one.site.function.name == "__init__":
                yield UnclearCode(
                    f"The client with the engine of {place} is made for each message where it "
                    f"runs as a ClientApp, and its epsilon is then that of one message; at "
                    f"{kept[0]} one client is kept for all rounds. The code does not say which "
                    "of them runs."
                )
            elif targets or one.reads:
                yield _fault(app, one)
            else:
                yield UnclearCode(
                    f"The engine of {place} is new in each message, and no epsilon is read "
                    "from it: who accounts for all rounds is not in this code."
                )


def _fault(app: PrivateApp, one: Accountant) -> CodeFault:
    uses = [*one.targets, *one.reads]
    what = (
        "the noise is chosen for a target epsilon that each message spends anew"
        if one.targets
        else "the epsilon that is read from it is that of one message, not of the run"
    )
    return CodeFault(
        f"The engine is made anew for each message of the server, so {what}.",
        app.places(one.site.call, *(site.call for site in uses)),
    )
