"""Store tokenised texts that no client holds, as Hugging Face data on disk: python spare.py."""

from news_app.news import spare_news

spare_news().save_to_disk("spare")
