"""Names of tensors without what wrappers and adapters put into them."""

import unicodedata
from types import MappingProxyType

WRAPPERS = frozenset(
    {
        "module",  # DataParallel, DistributedDataParallel
        "_orig_mod",  # torch.compile
        "_module",  # Opacus
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
        "base_layer",  # the layer to which PEFT adds an adapter
    }
)
"""Parts of names that wrappers and adapters put between those of the network."""

NAMED_ADAPTERS = (
    *("lora_", "ia3_", "vera_", "randlora_", "hada_", "lokr_", "oft_", "boft_", "hra_"),
    *("fourierft_", "ln_tuning_layers", "prompt_encoder", "modules_to_save"),
)
"""How parts of names begin after which PEFT may put the name of an adapter, or not."""

SAVED_AS = MappingProxyType(
    {
        "prompt_encoder.embedding.weight": "prompt_embeddings",
        "lora_magnitude_vector.weight": "lora_magnitude_vector",
    }
)
"""By how names end in a PEFT model, how they end in what its get_peft_model_state_dict returns:
those of prompt and prefix tuning, and of DoRA."""


def plain_name(name: str) -> str:
    """Return a name without what wrappers and adapters put into it.

    >>> plain_name("module._orig_mod.fc.base_layer.weight")
    'fc.weight'
    >>> plain_name("fc.lora_A.default.weight"), plain_name("fc.ia3_l.default")
    ('fc.lora_A.weight', 'fc.ia3_l')
    >>> plain_name("prompt_encoder.default.embedding.weight")
    'prompt_embeddings'
    """
    parts, is_adapter_next = list[str](), False
    for part in unicodedata.normalize("NFKC", name).split("."):
        if part in WRAPPERS:
            continue
        if is_adapter_next and part not in {"weight", "bias"}:
            is_adapter_next = False
            continue
        is_adapter_next = part.startswith(NAMED_ADAPTERS)
        if part != "modules_to_save":
            parts.append(part)
    name = ".".join(parts)
    for ending, saved in SAVED_AS.items():
        if name == ending or name.endswith(f".{ending}"):
            return name.removesuffix(ending) + saved
    return name
