"""sklearn-logreg: a Flower / scikit-learn app."""

import warnings

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.metrics import log_loss

from sklearn_logreg.task import (
    create_log_reg_and_instantiate_parameters,
    get_model_parameters,
    load_data,
    set_model_params,
)

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Train the model on local data."""
    penalty = context.run_config["penalty"]
    model = create_log_reg_and_instantiate_parameters(
        penalty, context.run_config["local-epochs"]
    )
    ndarrays = msg.content["arrays"].to_numpy_ndarrays()
    set_model_params(model, ndarrays)

    partition_id = context.node_config["partition-id"]
    num_partitions = context.node_config["num-partitions"]
    X_train, _, y_train, _ = load_data(partition_id, num_partitions)  # noqa: N806

    # Ignore convergence failure due to low local epochs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X_train, y_train)

    y_train_pred_proba = model.predict_proba(X_train)
    train_logloss = log_loss(y_train, y_train_pred_proba)
    accuracy = model.score(X_train, y_train)

    model_record = ArrayRecord(get_model_parameters(model))
    metrics = {
        "num-examples": len(X_train),
        "train_logloss": train_logloss,
        "train_accuracy": accuracy,
        "partition-id": partition_id,
    }
    content = RecordDict({"arrays": model_record, "metrics": MetricRecord(metrics)})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on test data."""
    model = create_log_reg_and_instantiate_parameters(
        context.run_config["penalty"], context.run_config["local-epochs"]
    )
    set_model_params(model, msg.content["arrays"].to_numpy_ndarrays())
    _, X_test, _, y_test = load_data(  # noqa: N806
        context.node_config["partition-id"], context.node_config["num-partitions"]
    )
    metrics = {"num-examples": len(X_test), "test_accuracy": model.score(X_test, y_test)}
    content = RecordDict({"metrics": MetricRecord(metrics)})
    return Message(content=content, reply_to=msg)
