"""Store tickets of no company as a tokenised dataset on disk, padded as the app pads."""

from bert_full.task import MAX_LENGTH, get_tokenizer, tickets

tokenizer = get_tokenizer()
spare = tickets(4242, 240).map(
    lambda rows: tokenizer(
        rows["text"], padding="max_length", truncation=True, max_length=MAX_LENGTH
    ),
    batched=True,
    remove_columns="text",
)
spare.save_to_disk("spare_tokenized")
