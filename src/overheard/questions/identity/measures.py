"""How the figures of merit of this question are told to a reader."""

from collections.abc import Mapping
from types import MappingProxyType

from overheard.findings.beside_control import PAIR_MEASURES
from overheard.findings.figures import SPACE, Measure

MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "top1": Measure("Named right at the first try", f"{SPACE}%", 100.0),
        "top5": Measure("Among the first five named", f"{SPACE}%", 100.0),
        "unseen": Measure("Squared error of the stated chances of a stranger", "", 1.0),
        "mean_average_precision": Measure("Average precision a user", f"{SPACE}%", 100.0),
        "times_chance": Measure("Times chance", "", 1.0),
        **PAIR_MEASURES,
        "dir_at_1_percent": Measure(
            f"Named right at 1{SPACE}% false alarms", f"{SPACE}%", 100.0
        ),
        "control_excess": Measure("The control's average precision", f"{SPACE}%", 100.0),
        "gain_over_published": Measure("Gain over the published", f"{SPACE}points", 100.0),
    }
)
