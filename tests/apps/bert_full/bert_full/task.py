"""Support tickets of five companies, tokenised, and a BERT classifier."""

import random
from collections import Counter

import torch
from datasets import ClassLabel, Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
)

TOPICS = {
    "billing": ["invoice", "refund", "charge", "payment", "card", "price", "credit", "amount"],
    "technical": [
        "crash",
        "error",
        "screen",
        "update",
        "install",
        "driver",
        "login",
        "password",
    ],
    "shipping": [
        "parcel",
        "delivery",
        "courier",
        "address",
        "late",
        "tracking",
        "box",
        "damaged",
    ],
    "cancellation": [
        "cancel",
        "contract",
        "notice",
        "leave",
        "terminate",
        "end",
        "renewal",
        "stop",
    ],
}
COMMON = [
    "the",
    "my",
    "is",
    "a",
    "please",
    "help",
    "since",
    "yesterday",
    "with",
    "was",
    "not",
    "for",
    "i",
    "have",
    "we",
    "and",
    "it",
    "on",
]
LABELS = list(TOPICS)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MAX_LENGTH = 24


def get_tokenizer() -> PreTrainedTokenizerFast:
    words = SPECIAL + sorted({*COMMON, *(word for topic in TOPICS.values() for word in topic)})
    tokenizer = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=MAX_LENGTH,
    )


def get_model():
    config = BertConfig(
        vocab_size=len(get_tokenizer()),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=len(LABELS),
    )
    return AutoModelForSequenceClassification.from_config(config)


def tickets(seed: int, count: int, weights=None) -> Dataset:
    rng = random.Random(seed)
    texts, labels = [], rng.choices(range(len(LABELS)), weights, k=count)
    for label in labels:
        words = rng.choices(COMMON, k=rng.randint(3, 12))
        words += rng.choices(TOPICS[LABELS[label]], k=rng.randint(2, 5))
        rng.shuffle(words)
        texts.append(" ".join(words))
    dataset = Dataset.from_dict({"text": texts, "label": labels})
    return dataset.cast_column("label", ClassLabel(names=LABELS))


def company(partition_id: int) -> Dataset:
    weights = [[8, 1, 1, 1], [1, 8, 1, 1], [1, 1, 8, 2], [3, 1, 1, 6], [2, 2, 2, 2]]
    return tickets(partition_id, 80, weights[partition_id])


def tokenize(dataset: Dataset) -> Dataset:
    tokenizer = get_tokenizer()
    return dataset.map(
        lambda rows: tokenizer(rows["text"], truncation=True, max_length=MAX_LENGTH),
        batched=True,
    )


def load_data(partition_id: int) -> tuple[DataLoader, DataLoader]:
    tokenized = tokenize(company(partition_id)).remove_columns("text")
    split = tokenized.rename_column("label", "labels").train_test_split(test_size=0.2, seed=42)
    data_collator = DataCollatorWithPadding(tokenizer=get_tokenizer())
    trainloader = DataLoader(
        split["train"], shuffle=True, batch_size=16, collate_fn=data_collator
    )
    testloader = DataLoader(split["test"], batch_size=16, collate_fn=data_collator)
    return trainloader, testloader


def label_counts(partition_id: int) -> list[int]:
    trainloader, _ = load_data(partition_id)
    found = Counter(trainloader.dataset["labels"])
    return [found[label] for label in range(len(LABELS))]


def train(net, trainloader, epochs, lr, device):
    optimizer = AdamW(net.parameters(), lr=lr)
    net.train()
    for _ in range(epochs):
        for batch in trainloader:
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = net(**batch)
            loss = outputs.loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


def test(net, testloader, device):
    net.eval()
    loss, right = 0, 0
    for batch in testloader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = net(**batch)
        loss += outputs.loss.item()
        predictions = torch.argmax(outputs.logits, dim=-1)
        right += (predictions == batch["labels"]).sum().item()
    return loss / len(testloader), right / len(testloader.dataset)
