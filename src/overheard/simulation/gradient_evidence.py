"""The evidence of each candidate record in updates: fit and strength of its gradient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.defense import BuildModel
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.initialization import fresh_model, model_structure
from overheard.learning.layer_gradients import (
    Gradients,
    LayerNames,
    TableGradients,
    activation_bytes,
    find_layers,
    layer_gradients,
)
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.learning.workers.job import Job, TensorBundle
from overheard.simulation.cache_keys import broadcast_key, combined_key, network_text
from overheard.simulation.cached_jobs import (
    JobInputs,
    JobResult,
    run_cached_jobs,
    single_result_job,
)
from overheard.simulation.job_tensors import pack_examples, unpack_broadcast, unpack_examples
from overheard.simulation.settled_device import with_settled_device
from overheard.simulation.whitening import (
    Axes,
    DenseGradients,
    Evidence,
    RecordGradients,
    at_points,
    combine_parts,
    entry_variances,
    evidence_beside_others,
    evidence_by_band,
    evidence_of,
    joined,
    main_axes,
    member_probabilities,
    principal_axes,
    shorten_outliers,
    sum_of,
)

PROGRESS_LABEL = "whitened gradients of candidate records"
"""The label of the computation in `ComputeSettings.on_progress`."""

UPDATES_PREFIX = "updates/"
"""Prefix of the names of the senders' updates: (senders, ...) each."""

PATH_POINTS = (0.0, 1 / 3, 2 / 3)
"""Where gradients are taken on the way from the broadcast (0) to the sent model (1): at the
start of each third, as a step takes the gradient before it. On tuning seeds the broadcast alone
is .02 to .3 of AUC worse, and the half-way model alone up to .1."""

LARGEST_CHANGE = 1e12
"""No model that was trained changes by more, and products of larger numbers overflow."""

NEGLIGIBLE_NOISE = 0.05
"""Noise below this share of the square of a layer's update is left in."""

DOMINANT_NOISE = 0.8
"""Noise above this share of the square of an update hides the way. The way of simulated clients
is taken then. On the tuning seeds 900 to 905, with local DP, that is .02 of AUC better after
ten epochs, and .004 after one. With less noise the update itself is the better guide."""

SIMULATED_CLIENTS = 8
"""Their mean way is taken. With one client the AUC is .003 smaller."""

MAX_PASS_BYTES = 2**28
"""The most memory for the records of one pass: their inputs, slopes and gradient matrices at
all points, and activations. With what is computed from them it stays below 1 GB."""

FEW = 8
"""Records whose memory is measured, evenly spaced, so that passes are planned for all."""

ACTIVATIONS = 2
"""Times that a pass has its activations in memory: as they are, and as gradients."""

