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
NO_DEFENSE = ArmPlan(name="no defense")
SECURE_AGGREGATION = ArmPlan(name="secure aggregation", defenses=(SecureAggregation(),))

SERVER_THREAT = ThreatPlan(attacks=(BiasInversion(), MeanSoftmax()))
COHORT_THREAT = ThreatPlan(attacks=(BiasInversion(),), about="cohort", by_round=False)
CLIENT_THREAT = ThreatPlan(observers=("client/0",), attacks=(BiasInversion(),), by_round=False)

SMALL = Plan(
    title="Three clients",
    seeds=(0, 1),
    data=DATA,
    training=TRAINING,
    arms=(NO_DEFENSE, SECURE_AGGREGATION),
    threats=(SERVER_THREAT, COHORT_THREAT, CLIENT_THREAT),
)
"""Two seeds, two arms, three observers' threats, four attacks."""

TINY = Plan(data=DATA, training=TRAINING, threats=(SERVER_THREAT,))
"""One seed, one arm, one threat."""


def replace_tables(plan: Plan, **tables: object) -> Plan:
    """The same plan with other values in its first level, checked anew."""
    return Plan.model_validate({**dict(plan), **tables})
