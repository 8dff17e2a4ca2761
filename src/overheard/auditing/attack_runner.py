"""Runs the attacks of a threat on a run: claims, or refusals with their reasons."""

from collections.abc import Iterator, Sequence

from overheard.auditing.cells.cell_claims import CellClaims
from overheard.auditing.cells.claim_store import ClaimStore
from overheard.auditing.cells.contributors import find_contributors
from overheard.auditing.cells.threat_cells import ThreatCells, ThreatView
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import CellSpec
from overheard.auditing.progress import Progress
from overheard.auditing.pseudonyms import Pseudonyms, draw_pseudonyms
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.deduced_view import deduce_means
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device, party_sort_key
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.plans.plan import ThreatPlan


def run_attacks(
    run: ObservedRun, cells: Sequence[CellSpec], store: ClaimStore, progress: Progress
) -> Iterator[CellClaims]:
    """Run the attacks of one threat on one run; yield the claims of each cell."""
    threat, rounds = cells[0].threat, run.spec.rounds
    transcript, observers = run.transcript, threat.observer_parties
    pseudonyms = pseudonyms_of(run, threat)
    if pseudonyms is not None:
        transcript = pseudonyms.rename_senders(transcript)
    algorithm = run.inputs.plan.algorithm_of(run.spec.arm)
    view = observed_view(algorithm, threat, transcript, observers)
    targets = select_targets(transcript, threat)
    contributors = find_contributors(transcript.messages, observers)
    observed = {
        target: contributors.rounds_of(target, view.rounds_with_updates(target))
        for target in targets
    }
    why = "" if run.recording is None else run.recording.refusal(observers)
    made = ThreatCells(ThreatView(run, view, contributors, store), cells, progress)
    for attack in cells:
        if why:
            all_rounds = _refused(attack, targets, why)
        else:
            all_rounds = made.run(attack, rounds, targets)
        yield all_rounds
        progress.advance(attack.describe(rounds))
        for number in attack.single_rounds:
            # Clients without an observed update in this round are skipped. Clients without one
            # in any round were refused above.
            present = [target for target in targets if number in observed[target]]
            if present and all_rounds.claims and len(rounds) > 1:
                yield made.run(attack, (number,), present)
            progress.advance(attack.describe((number,), is_single=True))


def _refused(attack: CellSpec, targets: Sequence[Party], why: str) -> CellClaims:
    """Return a cell without claims, as the recording contradicts itself."""
    return CellClaims(
        attack.cell,
        {},
        dict.fromkeys(targets, (why,)),
        kinds=dict.fromkeys(targets, "contradicted"),
    )


def pseudonyms_of(run: ObservedRun, threat: ThreatPlan) -> Pseudonyms | None:
    """Return the names that senders have in a threat; None = they keep their own."""
    if threat.pseudonyms == "run":
        return None
    return draw_pseudonyms(run.transcript, Seed(run.spec.seed).child("pseudonyms"))


def observed_view(
    algorithm: Algorithm,
    threat: ThreatPlan,
    transcript: Transcript,
    observers: Sequence[Party],
) -> View:
    """Return the view of these observers, with the mean updates that they can compute."""
    view, is_known = transcript.seen_by(*observers), "recipe" in threat.knows
    if is_known and threat.pseudonyms == "run":
        view = algorithm.plain_updates(view)
    return deduce_means(view, algorithm, is_known=is_known)


def select_targets(transcript: Transcript, threat: ThreatPlan) -> tuple[Party, ...]:
    """Return the parties that a threat asks about, in order."""
    if threat.about == "cohort":
        return (COHORT,)
    parties = transcript.parties()
    if threat.pseudonyms == "round":
        # Clients read broadcasts under their own names but send under pseudonyms.
        parties = tuple({message.sender for message in transcript.messages})
    clients = [
        party
        for party in parties
        if party not in (SERVER, COHORT) and not is_shadow_device(party)
    ]
    return tuple(sorted(set(clients) - set(threat.observer_parties), key=party_sort_key))
