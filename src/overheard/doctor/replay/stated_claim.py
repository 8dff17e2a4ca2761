"""The clip and the noise multiplier that a client states: to its user, or in its code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

_CLIP = frozenset(
    {
        "max_grad_norm",
        "clip",
        "clip_norm",
        "clipping_norm",
        "l2_norm_clip",
        "l2_clip",
        "max_norm",
    }
    | {"clipping_bound", "clip_bound", "grad_clip", "clipping_threshold"}
)
_NOISE = frozenset({"noise_multiplier", "sigma", "noise_mult", "noise_scale"})


@final
@dataclass(frozen=True, slots=True)
class StatedClaim:
    """What a client states of its DP-SGD.

    Args:
        clip: largest norm of a record's gradient; None = not stated.
        noise_multiplier: standard deviation of the noise in clips; None = not stated.
        source: where they are stated, in words.

    """

    clip: float | None = None
    noise_multiplier: float | None = None
    source: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether both are stated."""
        return self.clip is not None and self.noise_multiplier is not None

    def filled(self, other: "StatedClaim") -> "StatedClaim":
        """Return this claim, with what is not stated taken from another one."""
        clip = other.clip if self.clip is None else self.clip
        noise = (
            other.noise_multiplier if self.noise_multiplier is None else self.noise_multiplier
        )
        if (clip, noise) == (self.clip, self.noise_multiplier):
            return self
        source = f"{self.source}; {other.source}" if self.source else other.source
        return StatedClaim(clip, noise, source)


NOTHING_STATED = StatedClaim()


def read_settings(settings: Mapping[str, object], source: str) -> StatedClaim:
    """Read a claim from settings, by the usual names of clip and noise multiplier."""
    by_name = {name.lower().replace("-", "_"): value for name, value in settings.items()}
    clip = next((x for name in sorted(_CLIP) if (x := _number(by_name.get(name)))), None)
    noise = next((x for name in sorted(_NOISE) if (x := _number(by_name.get(name)))), None)
    return StatedClaim(clip, noise, source)


def read_frame(names: Mapping[str, object]) -> StatedClaim:
    """Read a claim from names of running code; attributes of its object come first."""
    owner = names.get("self")
    claim = NOTHING_STATED
    if owner is not None:
        attributes = {
            name: getattr(owner, name, None) for name in ("max_grad_norm", "noise_multiplier")
        }
        claim = read_settings(attributes, f"attributes of {type(owner).__name__}")
        own = getattr(owner, "__dict__", {})
        claim = claim.filled(read_settings(own, f"attributes of {type(owner).__name__}"))
    return claim.filled(read_settings(names, "names in the code"))


def _number(value: object) -> float | None:
    if isinstance(value, list) and value and all(isinstance(one, float) for one in value):
        return float(sum(one * one for one in value) ** 0.5)  # a clip for each layer
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value > 0 else None  # type: ignore[arg-type, operator]
