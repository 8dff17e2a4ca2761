"""The page of a review: what the source of an app shows, to put beside a signature."""
