"""Store photos of no client, as Hugging Face data on disk."""

from vit_lora.task import photos

photos(999, 250).save_to_disk("spare")
