"""Matching what `get_peft_model_state_dict` sends with the PEFT model that sends it."""

import pytest
from torch import nn

from overheard.archive.weights import tensor_shapes
from overheard.auditing.recorded_tensors.network_tensors import network_tensors
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch, TensorMismatch
from overheard.auditing.recorded_tensors.tensor_matching import match_tensors

pytestmark = pytest.mark.slow

ADAPTERS: dict[str, tuple[str, dict[str, object]]] = {
    "LoRA": ("LoraConfig", {"r": 2}),
    "DoRA": ("LoraConfig", {"r": 2, "use_dora": True}),
    "LoRA of the embedding": ("LoraConfig", {"r": 2, "target_modules": ["word_embeddings"]}),
    "IA3": ("IA3Config", {}),
    "prompt tuning": ("PromptTuningConfig", {"num_virtual_tokens": 3}),
    "prefix tuning": ("PrefixTuningConfig", {"num_virtual_tokens": 3}),
}


def classifier() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
        num_labels=3,
    )
    network: nn.Module = transformers.BertForSequenceClassification(config)
    return network


@pytest.mark.parametrize("kind", list(ADAPTERS))
def test_every_tensor_of_an_adapted_model_is_found_by_name(kind: str) -> None:
    peft = pytest.importorskip("peft")
    config, settings = ADAPTERS[kind]
    given = getattr(peft, config)(task_type="SEQ_CLS", **settings)
    network = peft.get_peft_model(classifier(), given)
    sent = tensor_shapes(peft.get_peft_model_state_dict(network))

    found = match_tensors(sent, network_tensors(network))

    assert isinstance(found, TensorMatch)
    assert set(found.names.values()) == set(sent)
    trained = {name for name, one in network.named_parameters() if one.requires_grad}
    assert set(found.names) == trained
    # The head that is trained is sent; the frozen copy of it is another tensor.
    heads = [name for name in found.names if "classifier" in name]
    assert heads
    assert all("modules_to_save" in name for name in heads)


def test_adapters_of_another_rank_are_refused() -> None:
    peft = pytest.importorskip("peft")
    small, large = (
        peft.get_peft_model(classifier(), peft.LoraConfig(task_type="SEQ_CLS", r=rank))
        for rank in (2, 4)
    )
    sent = tensor_shapes(peft.get_peft_model_state_dict(large))
    found = match_tensors(sent, network_tensors(small))
    assert isinstance(found, TensorMismatch)
    assert "lora_A" in found.reason
