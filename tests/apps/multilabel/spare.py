"""Write a public set of X-rays with its findings, and the records that an audit may ask about.

Half of the records are in a hospital's training, and the other half were held back by it.
"""

import numpy as np
from multilabel.task import FREQUENCIES, XRays, draw

x, y = draw(77, 300, [0.4, 0.3, 0.3, 0.3])
np.savez_compressed("spare.npz", x=x, y=y)

MEMBERS = 20  # of each hospital
trained = [XRays(hospital) for hospital in range(len(FREQUENCIES))]
held_back = [draw(100 + hospital, MEMBERS, each) for hospital, each in enumerate(FREQUENCIES)]
np.savez_compressed(
    "records.npz",
    x=np.concatenate([one.x[:MEMBERS] for one in trained] + [x for x, _ in held_back]),
    y=np.concatenate([one.y[:MEMBERS] for one in trained] + [y for _, y in held_back]),
    owner=np.repeat([*"01234", "none"], [MEMBERS] * 5 + [5 * MEMBERS]),
)
