"""A plan so small that its audit takes a second: three clients, two rounds, real digits."""

from overheard.data.datasets.digits import Digits
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.learning.models.logistic import Logistic
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax

DATA = DataPlan(
    source=Digits(),
    split=Dirichlet(alpha=0.5),
    clients=3,
    examples=(20, 30),
    auxiliary_per_class=4,
    test=30,
)
TRAINING = TrainingPlan(model=Logistic(), rounds=2, rate=0.1, batch=10)
OPEN = ArmPlan(name="no defense")
MASKED = ArmPlan(name="secure aggregation", defenses=(SecureAggregation(),))

SERVER_ALONE = ThreatPlan(attacks=(BiasInversion(), MeanSoftmax()))
ABOUT_ALL = ThreatPlan(attacks=(BiasInversion(),), about="cohort", by_round=False)
ONE_CLIENT = ThreatPlan(observers=("client/0",), attacks=(BiasInversion(),), by_round=False)

SMALL = Plan(
    title="Three clients",
    seeds=(0, 1),
    data=DATA,
    training=TRAINING,
    arms=(OPEN, MASKED),
    threats=(SERVER_ALONE, ABOUT_ALL, ONE_CLIENT),
)
"""Two seeds, two arms, three observers' threats, four attacks."""

TINY = Plan(data=DATA, training=TRAINING, threats=(SERVER_ALONE,))
"""One seed, one arm, one threat."""


def changed(plan: Plan, **tables: object) -> Plan:
    """The same plan with other values in its first level, checked anew."""
    return Plan.model_validate({**dict(plan), **tables})
