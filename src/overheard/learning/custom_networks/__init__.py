"""Networks that users build: what their builders get, and how they are called."""
