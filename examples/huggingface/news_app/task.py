"""The network with its adapter, and how a client trains it."""

from collections.abc import Mapping

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

from news_app.news import LONGEST, TOPICS, get_tokenizer

INITIAL_SPREAD = 0.2
"""Standard deviation of the base's weights. With BERT's 0.02, so small and untrained a base
hardly lets the words through, and the classifier would not learn."""


def get_model(config: Mapping[str, bool | bytes | float | int | str]) -> PeftModel:
    """Return the network: a frozen base, LoRA in its attention, and a trained classifier."""
    # Stands for from_pretrained: the frozen base must be the same in each process.
    torch.manual_seed(0)
    base = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(get_tokenizer()),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=LONGEST,
            num_labels=len(TOPICS),
            initializer_range=INITIAL_SPREAD,
        )
    )
    lora = LoraConfig(
        r=config["rank"],
        lora_alpha=2 * config["rank"],
        target_modules=["query", "value"],
        modules_to_save=["classifier"],
    )
    return get_peft_model(base, lora)


def train(model: PeftModel, news: Dataset, rate: float, epochs: int, batch: int) -> float:
    """Train in place by AdamW, and return the mean loss of the last epoch."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate)
    loader = DataLoader(news.with_format("torch"), batch_size=batch, shuffle=True)
    model.train()
    total = 0.0
    for _ in range(epochs):
        total = 0.0
        for rows in loader:
            optimizer.zero_grad()
            loss = model(rows["input_ids"], rows["attention_mask"], labels=rows["label"]).loss
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows["label"])
    return total / len(news)


def accuracy(model: PeftModel, news: Dataset) -> float:
    """Return the share of correct predictions."""
    rows = news.with_format("torch")[:]
    model.eval()
    with torch.inference_mode():
        logits = model(rows["input_ids"], rows["attention_mask"]).logits
    return float((logits.argmax(1) == rows["label"]).double().mean())
