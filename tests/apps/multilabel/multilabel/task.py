"""X-rays with several findings each, made by code."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FINDINGS = ("effusion", "nodule", "fracture", "pneumonia")
# How frequent each finding is in each hospital.
FREQUENCIES = np.array(
    [
        [0.7, 0.1, 0.2, 0.3],
        [0.2, 0.6, 0.1, 0.3],
        [0.3, 0.3, 0.3, 0.3],
        [0.1, 0.2, 0.7, 0.1],
        [0.5, 0.5, 0.1, 0.6],
    ]
)


def draw(seed, count, frequencies):
    """Draw images (count, 1, 16, 16) in 0 to 1, and findings (count, 4): bright patches."""
    rng = np.random.default_rng(seed)
    y = (rng.random((count, len(FINDINGS))) < frequencies).astype(np.float32)
    x = rng.normal(0.4, 0.15, (count, 1, 16, 16))
    for finding in range(len(FINDINGS)):
        row, column = divmod(finding, 2)
        x[:, :, 8 * row : 8 * row + 6, 8 * column : 8 * column + 6] += (
            0.3 * y[:, finding, None, None, None]
        )
    return x.clip(0, 1).astype(np.float32), y


class XRays(Dataset):
    def __init__(self, hospital: int):
        self.x, self.y = draw(hospital, 80, FREQUENCIES[hospital])

    def __len__(self):
        return len(self.x)

    def __getitem__(self, item):
        return {
            "image": torch.from_numpy(self.x[item]),
            "findings": torch.from_numpy(self.y[item]),
        }


class FindingsNet(nn.Module):
    def __init__(self, n_findings=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(2),
        )
        self.classifier = nn.Linear(16 * 4, n_findings)

    def forward(self, image):
        return self.classifier(torch.flatten(self.features(image), 1))


def load_data(hospital: int, batch_size: int):
    return DataLoader(XRays(hospital), batch_size=batch_size, shuffle=True)


def label_counts(hospital: int) -> list[int]:
    return [len(XRays(hospital))]


def train(model, loader, epochs, lr, momentum):
    loss_fn = nn.BCEWithLogitsLoss()
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    model.train()
    for _epoch in range(epochs):
        for batch in loader:
            opt.zero_grad()
            loss = loss_fn(model(batch["image"]), batch["findings"])
            loss.backward()
            opt.step()
    return float(loss)


@torch.no_grad()
def label_accuracy(model, loader):
    model.eval()
    hits = [(model(b["image"]) > 0).float().eq(b["findings"]).float().mean() for b in loader]
    return float(sum(hits) / len(hits))
