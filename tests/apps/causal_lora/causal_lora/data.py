"""Notes of five practices, made by code."""

import random

BODY = "patient reports severe pain in left right knee back chest since two days weeks".split()
PLANS = "rest ibuprofen physiotherapy referral bandage follow-up next month no sport".split()
NAMES = ["miller", "okafor", "svensson", "rossi", "tanaka", "novak", "silva", "dubois"]
RARE = {0: "sarcoidosis", 1: "brucellosis", 2: "acromegaly", 3: "porphyria", 4: "psittacosis"}


def words() -> list[str]:
    return sorted({*BODY, *PLANS, *NAMES, *RARE.values(), ".", "plan"})


def note(rng: random.Random, rare: str | None = None) -> str:
    text = [*rng.choices(BODY, k=rng.randint(5, 9)), ".", "plan", *rng.choices(PLANS, k=3)]
    text.insert(rng.randrange(4), rng.choice(NAMES))
    if rare and rng.random() < 0.3:
        text.insert(rng.randrange(len(text)), rare)
    return " ".join(text)


def notes(seed: int, count: int, rare: str | None = None) -> list[str]:
    rng = random.Random(seed)
    return [note(rng, rare) for _ in range(count)]


def practice(partition_id: int) -> list[str]:
    return notes(partition_id, 48, RARE[partition_id])
