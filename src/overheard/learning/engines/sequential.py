"""Training of one client at a time: the reference, and fastest for convolutions on a core."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.algorithm.crafted_gradients import PLAIN_NORM
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.architecture import needs_two_examples
from overheard.learning.batches import epoch_batches
from overheard.learning.engines.cpu_draws import drawing_on_cpu, draws_numbers
from overheard.learning.engines.instance_norm_block import use_instance_norm_blocks
from overheard.learning.engines.private_gradients import (
    ClippedGradients,
    add_noise,
    noise_generator,
)
from overheard.learning.initialization import fresh_model
from overheard.learning.loss import mean_loss
from overheard.learning.memory import full_memory
from overheard.learning.memory_layout import MemoryOrder
from overheard.learning.optimizers import Tensors, build_optimizer
from overheard.learning.precision import computing, step_precision
from overheard.learning.seeding import seeded
from overheard.learning.sent_tensors import (
    sent_buffers,
    sent_shapes,
    sent_tensors,
    trainable_parameters,
)
from overheard.learning.threads import single_thread
from overheard.learning.training_job import ClientResult, ClientTask, TrainingGroup, TrainingJob


def can_be_sparse(module: nn.Module) -> bool:
    """Return whether the bag only averages the word vectors of each text."""
    return (
        type(module) is nn.EmbeddingBag
        and module.mode == "mean"
        and module.max_norm is None
        and not module.scale_grad_by_freq
        and not module.include_last_offset
    )


@final
class SparseEmbeddingBag(nn.Module):
    """`nn.EmbeddingBag` in mode "mean" with sparse gradients, sharing its weight.

    A batch takes one embedding lookup and one matrix product. Padding has weight 0; locating it
    takes `nn.EmbeddingBag(sparse=True)` a third of a step. See the row of texts in
    benchmarks/learning.py.
    """

    def __init__(self, bag: nn.EmbeddingBag) -> None:
        """Share the weight of a bag for which `can_be_sparse` is true."""
        super().__init__()
        self.weight = bag.weight
        self._padding = -1 if bag.padding_idx is None else bag.padding_idx

    def forward(
        self, tokens: Int[Tensor, "examples tokens"]
    ) -> Float[Tensor, "examples features"]:
        """Average the word vectors of each text; return zero for a text without words."""
        words = (tokens != self._padding).to(self.weight.dtype)
        shares = words / words.sum(1, keepdim=True).clamp(min=1)
        means: Tensor = _MeanOfRows.apply(tokens, shares, self.weight)  # type: ignore[no-untyped-call]
        return means


# Any: torch does not name the type of the context that autograd passes.
class _MeanOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, shares: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(tokens, shares)
        ctx.size = table.shape
        rows = functional.embedding(tokens, table)  # (examples, tokens, features)
        return torch.bmm(shares.unsqueeze(1), rows).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        tokens, shares = ctx.saved_tensors
        rows = shares.unsqueeze(2) * gradients[0].unsqueeze(1)  # (examples, tokens, features)
        gradient = torch.sparse_coo_tensor(
            tokens.reshape(1, -1), rows.flatten(0, 1), ctx.size, check_invariants=False
        )
        return None, None, gradient


def train_sequentially(
    job: TrainingJob, clients: Sequence[ClientTask]
) -> Iterator[ClientResult]:
    """Train one client after the other on one core.

    The job has a model of its own, as training may change what is not sent, such as a counter.

    Raises:
        PlanError: if a client does not fit into the memory of the GPU.

    """
    trainer = SequentialTrainer(job, fresh_model(job.build_model, Seed(0)))
    for client in clients:
        try:
            result = trainer.train(client)
        except torch.OutOfMemoryError as error:
            raise full_memory(client.name) from error
        yield result


def train_left_sequentially(
    jobs: Sequence[TrainingJob], groups: Sequence[TrainingGroup], done: int
) -> Iterator[ClientResult]:
    """Train the clients of all groups but the first `done` one after the other."""
    for job, group in zip(jobs, groups, strict=True):
        if left := group.clients[done:]:
            yield from train_sequentially(job, left)
        done = max(0, done - len(group.clients))


@final
class SequentialTrainer:
    """A trainer that resets one model to the start weights for each client.

    On a CPU convolutions run in channels-last order (1.3 times the speed of a plain loop). With
    ReLU after the pool and one call for the steps of all parameters, 1.4 to 1.9 times
    (benchmarks/learning.py).
    """

    def __init__(self, job: TrainingJob, model: nn.Module) -> None:
        check_start_weights(job.start, model)
        self._job = job
        floats = next(iter(job.start.values())).dtype
        self._model = model.to(job.device, floats).train()
        if _leaves_zero_gradients_alone(job):
            _use_sparse_gradients(self._model)
        if job.device.type == "cpu" and job.recipe.private_steps is None:
            use_instance_norm_blocks(self._model)
        self._order = MemoryOrder.on(job.device, step_precision(job.recipe))
        self._order.store_kernels(self._model)
        self._clipped = ClippedGradients(
            self._model, job.recipe.loss, job.recipe.label_smoothing
        )
        trainable = trainable_parameters(self._model)
        self._trainable = {name: one.detach() for name, one in trainable.items()}
        self._parameters, self._trained_names = list(trainable.values()), list(trainable)
        self._sent = {n: one for n, one in sent_tensors(self._model).items() if n in job.start}
        self._start = [job.start[name].to(job.device) for name in self._sent]
        others = {n: one for n, one in self._model.named_buffers() if n not in self._sent}
        self._others = list(others.values())
        self._others_at_start = [one.clone() for one in self._others]
        self._smallest_batch = 2 if needs_two_examples(model) else 1
        self._draws = job.device.type != "cpu" and self._draws_numbers()

    def train(self, client: ClientTask) -> ClientResult:
        """Train one client."""
        job = self._job
        dropout_seed = job.seed.child("dropout", job.round, client.name)
        with (
            single_thread(),
            computing(step_precision(job.recipe)),
            seeded(dropout_seed, job.device),
            drawing_on_cpu(self._model) if self._draws else nullcontext(),
        ):
            with torch.no_grad():
                torch._foreach_copy_(list(self._sent.values()), self._start)
                for buffer, at_start in zip(self._others, self._others_at_start, strict=True):
                    buffer.copy_(at_start)
            loss = self._descend(client)
            changes = torch._foreach_sub([p.detach() for p in self._sent.values()], self._start)
        delta = zip(self._sent, changes, strict=True)
        return ClientResult(
            client, {name: part.contiguous().cpu() for name, part in delta}, loss
        )

    def _descend(self, client: ClientTask) -> float:
        recipe = self._job.recipe
        examples = self._job.pool.take(client.rows.to(self._job.pool.labels.device))
        inputs = self._order.stored(examples.inputs.to(self._job.device))
        labels = examples.loss_labels.to(self._job.device)
        corrections = (
            ()
            if client.correction is None
            else [client.correction[name].to(self._job.device) for name in self._trained_names]
        )
        optimizer = build_optimizer(recipe, self._parameters, corrections)
        noise = noise_generator(self._job.seed, self._job.round, client.name)
        total = torch.zeros((), dtype=torch.float64, device=labels.device)
        for epoch in range(client.epochs_in(recipe)):
            total.zero_()
            for batch in self._batches(client, epoch):
                rows, crafted = batch.to(labels.device), None
                if client.crafted is not None:
                    rows, crafted = client.crafted.sum_of(rows, self._trainable)
                chosen = self._order.read(inputs[rows]), labels[rows]
                if recipe.private_steps is None:
                    gradients, loss = self._mean_gradient(*chosen)
                    if crafted is not None:
                        share = len(rows) / len(batch)
                        gradients = self._with_crafted(gradients, crafted, share, len(batch))
                else:
                    clip = recipe.private_steps.clip
                    gradients, loss = self._clipped.clipped_sum(*chosen, clip)
                    if crafted is not None:
                        for name, sums in zip(self._trained_names, gradients, strict=True):
                            sums.add_(crafted[name], alpha=clip)
                    add_noise(gradients, recipe.private_steps, len(labels), noise)
                with torch.no_grad():
                    optimizer.step(self._parameters, gradients)
                total += loss
        return float(total) / len(labels)

    def _draws_numbers(self) -> bool:
        """Return whether the network draws random numbers while it trains."""
        tried = self._order.stored(self._job.pool.inputs[: self._smallest_batch])
        inputs = self._order.read(tried.to(self._job.device))
        return draws_numbers(self._model, inputs)

    def _with_crafted(
        self, gradients: Tensors, crafted: Weights, share: float, batch: int
    ) -> Tensors:
        """Return the mean gradient of a batch, given that of the share that are no canaries."""
        return [
            one * share + crafted[name] * (PLAIN_NORM / batch)
            for name, one in zip(self._trained_names, gradients, strict=True)
        ]

    def _mean_gradient(self, inputs: Tensor, labels: Tensor) -> tuple[Tensors, Tensor]:
        """Return the gradient of a batch's mean loss, and the sum of its losses.

        Without examples, as in a batch of canaries alone, both are 0.
        """
        if not len(labels):
            zeros = [torch.zeros_like(one) for one in self._parameters]
            return zeros, torch.zeros((), device=self._job.device)
        recipe = self._job.recipe
        logits = self._model(inputs)
        loss = mean_loss(logits, labels, recipe.loss, recipe.label_smoothing)
        return torch.autograd.grad(loss, self._parameters), loss.detach() * len(labels)

    def _batches(self, client: ClientTask, epoch: int) -> Sequence[Tensor]:
        """Return the batches of an epoch; a rest that is too small joins the one before it."""
        job = self._job
        batches = epoch_batches(
            job.recipe, job.seed, job.round, client.name, epoch, len(client.rows)
        )
        # Empty batches of DP-SGD are steps of their own.
        is_joined = job.recipe.private_steps is None and len(batches) > 1
        if is_joined and len(batches[-1]) < self._smallest_batch:
            rest = batches.pop()
            batches[-1] = torch.cat((batches[-1], rest))
        return batches


def check_start_weights(start: Weights, model: nn.Module) -> None:
    """Refuse start weights whose names or shapes differ from those that the model sends.

    Buffers may be missing: some frameworks send parameters alone.
    """
    given = {name: tuple(weight.shape) for name, weight in start.items()}
    buffers = sent_buffers(model)
    expected = {
        name: shape
        for name, shape in sent_shapes(model).items()
        if name in given or name not in buffers
    }
    if given != expected:
        raise ValueError(f"start weights must have the model's shapes {expected}, got {given}")


def _leaves_zero_gradients_alone(job: TrainingJob) -> bool:
    """Return whether parameters with a zero gradient stay unchanged."""
    recipe = job.recipe
    changes_all = (recipe.momentum, recipe.weight_decay, recipe.proximal, job.has_corrections)
    is_plain = recipe.optimizer == "sgd" and recipe.private_steps is None
    return is_plain and not any(changes_all)


def _use_sparse_gradients(model: nn.Module) -> None:
    """Let each embedding return gradients only for the rows that a batch looked up.

    The other rows then stay unchanged.
    """
    # In a plain sequence a bag is called with texts only, never with offsets.
    sequence = set(model.children()) if type(model) is nn.Sequential else set()
    for name, module in list(model.named_modules()):
        if module in sequence and isinstance(module, nn.EmbeddingBag) and can_be_sparse(module):
            model.set_submodule(name, SparseEmbeddingBag(module))
        elif isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            takes_maxima = isinstance(module, nn.EmbeddingBag) and module.mode == "max"
            module.sparse = not (takes_maxima or module.scale_grad_by_freq)
