"""lstm_tokens: posts as rows of word numbers, and an LSTM that names their board."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BOARDS = ["cooking", "cycling", "gardening"]
WORDS = {
    "cooking": "oven salt pan butter recipe bake onion boil sauce dough".split(),
    "cycling": "chain wheel brake saddle gear tyre hill pump helmet route".split(),
    "gardening": "soil seed rose prune water shade compost weed bulb hedge".split(),
}
FILLER = "i you the a my to and of for in how when it best new old try need".split()
VOCABULARY = ["<pad>", "<unk>", *sorted({*FILLER, *(w for ws in WORDS.values() for w in ws)})]
NUMBER_OF = {word: number for number, word in enumerate(VOCABULARY)}
LENGTH = 16


def posts(seed, count, weights=None):
    """Draw (text, board) pairs."""
    rng = random.Random(seed)
    drawn = []
    for board in rng.choices(BOARDS, weights, k=count):
        words = rng.choices(WORDS[board], k=rng.randint(2, 5))
        words += rng.choices(FILLER, k=rng.randint(4, 10))
        rng.shuffle(words)
        drawn.append((" ".join(words), board))
    return drawn


def encode(text):
    numbers = [NUMBER_OF.get(word, 1) for word in text.lower().split()][:LENGTH]
    return numbers + [0] * (LENGTH - len(numbers))


def forum(partition_id):
    weights = [[6, 1, 1], [1, 6, 1], [1, 1, 6], [3, 3, 1], [1, 1, 1]]
    return posts(partition_id, 90, weights[partition_id])


def get_dataset(partition_id):
    rows = forum(partition_id)
    return TensorDataset(
        torch.tensor([encode(text) for text, _ in rows]),
        torch.tensor([BOARDS.index(board) for _, board in rows]),
    )


def label_counts(partition_id):
    boards = [board for _, board in forum(partition_id)]
    return [boards.count(one) for one in BOARDS]


class LSTMClassifier(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(hidden_dim, num_classes)

    def forward(self, tokens):
        lengths = (tokens != 0).sum(1).clamp(min=1)
        outputs, _ = self.lstm(self.embedding(tokens))
        last = outputs[torch.arange(len(tokens)), lengths - 1]
        return self.fc(self.dropout(last))


def get_model(run_config):
    return LSTMClassifier(
        vocab_size=len(VOCABULARY),
        embedding_dim=int(run_config["embedding-dim"]),
        hidden_dim=int(run_config["hidden-dim"]),
        num_classes=len(BOARDS),
    )


def train(model, dataset, run_config):
    loader = DataLoader(dataset, batch_size=int(run_config["batch-size"]), shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=float(run_config["learning-rate"]))
    criterion = nn.CrossEntropyLoss()
    model.train()
    total = 0.0
    for _ in range(int(run_config["local-epochs"])):
        for tokens, boards in loader:
            optimizer.zero_grad()
            loss = criterion(model(tokens), boards)
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / len(loader)


def test(model, dataset):
    model.eval()
    with torch.no_grad():
        tokens, boards = dataset.tensors
        return (model(tokens).argmax(1) == boards).float().mean().item()
