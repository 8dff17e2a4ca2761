"""vit_lora: model, data and training."""

import numpy as np
import torch
from datasets import ClassLabel, Dataset, Features, Image
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import ViTConfig, ViTForImageClassification

CLASSES = ["cup", "plate", "fork", "knife", "spoon"]
COLORS = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200], [200, 200, 60], [60, 200, 200]])
FEATURES = Features({"image": Image(), "label": ClassLabel(names=CLASSES)})
MEAN, STD = 0.5, 0.5


def get_model(run_config) -> torch.nn.Module:
    """Return the ViT with LoRA in its attention; the classifier is trained in full."""
    torch.manual_seed(2024)  # the base is the same everywhere
    base = ViTForImageClassification(
        ViTConfig(
            image_size=32,
            patch_size=8,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            num_labels=int(run_config["num-classes"]),
        )
    )
    lora = LoraConfig(
        r=int(run_config["lora-r"]),
        lora_alpha=int(run_config["lora-alpha"]),
        target_modules=["q_proj", "v_proj"],
        lora_dropout=0.1,
        bias="none",
        modules_to_save=["classifier"],
    )
    return get_peft_model(base, lora)


def photos(seed: int, count: int, shares=None) -> Dataset:
    """Draw photos: a coloured square on a noisy ground."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(CLASSES), count, p=shares)
    pixels = rng.integers(60, 140, (count, 32, 32, 3))
    for image, label in zip(pixels, labels, strict=True):
        row, column = rng.integers(0, 16, 2)
        image[row : row + 16, column : column + 16] += (COLORS[label] - 100) // 2
    rows = {"image": list(pixels.clip(0, 255).astype(np.uint8)), "label": labels.tolist()}
    return Dataset.from_dict(rows, features=FEATURES)


def load_partition(partition_id: int) -> Dataset:
    shares = np.random.default_rng(100 + partition_id).dirichlet(np.full(len(CLASSES), 0.6))
    return photos(partition_id, 64, shares)


def apply_transforms(batch):
    stacked = np.stack([np.asarray(image) for image in batch["image"]])
    tensor = torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255
    return {"pixel_values": list((tensor - MEAN) / STD), "label": batch["label"]}


def collate(rows):
    return {
        "pixel_values": torch.stack([row["pixel_values"] for row in rows]),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


def load_data(partition_id: int, batch_size: int) -> DataLoader:
    partition = load_partition(partition_id).with_transform(apply_transforms)
    return DataLoader(partition, shuffle=True, batch_size=batch_size, collate_fn=collate)


def label_counts(partition_id: int) -> list[int]:
    labels = load_partition(partition_id)["label"]
    return np.bincount(list(labels), minlength=len(CLASSES)).tolist()


def train(net, trainloader, epochs: int, lr: float, device):
    optimizer = torch.optim.AdamW(
        [p for p in net.parameters() if p.requires_grad], lr=lr, weight_decay=0.01
    )
    net.to(device)
    net.train()
    avg_loss = 0.0
    for _ in range(epochs):
        for batch in trainloader:
            batch = {k: v.to(device) for k, v in batch.items()}
            optimizer.zero_grad()
            outputs = net(**batch)
            outputs.loss.backward()
            optimizer.step()
            avg_loss += outputs.loss.item()
    return avg_loss / len(trainloader) / epochs


def test(net, testloader, device):
    net.to(device)
    net.eval()
    correct, loss = 0, 0.0
    with torch.no_grad():
        for batch in testloader:
            batch = {k: v.to(device) for k, v in batch.items()}
            outputs = net(**batch)
            loss += outputs.loss.item()
            correct += (outputs.logits.argmax(-1) == batch["labels"]).sum().item()
    return loss, correct / len(testloader.dataset)
