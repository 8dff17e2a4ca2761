"""Short news of four topics, drawn from a seed instead of downloaded, and their tokenizer."""

import numpy as np
from datasets import ClassLabel, Dataset, Features, List, Value
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

TOPICS = {
    "World": (
        "minister treaty border election embassy troops parliament refugees ceasefire envoy"
    ),
    "Sports": "match coach season striker tournament medal league goal referee champion",
    "Business": "shares profit merger market investors bank oil inflation quarterly revenue",
    "Sci/Tech": (
        "software satellite researchers browser chip telescope virus laptop robot genome"
    ),
}
COMMON = (
    "the a of in on after new says its for with as over by at from to and will has first two"
)

LONGEST = 24
"""Number of tokens of a text, after padding."""

ALPHA = 0.5
"""Concentration of the Dirichlet distribution of a client's topics; smaller is more unequal."""

COLUMNS = Features(
    {
        "input_ids": List(Value("int64")),
        "attention_mask": List(Value("int64")),
        "label": ClassLabel(names=list(TOPICS)),
    }
)

SPARE_SEED = 1_000
"""Seed of the texts that no client holds."""


def get_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token for each word, as of a pretrained network."""
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    special["sep_token"] = "[SEP]"
    words = sorted({*COMMON.split(), *" ".join(TOPICS.values()).split()})
    numbers = {word: number for number, word in enumerate([*special.values(), *words])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", numbers["[SEP]"]), ("[CLS]", numbers["[CLS]"])
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def news_of_client(number: int) -> Dataset:
    """Return a client's texts: 80 to 200, with its own shares of the topics."""
    generator = np.random.default_rng(number)
    shares = generator.dirichlet(np.full(len(TOPICS), ALPHA))
    return draw_news(generator, int(generator.integers(80, 201)), shares)


def spare_news() -> Dataset:
    """Return 300 texts that no client holds, for the audit and for tests of the model."""
    generator = np.random.default_rng(SPARE_SEED)
    return draw_news(generator, 300, np.full(len(TOPICS), 1 / len(TOPICS)))


def draw_news(generator: np.random.Generator, count: int, shares: np.ndarray) -> Dataset:
    """Return tokenised texts with labels: some common words, and some of the topic."""
    labels = generator.choice(len(TOPICS), count, p=shares)
    texts = []
    for label in labels:
        words = [
            *generator.choice(COMMON.split(), generator.integers(6, 13)),
            *generator.choice(list(TOPICS.values())[label].split(), generator.integers(3, 7)),
        ]
        texts.append(" ".join(generator.permutation(words)))
    tokens = get_tokenizer()(texts, padding="max_length", truncation=True, max_length=LONGEST)
    rows = {name: tokens[name] for name in ("input_ids", "attention_mask")}
    return Dataset.from_dict({**rows, "label": labels.tolist()}, features=COLUMNS)
