"""The pages of the documentation site that are written from the code when the site is built."""