MAX_MATRIX_BYTES = 2**30
"""The most memory for the gradient matrices of all records, at layers that sum over positions.
Where it does not suffice, the largest layers are projected on fewer axes."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GradientEvidence:
    """How well the updates of one round fit the gradient of each candidate record.

    fit / sqrt(strength) is about standard normal for a record that the sender did not train on.
    If it did, fit / strength is about s on average, the same s for all records: of SGD, the
    learning rate over the size of a batch, times epochs. Rounds and senders add up: sum fits,
    and sum strengths.

    Args:
        fit: N, by sender, in the order in which senders were given.
        strength: S.
        first_strength: S before any likely member is subtracted; it says before any truth whose
            membership would show.

    """

    fit: Float[Tensor, "senders records"]
    strength: Float[Tensor, "senders records"]
    first_strength: Float[Tensor, "senders records"]

    def of_sender(self, place: int) -> Evidence:
        """Return the evidence in the update of the sender at this place."""
        return Evidence(self.fit[place], self.strength[place])


def is_diverged(update: Weights) -> bool:
    """Return whether an update is none of a trained model, so that it says nothing."""
    return not all(float(one.abs().max()) <= LARGEST_CHANGE for one in update.values())


def check_trained(view: View, target: Party, rounds: Sequence[int]) -> None:
    """Check that the updates of a target in these rounds are those of trained models.

    Raises:
        NeedsError: if one is not.

    """
    updates = view.updates(target)
    for number in rounds:
        if is_diverged(updates[number].delta):
            raise NeedsError(
                f"the update of {target} in round {number} has numbers beyond "
                f"{LARGEST_CHANGE:g}, so nothing can be read from it: see whether its "
                "training diverged, or whether it was recorded as it was sent"
            )


def compute_gradient_evidence(
    view: View,
    knowledge: Knowledge,
    senders_by_round: Mapping[int, Sequence[Party]],
    *,
    joint: bool = False,
) -> dict[int, GradientEvidence]:
    """Compute the evidence of each candidate record in the updates of each round.

    Each record's gradient is the mean over `PATH_POINTS` on the way from the broadcast to the
    sender's model, as its update shows it. The covariance of the update comes of the gradients
    of auxiliary and candidate records together, or of candidates alone, so members and
    non-members are treated alike. It is diagonal in the eigenvectors of its Kronecker factors.
    Nothing is trained but `SIMULATED_CLIENTS` on auxiliary examples where noise is most of an
    update: they show the way then. Results are cached.

    Args:
        view: provides broadcasts and updates; a sender may be `COHORT`.
        knowledge: with candidates, a model and a recipe; auxiliary examples are optional.
        senders_by_round: by round, the senders whose updates are read; one or more each.
        joint: whether likely members are subtracted from an update before the others are read
            in it; see `evidence_beside_others`. Where noise is most of an update, they are not.

    Raises:
        WorkerError: if workers fail repeatedly.

    """
    assert knowledge.build_model is not None
    known = candidate_records(knowledge)
    if knowledge.auxiliary is not None:
        known = concatenate_examples((known, knowledge.auxiliary))
    model = model_structure(knowledge.build_model)
    numbers = known.inputs[0].numel()
    has_linear = any(
        isinstance(one, nn.Linear) and one.in_features == numbers for one in model.modules()
    )
    # Each update takes the gradients of all records, at some points on its way.
    senders = max(map(len, senders_by_round.values()), default=1)
    knowledge = with_settled_device(
        knowledge,
        known.inputs,
        senders * len(PATH_POINTS),
        len(known),
        epochs=1,
        are_jobs=False,
        part="gradients of candidate records",
    )
    shared = _SharedInputs(known, knowledge.compute.job_device, has_axes=has_linear)
    return {
        number: _evidence_of_round(view, knowledge, number, senders, shared, joint=joint)
        for number, senders in senders_by_round.items()
    }


@final
class _SharedInputs:
    """The tensors that the jobs of all rounds read, computed once and only if a job runs.

    Args:
        known: all records.
        device: where to compute.
        has_axes: whether the axes of the records' inputs are among them, for a linear layer
            that reads these.

    """

    def __init__(self, known: Examples, device: str, *, has_axes: bool) -> None:
        self.known = known
        self._has_axes = has_axes
        self._device = device
        self._bundle: TensorBundle | None = None

    def bundle(self) -> TensorBundle:
        """Return the records, and the axes of their inputs if these are needed."""
        if self._bundle is None:
            tensors = pack_examples("records", self.known)
            if self._has_axes and self.known.inputs.is_floating_point():
                with single_thread(), computing("float32"):
                    rows = _rows_of(self.known.inputs).to(self._device)
                    axes = principal_axes(rows)
                    tensors |= {"axes": axes.cpu(), "coordinates": (rows @ axes).cpu()}
            self._bundle = TensorBundle(tensors)
        return self._bundle


def _rows_of(inputs: Float[Tensor, "records ..."]) -> Float[Tensor, "records inputs"]:
    """Return the inputs of a linear layer on flattened examples, with 1 for its bias.

    They are as `DenseGradients.without_outliers` has them.
    """
    return shorten_outliers(functional.pad(inputs.flatten(1), (0, 1), value=1.0))


def _evidence_of_round(
    view: View,
    knowledge: Knowledge,
    number: int,
    senders: Sequence[Party],
    shared: _SharedInputs,
    *,
    joint: bool,
) -> GradientEvidence:
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    start = view.broadcasts()[number]
    deltas = [view.updates(sender)[number].delta for sender in senders]
    updates = {name: torch.stack([delta[name] for delta in deltas]) for name in start}
    job = EvidenceJob(
        number,
        len(candidate_records(knowledge)),
        knowledge.build_model,
        knowledge.recipe,
        knowledge.compute.job_device,
        _examples_of(view, number, senders),
        knowledge.compute.seed,
        joint,
    )
    common = combined_key(
        f"gradient evidence {job.candidates} {knowledge.recipe!r} {job.examples} {job.seed!r}"
        f"{' joint' if joint else ''}",
        network_text(fresh_model(knowledge.build_model, knowledge.compute.seed)),
        *shared.known.tensors(),
        *[flatten_weights(delta) for delta in deltas],
    )
    results: list[JobResult] = []
    run_cached_jobs(
        PROGRESS_LABEL,
        [single_result_job(number, broadcast_key(common, number, start), job)],
        JobInputs(
            lambda: (
                shared.bundle(),
                TensorBundle({UPDATES_PREFIX + name: one for name, one in updates.items()}),
            ),
            {number: start},
        ),
        knowledge.compute,
        lambda _, __, result: results.append(result),
    )
    found = results[0]
    return GradientEvidence(found["fit"], found["strength"], found["first_strength"])


def _examples_of(view: View, number: int, senders: Sequence[Party]) -> int | None:
    """Return the median of the example counts that these senders report; None = none does."""
    updates = (view.updates(sender)[number] for sender in senders)
    reported = [one.examples for one in updates if one.examples]
    return int(torch.tensor(reported).median()) if reported else None


@final
@dataclass(frozen=True, slots=True)
class EvidenceJob(Job):
    """Compute fit and strength of each candidate record in the updates of one round.

    The job reads the broadcast, the examples "records", the axes of their inputs and their
    coordinates there, and the updates under `UPDATES_PREFIX`. It returns the tensors of
    `GradientEvidence`, in float64.

    Args:
        round: the round.
        candidates: number of candidate records, which are the first of the examples.
        build_model: builds the architecture.
        recipe: the clients' training recipe.
        device: the device to compute on.
        examples: number of examples of a simulated client; None = half of the auxiliary ones.
        seed: the seed of simulated clients.
        joint: whether likely members are subtracted first.

    """

    round: int
    candidates: int
    build_model: BuildModel
    recipe: Recipe
    device: str
    examples: int | None
    seed: Seed
    joint: bool

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Compute on one core, so that the bits do not depend on the machine."""
        tensors = {name: one.to(self.device) for name, one in tensors.items()}
        updates = {name: tensors[UPDATES_PREFIX + name] for name in unpack_broadcast(tensors)}
        with single_thread(), computing("float32"):
            records = _RecordsOfRound(self, tensors)
            found = [
                records.evidence({name: one[sender] for name, one in updates.items()})
                for sender in range(len(next(iter(updates.values()))))
            ]
        rows = slice(self.candidates)
        return {
            "fit": torch.stack([last.fit[rows] for last, _ in found]).cpu(),
            "strength": torch.stack([last.strength[rows] for last, _ in found]).cpu(),
            "first_strength": torch.stack([first.strength[rows] for _, first in found]).cpu(),
        }


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Projection:
    """How the gradients of a large layer are kept.

    Args:
        axes: on which they are projected.
        step_scale: by what the optimizer divides each entry, see `_step_scale`.

    """

    axes: Axes
    step_scale: Tensor | float


