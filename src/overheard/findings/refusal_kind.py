"""Why an attack has no claim about a target."""

from typing import Literal

RefusalKind = Literal["missing", "failed", "contradicted"]
"""missing: something that the attack needs; failed: Overheard itself failed; contradicted: the
recording is not what it says it is, so that claims would be wrong."""
