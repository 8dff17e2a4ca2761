"""Store a small pretrained model and its tokenizer in `base`, as a hub would serve it."""

import torch
from causal_lora.data import notes, words
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words()])}
splitter = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
splitter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=splitter,
    pad_token="<pad>",
    unk_token="<unk>",
    bos_token="<s>",
    eos_token="</s>",
)
tokenizer.save_pretrained("base")

torch.manual_seed(7)
config = LlamaConfig(
    vocab_size=len(vocabulary),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=2,
    eos_token_id=3,
)
model = LlamaForCausalLM(config)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
public = notes(31415, 320)
for start in range(0, len(public), 16):
    batch = tokenizer(public[start : start + 16], padding=True, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    loss = model(batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.save_pretrained("base")
