"""The words that the tokens of texts stand for."""

from dataclasses import dataclass, field
from typing import final

from overheard.core.knowledge import KnownFact
from overheard.core.task import Task


@final
@dataclass(frozen=True, slots=True)
class TokenWords(KnownFact):
    """Which word each token of a text stands for.

    Args:
        tokens: number of tokens, with those that are no words.
        first: the first token that is a word; those before it are padding and unknown words.
        words: the word of each token from `first` on; () = not known.
        first_label: the token of label 0, where labels are words, as in next-word prediction;
            label i is the token i after it. None = labels are no words.

    """

    tokens: int
    first: int = 1
    words: tuple[str, ...] = field(default=(), repr=False)
    first_label: int | None = None

    how_to_get = "texts as inputs, whose tokens stand for words"

    def __post_init__(self) -> None:
        """Check that there are words, and as many names if any."""
        if not 0 <= self.first < self.tokens:
            raise ValueError(
                f"the first word must be one of {self.tokens} tokens, got {self.first}"
            )
        if self.words and len(self.words) != len(self):
            raise ValueError(f"{len(self.words)} words for {len(self)} tokens: give one each")

    def __len__(self) -> int:
        """Return the number of words."""
        return self.tokens - self.first

    def names(self) -> tuple[str, ...]:
        """Return the word of each token, or its number where words are not known."""
        return self.words or tuple(f"word {number}" for number in range(1, len(self) + 1))


def words_of_task(task: Task) -> TokenWords | None:
    """Return what follows from a task alone on its words; None if inputs are no texts.

    Padding is the only token known to be no word. If there are as many labels as tokens, labels
    are taken for the next token.
    """
    if task.vocabulary is None:
        return None
    first_label = 0 if task.classes == task.vocabulary else None
    return TokenWords(task.vocabulary, min(1, task.vocabulary - 1), first_label=first_label)
