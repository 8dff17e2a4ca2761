"""The questions about the person behind a sender."""

from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.same_sender.claim import SameSender

PERSONAL = (Identity, SameSender, Attribute)
"""Claims about the person behind a sender."""
