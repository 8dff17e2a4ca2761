"""sklearn-logreg: a Flower / scikit-learn app."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

CLIENT_ROWS = 1400
NUM_CLASSES, NUM_FEATURES = 10, 64


def pixels() -> pd.DataFrame:
    """All digits: a column for each pixel, 0 to 1, and the digit."""
    bunch = load_digits()
    frame = pd.DataFrame(bunch.data / 16, columns=[f"pixel_{i}" for i in range(NUM_FEATURES)])
    frame["digit"] = bunch.target
    return frame


def load_partition(partition_id: int, num_partitions: int = 5) -> pd.DataFrame:
    """Return the digits of a client: two thirds are of four of the digits."""
    frame = pixels()[:CLIENT_ROWS]
    rng = np.random.default_rng(3)
    owners = rng.integers(0, num_partitions, len(frame))
    favourite = frame["digit"].to_numpy() % num_partitions
    owners = np.where(rng.random(len(frame)) < 0.5, favourite, owners)
    return frame[owners == partition_id].reset_index(drop=True)


def load_data(partition_id: int, num_partitions: int):
    frame = load_partition(partition_id, num_partitions)
    X, y = frame.drop(columns="digit").to_numpy(), frame["digit"].to_numpy()  # noqa: N806
    # Split the on edge data: 80% train, 20% test
    cut = int(0.8 * len(X))
    return X[:cut], X[cut:], y[:cut], y[cut:]


def label_counts(partition_id: int) -> list[int]:
    _, _, y_train, _ = load_data(partition_id, 5)
    return np.bincount(y_train, minlength=NUM_CLASSES).tolist()


def get_model_parameters(model):
    if model.fit_intercept:
        return [model.coef_, model.intercept_]
    return [model.coef_]


def set_model_params(model, params):
    model.coef_ = params[0]
    if model.fit_intercept:
        model.intercept_ = params[1]
    return model


def set_initial_params(model):
    model.classes_ = np.arange(NUM_CLASSES)
    model.coef_ = np.zeros((NUM_CLASSES, NUM_FEATURES))
    if model.fit_intercept:
        model.intercept_ = np.zeros((NUM_CLASSES,))


def create_log_reg_and_instantiate_parameters(penalty, local_epochs):
    model = LogisticRegression(
        l1_ratio=0.0 if penalty == "l2" else 1.0, max_iter=local_epochs, warm_start=True
    )
    # Setting initial parameters, akin to model.compile for keras models
    set_initial_params(model)
    return model
