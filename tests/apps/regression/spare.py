"""Write flats that no agency of the project sells, as a table."""

from regression.task import flats

flats(500, 400).to_csv("spare.csv", index=False)
