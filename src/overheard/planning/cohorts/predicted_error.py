"""The error of label shares that an attack on the sums of a schedule will have, predicted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.questions.label_shares.estimators.sum_response import contrasts

PRIOR_DRAWS, TEST_DRAWS = 10_000, 400
"""Clients from which a posterior is made up, and clients of which the error is taken."""

LOG_ERROR = 0.18
"""Standard deviation of the logarithm of the measured error over the predicted one, where a
federation's own clients gave the noise: MNIST, rates .1 and .03, Dirichlet .1 and .5, after 20,
40 and 80 rounds, with the seeds 900, 901, 100 and 101."""

WITHIN_90 = 1.645
"""Standard deviations within which a normal variable is 90 % of the time."""

BATCH = 50
"""Clients whose posteriors are in memory at once."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeasuredClients:
    """Clients of simulated federations, and the error that each has alike in all rounds.

    These errors are not Gaussian. Clients with one or two labels respond less than linearly, so
    that theirs depend on their shares, and some clients deviate far more than others.

    Args:
        shares: (clients, classes), their label shares.
        deviations: (clients, directions), the error of the numbers of a client (`SumNoise`),
            as estimated from its updates of all rounds.

    """

    shares: Float[np.ndarray, "clients classes"]
    deviations: Float[np.ndarray, "clients directions"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SumNoise:
    """What a sum says of the label shares of its clients, and how noisy it is.

    Shares of a client are its mean shares plus `directions` times a vector of independent
    numbers of variance 1. A sum of clients shows each of these numbers times its gain, with
    noise.

    Args:
        prior: (classes), the parameters of the Dirichlet distribution of clients' shares.
        directions: (classes, directions).
        rounds: (measured), the rounds of `gains`, in order.
        gains: (measured, directions), interpolated for rounds in between.
        of_client: variance of the noise of a client, which a sum has once for each.
        lasting: share of that noise that is the same in all rounds, 0 to 1.
        common: variance of the error that all clients have in common in all rounds.
        of_sum: variance of noise that is not of clients, once in each sum.
        assumed: what the prediction assumes, in sentences.
        measured: clients and their errors that last; None = these errors are Gaussian.

    """

    prior: Float[np.ndarray, " classes"]
    directions: Float[np.ndarray, "classes directions"]
    rounds: Int[np.ndarray, " measured"]
    gains: Float[np.ndarray, "measured directions"]
    of_client: float
    lasting: float
    common: float
    of_sum: float
    assumed: tuple[str, ...]
    measured: MeasuredClients | None = None

    def covariance(
        self, took_part: Float[np.ndarray, "rounds clients"]
    ) -> Float[np.ndarray, "rounds rounds"]:
        """Return the covariance of the noise of sums."""
        together, sizes = took_part @ took_part.T, took_part.sum(axis=1)
        covariance: Float[np.ndarray, "rounds rounds"]
        covariance = self.of_client * self.lasting * together
        covariance += np.diag(self.of_client * (1 - self.lasting) * sizes + self.of_sum)
        # The common error is of a client, so a sum has it once for each of its clients.
        return covariance + self.common * np.outer(sizes, sizes)


def principal_directions(
    prior: Float[np.ndarray, " classes"],
) -> Float[np.ndarray, "classes directions"]:
    """Return a root of the covariance of a Dirichlet distribution, within shares that sum to 0.

    Args:
        prior: its parameters.

    """
    total, mean, basis = prior.sum(), prior / prior.sum(), contrasts(len(prior))
    spread = basis.T @ (np.diag(mean) - np.outer(mean, mean)) @ basis / (1 + total)
    directions: Float[np.ndarray, "classes directions"] = basis @ np.linalg.cholesky(spread)
    return directions


def stated_noise(classes: int, alpha: float, noise: float) -> SumNoise:
    """Return the noise of sums that a user states.

    Args:
        classes: number of labels, 2 or more.
        alpha: parameter of the symmetric Dirichlet distribution of clients' shares.
        noise: standard deviation of the noise of a sum over that of a client's shares.

    """
    prior = np.full(classes, alpha)
    return SumNoise(
        prior,
        principal_directions(prior),
        np.zeros(1, dtype=int),
        np.ones((1, classes - 1)),
        lasting=0.0,
        of_client=0.0,
        common=0.0,
        of_sum=noise**2,
        assumed=(
            f"Label shares of clients are Dirichlet with alpha {alpha:g} over {classes:,} "
            "labels.",
            f"The noise of a sum is {noise:g} times the spread of a client, and new in each "
            "round. It was stated, not measured: real noise depends on model and training, and "
            "a part of it lasts. Name a plan to have it measured.",
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class PredictedError:
    """The error of an attack that reads the label shares of single clients from sums.

    Args:
        rounds: number of rounds that were read.
        error: mean L1 distance of claims to the true shares.
        low: lower end of the 90 % range of the error of one federation.
        high: upper end.
        guess: the mean L1 distance of the mean shares of all clients.

    """

    rounds: int
    error: float
    low: float
    high: float
    guess: float

    @property
    def of_guess(self) -> float:
        """Return the error as a share of that of the guess."""
        return self.error / self.guess


def predict_error(
    noise: SumNoise, took_part: Bool[np.ndarray, "rounds clients"], seed: int = 0
) -> PredictedError:
    """Predict the error of label shares after the rounds of a schedule.

    1. Each direction of shares is a linear problem of all clients. Gaussian theory gives how
       noisily the sums show the median client that took part, with all others as uncertain as
       their prior.
    2. Clients are drawn from the prior, and observed with that noise. Where clients were
       measured, they take the place of these, and the part of the noise that lasts is their
       own measured error. The median of their posterior, over other clients of the prior, has
       an error; the linear estimate another. The smaller one counts.
    3. Posteriors of shares, which are 0 or more, are narrower than Gaussian ones. So both steps
       are done again with all others as uncertain as the first pass left them.

    The second pass is a step of expectation propagation (Minka 2001). Further passes assume an
    attacker who knows the noise exactly: with the seeds 900 and 901, two were nearest.

    Args:
        noise: what a sum says of its clients.
        took_part: of the rounds that are read. A client that never took part stays unknown, so
            it has the error of the guess; all others have that of the median one.
        seed: of the clients that are drawn.

    """
    draws = np.random.default_rng(seed)
    places = np.arange(len(took_part))
    gains = np.stack([np.interp(places, noise.rounds, one) for one in noise.gains.T], axis=1)
    channel = _make_channel(noise, draws)
    is_seen = took_part.any(axis=0)
    members = took_part[:, is_seen].astype(np.float64)
    alone = _noise_of_client(members, gains, noise, np.ones(gains.shape[1]))
    spread = _gaussian_spread(channel.remaining(alone), alone.variance)
    errors = channel.errors(_noise_of_client(members, gains, noise, spread))
    error, guess = float(errors.mean()), channel.guess
    measured = np.inf if noise.measured is None else len(noise.measured.shares)
    seen = float(is_seen.mean())
    low, high = _range(errors, members.shape[1], measured)
    high = min(high, max(guess, error))
    error, low, high = (seen * one + (1 - seen) * guess for one in (error, low, high))
    return PredictedError(len(took_part), error, low, high, guess)


def _range(
    errors: Float[np.ndarray, " draws"], clients: int, measured: float
) -> tuple[float, float]:
    """Return the 90 % range of the mean error of the clients of a federation.

    Clients differ, so that federations do, and so does the mean of those that were measured.
    And the prediction is not exact.
    """
    mean = float(errors.mean())
    of_clients = (1 / clients + 1 / measured) * float(errors.var()) / max(mean, 1e-12) ** 2
    factor = float(np.exp(WITHIN_90 * np.hypot(LOG_ERROR, np.sqrt(of_clients))))
    return mean / factor, mean * factor


@dataclass(frozen=True, slots=True, eq=False)
class _ClientNoise:
    """The variance of the noise with which sums show a client.

    Args:
        variance: (directions).
        lasting: (directions), the part of it that is the client's own in all rounds.

    """

    variance: Float[np.ndarray, " directions"]
    lasting: Float[np.ndarray, " directions"]


def _make_channel(noise: SumNoise, draws: np.random.Generator) -> "_Channel":
    """Draw clients of the prior, and those whose error is predicted."""
    prior = draws.dirichlet(noise.prior, PRIOR_DRAWS)
    mean = noise.prior / noise.prior.sum()
    inverse = np.linalg.pinv(noise.directions).T
    measured = noise.measured
    if measured is None:
        true = draws.dirichlet(noise.prior, TEST_DRAWS)
        deviations = None
    else:
        chosen = np.arange(max(TEST_DRAWS, len(measured.shares))) % len(measured.shares)
        true, deviations = measured.shares[chosen], measured.deviations[chosen]
    return _Channel(
        prior,
        (prior - mean) @ inverse,
        true,
        (true - mean) @ inverse,
        deviations,
        draws,
        mean,
        noise.directions,
    )


def _noise_of_client(
    members: Float[np.ndarray, "rounds clients"],
    gains: Float[np.ndarray, "rounds directions"],
    noise: SumNoise,
    spread: Float[np.ndarray, " directions"],
) -> _ClientNoise:
    """Return the noise with which the sums show the median client."""
    covariance = noise.covariance(members)
    found = []
    for gain, prior in zip(gains.T, spread, strict=True):
        design = members * gain[:, None]
        total = prior * design @ design.T + covariance
        solved = prior * np.linalg.solve(total, design)
        explained = (design * solved).sum(axis=0)
        # Of a client that is fully explained, some noise stays, so that it can be divided by.
        explained = explained.clip(1e-9, 1 - 1e-9)
        variance = prior * (1 - explained) / explained
        # An unbiased estimate has the error of a client itself so many times.
        times = (members * solved).sum(axis=0) / explained
        median = np.argsort(variance)[len(variance) // 2]
        own = noise.of_client * noise.lasting * times[median] ** 2
        found.append((variance[median], min(own, variance[median])))
    return _ClientNoise(*np.array(found).T)


def _gaussian_spread(
    remaining: Float[np.ndarray, " directions"], seen: Float[np.ndarray, " directions"]
) -> Float[np.ndarray, " directions"]:
    """Return the prior variance with which a Gaussian client would be left as uncertain."""
    precision = 1 / np.maximum(remaining, 1e-9) - 1 / seen
    spread: Float[np.ndarray, " directions"] = 1 / np.maximum(precision, 1.0)
    return spread


@dataclass(frozen=True, slots=True, eq=False)
class _Channel:
    """Clients of the prior, and others that are observed with noise.

    Noise is Gaussian, but for the part that is a client's own and lasts: `deviations` take its
    place, if there are any.
    """

    prior_shares: Float[np.ndarray, "draws classes"]
    prior: Float[np.ndarray, "draws directions"]
    true_shares: Float[np.ndarray, "clients classes"]
    true: Float[np.ndarray, "clients directions"]
    deviations: Float[np.ndarray, "clients directions"] | None
    draws: np.random.Generator
    mean: Float[np.ndarray, " classes"]
    directions: Float[np.ndarray, "classes directions"]

    def remaining(self, noise: _ClientNoise) -> Float[np.ndarray, " directions"]:
        """Return the mean squared error of posterior means."""
        squares = [
            (weights @ self.prior - self.true[rows]) ** 2
            for rows, weights in self._posteriors(noise)
        ]
        mean: Float[np.ndarray, " directions"] = np.concatenate(squares).mean(axis=0)
        least: Float[np.ndarray, " directions"] = np.minimum(
            mean, noise.variance / (1 + noise.variance)
        )
        return least

    @property
    def guess(self) -> float:
        """Return the mean L1 error of the mean shares."""
        return float(np.abs(self.true_shares - self.mean).sum(axis=1).mean())

    def errors(self, noise: _ClientNoise) -> Float[np.ndarray, " clients"]:
        """Return the L1 errors of posterior medians, scaled to sum to 1."""
        order, errors = self.prior_shares.argsort(axis=0), []
        for rows, weights in self._posteriors(noise):
            across = np.ascontiguousarray(weights.T)
            claimed = np.empty_like(self.true_shares[rows])
            for label, ranks in enumerate(order.T):
                half = (across[ranks].cumsum(axis=0) < 0.5).sum(axis=0)
                middle = ranks[half.clip(max=len(ranks) - 1)]
                claimed[:, label] = self.prior_shares[middle, label]
            claimed /= claimed.sum(axis=1, keepdims=True)
            errors.append(np.abs(claimed - self.true_shares[rows]).sum(axis=1))
        return min(np.concatenate(errors), self._linear_errors(noise), key=np.mean)

    def _linear_errors(self, noise: _ClientNoise) -> Float[np.ndarray, " clients"]:
        """Return the L1 errors of the best linear estimates, made shares.

        Few draws of the prior are near a client that is seen with little noise, or that has
        many labels, so claims from draws have an error that no attack has.
        """
        claimed = self.mean + (self._seen(noise) / (1 + noise.variance)) @ self.directions.T
        claimed = claimed.clip(min=0)
        claimed /= claimed.sum(axis=1, keepdims=True)
        errors: Float[np.ndarray, " clients"] = np.abs(claimed - self.true_shares).sum(axis=1)
        return errors

    def _seen(self, noise: _ClientNoise) -> Float[np.ndarray, "clients directions"]:
        drawn: Float[np.ndarray, "clients directions"]
        drawn = self.draws.normal(size=self.true.shape)
        if self.deviations is None:
            drawn = self.true + drawn * np.sqrt(noise.variance)
        else:
            new = noise.variance - noise.lasting
            drawn = self.true + self.deviations + drawn * np.sqrt(new)
        return drawn

    def _posteriors(
        self, noise: _ClientNoise
    ) -> Iterator[tuple[slice, Float[np.ndarray, "batch draws"]]]:
        """Yield clients and the weights of the draws in their posteriors, batch by batch."""
        seen = self._seen(noise)
        length = (self.prior**2 / noise.variance).sum(axis=1) / 2
        for start in range(0, len(seen), BATCH):
            rows = slice(start, start + BATCH)
            log = (seen[rows] / noise.variance) @ self.prior.T - length
            weights = np.exp(log - log.max(axis=1, keepdims=True))
            yield rows, weights / weights.sum(axis=1, keepdims=True)
