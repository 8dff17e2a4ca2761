"""A copy of a recording that grows round by round, as a recorder would write it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from overheard.archive.layout import manifest_path, messages_path, round_folder
from overheard.archive.truth import truth_path


@dataclass(frozen=True)
class GrowingCopy:
    """Copies a finished recording to a folder, one round at a time."""

    source: Path
    folder: Path

    def commit_round(self, number: int) -> None:
        """Copy one round, its list of messages last."""
        source, target = self.source / "transcript", self.folder / "transcript"
        if not manifest_path(target).exists():
            target.mkdir(parents=True)
            shutil.copy(manifest_path(source), manifest_path(target))
        shutil.copytree(
            round_folder(source, number),
            round_folder(target, number),
            ignore=shutil.ignore_patterns("messages.jsonl"),
        )
        part = messages_path(target, number).with_suffix(".part")
        shutil.copy(messages_path(source, number), part)
        part.rename(messages_path(target, number))

    def reveal_truth(self) -> None:
        """Copy the ground truth."""
        shutil.copy(truth_path(self.source), truth_path(self.folder))
