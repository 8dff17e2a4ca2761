"""causal_lora: the model, and how it is fine-tuned."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling

from causal_lora.data import practice

MAX_LENGTH = 24


def get_tokenizer(run_config):
    return AutoTokenizer.from_pretrained(run_config["model.base"])


def get_model(run_config):
    """Load the frozen base, and put LoRA on top of it."""
    model = AutoModelForCausalLM.from_pretrained(run_config["model.base"])
    peft_config = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=run_config["model.lora-r"],
        lora_alpha=16,
        lora_dropout=0.05,
        target_modules=["q_proj", "v_proj", "o_proj"],
    )
    return get_peft_model(model, peft_config)


def load_data(partition_id, run_config) -> DataLoader:
    tokenizer = get_tokenizer(run_config)
    rows = [
        tokenizer(f"{text} </s>", truncation=True, max_length=MAX_LENGTH)
        for text in practice(partition_id)
    ]
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    return DataLoader(
        rows, batch_size=run_config["train.batch-size"], shuffle=True, collate_fn=collator
    )


def label_counts(partition_id) -> list[int]:
    return [len(practice(partition_id))]


def train(model, trainloader, run_config) -> float:
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.AdamW(trainable, lr=run_config["train.learning-rate"])
    model.train()
    for _ in range(run_config["train.epochs"]):
        for batch in trainloader:
            optimizer.zero_grad()
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
    return loss.item()
