"""The kinds of controls by exchange of examples."""

from typing import Literal

ControlDraws = Literal["", "natural", "exact"]
"""How the examples of a control by exchange are drawn; "" = it is none, or an old one."""
