"""Write flats that no agency of the project sells, and the flats that an audit may ask about.

Half of the latter are in an agency's training, and the other half were held back by it.
"""

import pandas as pd
from regression.task import agency, flats

flats(500, 400).to_csv("spare.csv", index=False)

MEMBERS = 20  # of each agency
CENTRES = (-0.8, -0.3, 0.0, 0.4, 1.2)
trained = [agency(number).head(MEMBERS).assign(owner=str(number)) for number in range(5)]
held_back = [
    flats(600 + number, MEMBERS, centre).assign(owner="none")
    for number, centre in enumerate(CENTRES)
]
pd.concat(trained + held_back).to_csv("records.csv", index=False)
