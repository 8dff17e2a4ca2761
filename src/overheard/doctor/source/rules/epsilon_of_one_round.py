"""The epsilon of one round is reported as that of the run."""

from typing import final

from overheard.doctor.source.accountants import READ, fresh_accountants, is_sent
from overheard.doctor.source.privacy import PrivateApp
from overheard.doctor.source.rule import CodeFault, Seen, SourceRule, UnclearCode


@final
class EpsilonOfMessageInCode(SourceRule):
    """An epsilon that covers one message goes to the server as if it were the run's."""

    name = "epsilon-of-one-round"
    severity = "critical"
    title = "the epsilon of one round is reported as the run's"
    mend = (
        "Report the epsilon of all rounds so far, from an accountant that is kept over "
        "messages, and say for how many rounds it holds."
    )
    reference = "flwrlabs/flower, examples/opacus; google-research/federated #18 and #25"

    def concerns(self, app: PrivateApp) -> bool:
        """Return whether an epsilon is read from an engine or an accountant."""
        return any(site.last in READ for site in app.code.calls)

    def examine(self, app: PrivateApp) -> Seen:
        """Look whether an epsilon of one message is in a reply."""
        kept = list(app.kept_clients())
        for one in fresh_accountants(app):
            if kept and one.site.function.name == "__init__":
                place = app.code.place(one.site.call, one.site.function)
                yield UnclearCode(
                    f"For how many rounds the epsilon of the engine of {place} holds depends "
                    f"on how the client runs: at {kept[0]} one client is kept for all rounds, "
                    "and as a ClientApp there is a new one in each message."
                )
                continue
            for read in one.reads:
                if is_sent(app, read):
                    yield CodeFault(
                        "Clients send an epsilon of the steps of one message: over the rounds "
                        "of a run they spend more.",
                        app.places(read.call, one.site.call),
                    )
