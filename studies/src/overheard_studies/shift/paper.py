"""The shift paper: what one client learns about a change in another's data."""

from overheard_studies.shift.federated import scalability, sensitivity
from overheard_studies.shift.setting import (
    CENSUS,
    EXCHANGE_EVERY,
    EXCHANGED_EXAMPLES,
    FASHION_MNIST,
    MNIST,
    source_of_leakage,
    vary,
)
from overheard_studies.shift.studies import CENTRALISED, centralised, layers
from overheard_studies.study import Paper, Study


def _studies() -> tuple[Study, ...]:
    cosine, cmd = (source_of_leakage("gradients", metric) for metric in ("cosine", "cmd"))
    representations = source_of_leakage("representations", "cmd")
    exchanges = f"with exchanges every {EXCHANGE_EVERY} rounds"
    return (
        centralised(),
        *(
            centralised(
                f"figure5_batch_{batch}", vary(CENTRALISED, f"batches of {batch}", batch=batch)
            )
            for batch in (128, 256)
        ),
        centralised(
            "figure5_exchanges", vary(CENTRALISED, exchanges, refresh_every=EXCHANGE_EVERY)
        ),
        layers(),
        sensitivity("figure7a", MNIST, cmd),
        sensitivity("figure7b", FASHION_MNIST, cosine),
        sensitivity("figure7c", CENSUS, representations),
        scalability("figure8", MNIST, cosine, has_two_alone=True),
        scalability(
            "figure8_exchanges",
            vary(
                MNIST,
                exchanges,
                refresh_every=EXCHANGE_EVERY,
                examples=EXCHANGED_EXAMPLES,
            ),
            cosine,
        ),
        scalability("figure9", FASHION_MNIST, cosine),
        scalability("figure10", CENSUS, representations),
    )


PAPER = Paper(
    "shift",
    "Data Distribution Shifts in (Industrial) Federated Learning as a Privacy Issue",
    "Brunner and Montuoro 2024 (arXiv 2409.13875)",
    _studies,
)
