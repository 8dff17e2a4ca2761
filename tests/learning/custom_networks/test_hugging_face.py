"""Networks of Hugging Face and PEFT train here, and the gradients of their examples add up."""

from functools import partial

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples, without_classes
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.evaluate import utility
from overheard.learning.example_gradients import example_gradients, mean_example_gradient
from overheard.learning.initialization import initial_weights
from overheard.learning.models.custom import Own
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

pytestmark = pytest.mark.slow

CLASSES = Task((6,), ("a", "b", "c"), 20)
TEXT = Task((6,), ("next token",), 20, "language_modeling")
SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}


def bert_with_lora() -> nn.Module:
    """Return a classifier of which adapters and the head are trained."""
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20,
        intermediate_size=8,
        max_position_embeddings=8,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **SMALL,
    )
    base = transformers.BertForSequenceClassification(config)
    found: nn.Module = peft.get_peft_model(base, peft.LoraConfig(task_type="SEQ_CLS", r=2))
    return found


def gpt_with_prompts() -> nn.Module:
    """Return a causal language model whose prompts alone are trained."""
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=20,
        n_embd=8,
        n_layer=1,
        n_head=2,
        n_positions=16,
        attn_pdrop=0.0,
        embd_pdrop=0.0,
        resid_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
    )
    settings = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    found: nn.Module = peft.get_peft_model(transformers.GPT2LMHeadModel(config), settings)
    return found


def texts(task: Task) -> Examples:
    """Return eight texts of four to six tokens."""
    draws = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 20, (8, 6), generator=draws)
    tokens[:4, 4:] = 0
    if task.has_classes:
        return Examples(tokens, torch.arange(8) % 3)
    return without_classes(tokens, torch.zeros(8, 1))


@pytest.mark.parametrize(
    ("builder", "task", "loss"),
    [("bert_with_lora", CLASSES, "cross_entropy"), ("gpt_with_prompts", TEXT, "next_token")],
)
def test_gradients_of_examples_are_those_of_training(
    builder: str, task: Task, loss: str
) -> None:
    build = partial(Own(f"{__name__}:{builder}").build, task)
    recipe = Recipe(rate=0.5, epochs=1, batch=8, loss=loss)  # type: ignore[arg-type]
    start, examples = initial_weights(build, Seed(1)), texts(task)

    each = example_gradients(build, start, examples, recipe)
    client = ClientTask("a", torch.arange(8))
    (trained,) = train_cohort(build, start, examples, [client], recipe, seed=Seed(0), round=0)

    mean = mean_example_gradient(build, start, examples, recipe)
    torch.testing.assert_close(each.mean(0), mean, atol=1e-6, rtol=1e-4)
    # One step of SGD: minus the rate times the mean gradient.
    step = torch.cat([trained.delta[name].flatten() for name in sorted(trained.delta)])
    torch.testing.assert_close(step, -0.5 * mean, atol=1e-6, rtol=1e-3)
    assert float(mean.norm()) > 0


def test_a_language_model_of_random_weights_guesses_evenly() -> None:
    build = partial(Own(f"{__name__}:gpt_with_prompts").build, TEXT)
    probability = utility(build, initial_weights(build, Seed(1)), texts(TEXT), TEXT.kind)
    assert probability == pytest.approx(1 / 20, rel=0.1)
