"""The question of the attributes of the user behind a sender."""