@final
class _RecordsOfRound:
    """The records of a round, with what the evidence in all its updates needs.

    Args:
        job: what it is computed for.
        tensors: that the job reads, on its device.

    """

    def __init__(self, job: EvidenceJob, tensors: Mapping[str, Tensor]) -> None:
        self._job, self._tensors = job, tensors
        self._start = unpack_broadcast(tensors)
        self._records = unpack_examples(tensors, "records")
        self._has_auxiliary = len(self._records) > job.candidates + 1
        self._simulated: Weights | None = None
        self._found, self._passes, self._projections = self._plan_passes()
        # Axes and mean squares of the gradients at the broadcast.
        self._at_start = dict[LayerNames, tuple[Axes, Tensor]]()
        by_layer = self._gradients([self._start])
        for names in self._projections:
            axes, rotated = self._whitened(by_layer.pop(names))
            self._at_start[names] = axes, rotated.mean_squares()

    def evidence(self, update: Weights) -> tuple[Evidence, Evidence]:
        """Return the evidence of all records in one update, from all layers.

        The second is the evidence before likely members are subtracted, if they are.
        """
        is_hidden = self._has_auxiliary and self._is_way_hidden(update)
        way = self._simulated_way() if is_hidden else self._without_noise(update)
        points = [
            {name: one + part * way[name] for name, one in self._start.items()}
            for part in PATH_POINTS
        ]
        # Where noise is most of the covariance, the latter needs no correction.
        joint = self._job.joint and not is_hidden
        alone, kept = list[list[Evidence]](), list[tuple[RecordGradients, Tensor]]()
        by_layer = self._gradients(points)
        for names in self._projections:
            gradients = by_layer.pop(names)
            matrix = self._sum_of_gradients(names, update, gradients)
            axes, rotated = self._whitened(gradients)
            layer = rotated, axes.rotate(matrix)
            alone.append([evidence_of(*layer)] if is_hidden else evidence_by_band(*layer))
            if joint:
                kept.append(layer)
        parts = list(chain.from_iterable(alone))
        total = sum_of(parts).standardised() if is_hidden else combine_parts(parts)
        if not joint:
            return total, total
        probabilities = member_probabilities(total)
        probabilities[self._job.candidates :] = 0  # No client trained on auxiliary examples.
        rest = [
            evidence_beside_others(*layer, one, probabilities)
            for layer, one in zip(kept, alone, strict=True)
        ]
        return combine_parts(list(chain.from_iterable(rest))), total

    def _plan_passes(
        self,
    ) -> tuple[tuple[LayerNames, ...], list[Examples], dict[LayerNames, _Projection | None]]:
        """Return the layers of `find_layers`, records by pass, and projections by layer.

        A layer of which all gradients fit into memory has no projection.
        """
        records, job = self._records, self._job
        few = self._evenly_spaced(FEW)
        found = find_layers(job.build_model, self._start, records, job.recipe)
        of_few = layer_gradients(job.build_model, self._start, few, job.recipe, found)
        shares = matrix_shares(of_few, len(records))
        kept = ACTIVATIONS * activation_bytes(job.build_model, self._start, few, job.recipe)
        held = sum(one.nbytes for one in of_few.values())
        matrices = {names: one.matrix_bytes for names, one in of_few.items()}
        whole = (kept + held + sum(matrices.values())) // len(few)
        projections = self._main_axes(found, shares, max(1, MAX_PASS_BYTES // max(1, whole)))
        of_matrices = sum(int(shares[names] * size) for names, size in matrices.items())
        bytes_each = (kept + len(PATH_POINTS) * (held + of_matrices)) // len(few)
        all_rows = torch.arange(len(records), device=job.device)
        parts = torch.split(all_rows, max(1, MAX_PASS_BYTES // max(1, bytes_each)))
        return found, [records.take(part) for part in parts], projections

    def _evenly_spaced(self, count: int) -> Examples:
        """Return about this many of the records."""
        step = -(-len(self._records) // count)
        return self._records.take(
            torch.arange(0, len(self._records), step, device=self._job.device)
        )

    def _main_axes(
        self, found: Sequence[LayerNames], shares: Mapping[LayerNames, float], count: int
    ) -> dict[LayerNames, _Projection | None]:
        """Return how layers are kept whose gradients do not all fit into memory.

        Args:
            found: the layers of `find_layers`.
            shares: of each layer's gradients that are kept.
            count: number of records whose gradients show the axes.

        """
        if all(share == 1 for share in shares.values()):
            return dict.fromkeys(shares)
        job, projections = self._job, dict[LayerNames, _Projection | None]()
        shown = layer_gradients(
            job.build_model, self._start, self._evenly_spaced(count), job.recipe, found
        )
        for names, share in shares.items():
            of_layer, projections[names] = shown.pop(names), None
            if share < 1:
                gradients = at_points([of_layer]).without_outliers()
                projections[names] = _Projection(
                    main_axes(gradients, share), _step_scale(gradients, job.recipe)
                )
        return projections

    def _matrix_of(self, names: LayerNames, update: Weights) -> Tensor:
        """Return a layer's part of an update, projected as its gradients are."""
        projection, matrix = self._projections[names], names.matrix_of(update)
        return matrix if projection is None else projection.axes.rotate(matrix)

    def _sum_of_gradients(
        self, names: LayerNames, update: Weights, gradients: RecordGradients
    ) -> Tensor:
        """Return a layer's part of an update as about a sum of its gradients, of any factor."""
        projection, matrix = self._projections[names], names.matrix_of(update)
        if projection is not None:
            return projection.axes.rotate(matrix * projection.step_scale)
        return matrix * _step_scale(gradients, self._job.recipe)

    def _is_way_hidden(self, update: Weights) -> bool:
        """Return whether noise is most of an update.

        A defense adds the same noise to all layers, so the noise is the least that one shows.
        Where gradients fit a layer's update badly, the rest looks like noise too.
        """
        found = (
            entry_variances(moments, axes.rotate(self._matrix_of(names, update)))
            for names, (axes, moments) in self._at_start.items()
        )
        count = sum(one.numel() for one in update.values())
        squares = sum(float(one.square().sum()) for one in update.values())
        return min(one.noise for one in found) * count > DOMINANT_NOISE * squares

    def _simulated_way(self) -> Weights:
        """Return the mean change by the training of simulated clients on auxiliary examples."""
        if self._simulated is None:
            job, auxiliary = self._job, len(self._records) - self._job.candidates
            size = min(job.examples or auxiliary // 2, auxiliary)
            clients = []
            for number in range(SIMULATED_CLIENTS):
                generator = job.seed.child("way", number).generator()
                rows = torch.randperm(auxiliary, generator=generator)[:size]
                clients.append(ClientTask(f"simulated {number}", job.candidates + rows))
            trained = train_cohort(
                job.build_model,
                self._start,
                self._records,
                clients,
                job.recipe,
                seed=job.seed.child("way"),
                round=job.round,
                chunk=len(clients),
                workers=1,
                device=job.device,
            )
            deltas = [one.delta for one in trained]
            self._simulated = {
                name: torch.stack([one[name] for one in deltas]).mean(0).to(job.device)
                for name in self._start
            }
        return self._simulated

    def _without_noise(self, update: Weights) -> Weights:
        """Return an update without the noise that its smallest matrix shows.

        A defense adds the same noise to all layers. An update with hardly any stays as it is.
        Weights on the way to a noisy model are nowhere near those of training.
        """
        matrices = {names: self._matrix_of(names, update) for names in self._projections}
        smallest = min(matrices, key=lambda names: (names.is_table, matrices[names].numel()))
        axes, moments = self._at_start[smallest]
        noise = entry_variances(moments, axes.rotate(matrices[smallest])).noise
        changed = dict[str, Tensor]()
        for names, matrix in matrices.items():
            if noise * matrix.numel() < NEGLIGIBLE_NOISE * float(matrix.square().sum()):
                continue
            axes, moments = self._at_start[names]
            rotated = axes.rotate(matrix)
            kept = axes.rotate_back(entry_variances(moments, rotated).without(noise, rotated))
            projection = self._projections[names]
            if projection is not None:
                kept = projection.axes.rotate_back(kept)
            for name, part in names.parts_of(kept.unsqueeze(0)).items():
                changed[name] = part.reshape(update[name].shape)
        return {**update, **changed}

    def _gradients(self, points: Sequence[Weights]) -> dict[LayerNames, RecordGradients]:
        """Return the gradients of all records by layer, averaged over these weights."""
        found: dict[LayerNames, list[RecordGradients]] = {
            names: [] for names in self._projections
        }
        for part in self._passes:
            at_each = [
                layer_gradients(
                    self._job.build_model, weights, part, self._job.recipe, self._found
                )
                for weights in points
            ]
            for names, parts in found.items():
                parts.append(at_points([self._projected(names, one[names]) for one in at_each]))
        # Parts go as they are joined, so that no gradients are in memory twice.
        return {
            names: joined(found.pop(names)).without_outliers() for names in self._projections
        }

    def _projected(self, names: LayerNames, gradients: Gradients) -> Gradients:
        projection = self._projections[names]
        if projection is None or isinstance(gradients, TableGradients):
            return gradients
        axes = projection.axes
        assert axes.inputs is not None, "a table is not projected"
        return gradients.projected(axes.inputs, axes.outputs)

    def _whitened(self, gradients: RecordGradients) -> tuple[Axes, RecordGradients]:
        """Return the axes of a layer, and the gradients in them.

        The axes of a linear layer on the examples themselves are the same at all weights.
        """
        tensors = self._tensors
        if isinstance(gradients, DenseGradients) and "axes" in tensors:
            inputs = gradients.inputs[0]
            # A network may scale its inputs, by what the training changes.
            is_first = len(gradients.inputs) == 1 and len(inputs[0]) == len(tensors["axes"])
            if is_first and inputs.equal(_rows_of(self._records.inputs)):
                axes = Axes(tensors["axes"], principal_axes(*gradients.slopes))
                return axes, gradients.with_inputs((tensors["coordinates"],), axes)
        axes = gradients.axes()
        return axes, gradients.rotated(axes)


def _step_scale(gradients: RecordGradients, recipe: Recipe) -> Tensor | float:
    """Return by what the optimizer divides the gradient of each entry, but for a factor.

    For an adaptive one it is the root of the mean square of a batch's gradient. Times it, an
    update is again about a sum of gradients.
    """
    if recipe.optimizer == "sgd":
        return 1.0
    mean, squares = gradients.mean(), gradients.mean_squares()
    spread = (squares - mean.square()).clamp(min=0)
    return (mean.square() + spread / recipe.batch).sqrt()


def matrix_shares(
    of_few: Mapping[LayerNames, Gradients], records: int
) -> dict[LayerNames, float]:
    """Return by layer the share of its gradient matrices that fits into `MAX_MATRIX_BYTES`.

    All layers may take the same memory; what small ones leave is shared by the others.

    Args:
        of_few: the gradients of one or more of the records.
        records: number of records.

    """
    needed = {
        names: records * one.matrix_bytes // len(one.slopes) for names, one in of_few.items()
    }
    shares, left = dict.fromkeys(of_few, 1.0), MAX_MATRIX_BYTES
    for place, names in enumerate(sorted(needed, key=needed.__getitem__)):
        size = min(needed[names], left // (len(needed) - place))
        shares[names] = size / max(1, needed[names]) if size < needed[names] else 1.0
        left -= size
    return shares
