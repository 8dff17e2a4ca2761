"""The posterior of clients' label shares, given sums that respond to them linearly."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float
from scipy.special import chdtri

from overheard.questions.label_shares.estimators.sum_response import SumResponse, contrasts

CONCENTRATIONS = np.exp(np.linspace(np.log(0.3), np.log(300), 25))
"""Sums of the parameters of the Dirichlet prior over clients: from clients with one label each
to clients that are nearly alike."""

SCALES = np.exp(np.linspace(np.log(0.4), np.log(30), 25))
"""Factors of the variance that virtual clients show: real ones may differ from them."""

EXTRA = (0.0, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Variances that come anew in each sum, as factors of the mean variance of a sum: noise that a
server adds, new records, or rounds whose cohort is not what it seems."""

DRIFTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Variances of a client's shares over the rounds around their mean, as factors of that of
clients with one label each."""

DRIFT_EVIDENCE = 3.0
"""Log evidence by which a drift must explain the sums better than constant shares."""

LEAST_DRIFT = 0.016
"""Drift below which shares are taken as constant. How sums respond to shares changes over the
rounds, too, which looks like a small drift: that of 16 federations of constant shares was up to
.013, but for one whose updates say little of shares (seeds 900 and 901)."""

WRONG_ALARMS = 0.05
"""Chance that the sum with the largest error is left out although its cohort is right, over all
sums (Bonferroni)."""

MOST_WRONG = 0.3
"""Most sums whose cohort is taken to be wrong, as a share of all."""

EXCHANGES = 19
"""Orders of cohorts with which the evidence is compared: the smallest p-value is 1 / 20."""

BLOCK = 8
"""Neighbouring rounds whose cohorts are exchanged. Exchanges over the whole run would call a
trend of who is available a leak."""

CHAINS = 16

BURN_IN = 50
"""Sweeps of each chain that are dropped."""

GRID = 48
"""Points of the grid on which two shares are redrawn."""

FEWEST = 0.02
"""The least mean share of a label, as a multiple of an even share."""

VAGUE = 0.05
"""Variance of a contrast between clients, for the estimate of the mean client alone."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class SharesPosterior:
    """Draws from the posterior of clients' label shares.

    Args:
        draws: (draws, clients, classes).
        scale: the factor of the variance that the sums themselves speak for.
        extra: the variance that comes anew in each sum, as a factor of the mean variance.
        drift: the variance of a client's shares over the rounds around their mean, as a factor
            of that of clients with one label each; 0 = constant shares.
        unexplained: the extra variance that constant shares would need.
        wrong: number of sums left out, as their cohorts do not fit them.
        exchange_p: p-value of the evidence among exchanges of cohorts between neighbouring
            rounds; None = there are too few rounds. It is approximate, as neighbouring rounds
            are not quite exchangeable.

    """

    draws: Float[np.ndarray, "draws clients classes"]
    scale: float
    extra: float
    drift: float
    unexplained: float
    wrong: int
    exchange_p: float | None


def draw_shares(
    response: SumResponse, classes: int, sweeps: int, generator: np.random.Generator
) -> SharesPosterior:
    """Draw label shares of all clients from their posterior.

    Clients have mean shares from one Dirichlet distribution, and may drift around them
    (`SumResponse.drift`). The mean of the distribution is fitted to the sums. Its
    concentration, and how noisy sums are, are drawn from their evidence under a Gaussian prior
    with the moments of the Dirichlet, with log-uniform priors. Given both, Gibbs steps redraw
    two shares of a client at a time, with their sum kept: the Gaussian likelihood times the
    Dirichlet density along that line, on a grid that is dense at both ends.
    """
    basis = contrasts(classes)
    kept = _without_wrong_cohorts(response, basis)
    constant = _fit_constant(kept, basis)
    chosen = _fit_drift(kept, basis, constant)
    probabilities = chosen.probabilities
    drawn = generator.choice(probabilities.size, CHAINS, p=probabilities.ravel())
    concentrations, scales = np.unravel_index(drawn, probabilities.shape)
    draws = _Sampler(chosen, basis, generator).run(
        CONCENTRATIONS[concentrations][:, None] * chosen.mean, SCALES[scales], sweeps
    )
    wrong = len(response.weights) - len(kept.weights)
    exchange_p = _exchange_p(kept, constant, basis, generator)
    drift = chosen.drift * chosen.scale
    return SharesPosterior(
        draws, chosen.scale, chosen.extra, drift, constant.extra, wrong, exchange_p
    )


def _fit(response: SumResponse, basis: Float[np.ndarray, "classes contrasts"]) -> "_Equations":
    """Return the equations with the extra variance and the drift that the sums speak for."""
    return _fit_drift(response, basis, _fit_constant(response, basis))


def _fit_constant(
    response: SumResponse, basis: Float[np.ndarray, "classes contrasts"]
) -> "_Equations":
    """Return the equations with the extra variance of the largest evidence, without a drift."""
    fits = (_Equations(response, extra, 0.0, basis) for extra in EXTRA)
    return max(fits, key=lambda one: one.total_evidence)


def _fit_drift(
    response: SumResponse,
    basis: Float[np.ndarray, "classes contrasts"],
    constant: "_Equations",
) -> "_Equations":
    """Return the equations with a drift if it explains the sums better and is large enough.

    Larger drifts are tried as long as they explain the sums better.
    """
    best = constant
    # Where shares drift, constant ones need an extra variance that a drift may not.
    for extra in dict.fromkeys((constant.extra, 0.0)):
        last = -np.inf
        for drift in DRIFTS:
            fit = _Equations(response, extra, drift, basis)
            if fit.total_evidence < last:
                break
            last = fit.total_evidence
            best = max(best, fit, key=lambda one: one.total_evidence)
    is_better = best.total_evidence > constant.total_evidence + DRIFT_EVIDENCE
    return best if is_better and best.drift * best.scale > LEAST_DRIFT else constant


def _without_wrong_cohorts(
    response: SumResponse, basis: Float[np.ndarray, "classes contrasts"]
) -> SumResponse:
    """Return the sums that fit their cohorts, as predicted from all other sums.

    The worst sum is left out as long as its error is too large, and all is fitted anew. Sums of
    single clients name their senders, and stay.
    """
    is_joint = ((response.weights > 0).sum(axis=1) > 1).any()
    most = int(MOST_WRONG * len(response.weights)) if is_joint else 0
    for _ in range(most):
        errors = _left_out_errors(response, _fit(response, basis), basis)
        worst, width = int(errors.argmax()), response.observed.shape[1]
        if errors[worst] < chdtri(width, WRONG_ALARMS / len(errors)):
            break
        kept = np.arange(len(errors)) != worst
        if (response.weights[kept].sum(axis=0) == 0).any():
            break  # without this sum, nothing is known of a client
        response = response.take(kept)
    return response


def _left_out_errors(
    response: SumResponse, fit: "_Equations", basis: Float[np.ndarray, "classes contrasts"]
) -> Float[np.ndarray, " sums"]:
    """Return the squared error of each sum, predicted from the others: chi-squared if right."""
    sums, width = response.observed.shape
    concentration = float(np.exp(fit.probabilities.sum(axis=1) @ np.log(CONCENTRATIONS)))
    slopes = response.slopes
    spread = fit.spread(basis) / (1 + concentration)
    together = response.weights @ response.weights.T
    total = np.einsum("ts,tkd,kl,sle->tdse", together, slopes, spread, slopes, optimize=True)
    total = total.reshape(sums * width, -1) + fit.scale * fit.noise.covariance
    inverse = np.linalg.inv(total)
    center = np.einsum("tkd,k->td", slopes, fit.center(basis))
    solved = (inverse @ (response.observed - center).reshape(-1)).reshape(sums, width)
    own = np.einsum("tdte->tde", inverse.reshape(sums, width, sums, width))
    errors: Float[np.ndarray, " sums"]
    errors = (solved * np.linalg.solve(own, solved[:, :, None])[:, :, 0]).sum(axis=1)
    return errors


def _exchange_p(
    response: SumResponse,
    fit: "_Equations",
    basis: Float[np.ndarray, "classes contrasts"],
    generator: np.random.Generator,
) -> float | None:
    """Compare the evidence of constant shares with that of exchanged cohorts.

    Cohorts are exchanged between neighbouring sums. The model is that of constant shares, also
    where shares drift: the comparison is fair with any statistic, and this one is quick.
    """
    sums = len(response.weights)
    if sums < BLOCK:
        return None
    at_least = 1
    for _ in range(EXCHANGES):
        shift = int(generator.integers(BLOCK))
        order = np.lexsort((generator.random(sums), (np.arange(sums) + shift) // BLOCK))
        exchanged = _fit_constant(response.exchange(order), basis)
        at_least += exchanged.total_evidence >= fit.total_evidence
    return at_least / (1 + EXCHANGES)


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """The noise of sums.

    Args:
        of_sums: (sums, sums), its covariance, alike for all contrasts.
        drift: (numbers, numbers), what the drift of shares adds for all numbers of all sums;
            None = shares are constant.
        width: number of contrasts.

    """

    of_sums: Float[np.ndarray, "sums sums"]
    drift: Float[np.ndarray, "numbers numbers"] | None
    width: int

    @staticmethod
    def of(response: SumResponse, extra: float, drift: float) -> "_Noise":
        sums, width = response.observed.shape
        of_sums = response.covariance
        of_sums = of_sums + extra * of_sums.trace() / sums * np.eye(sums)
        return _Noise(of_sums, drift * response.drift() if drift else None, width)

    @property
    def covariance(self) -> Float[np.ndarray, "numbers numbers"]:
        """Return the covariance of all numbers of all sums."""
        alike: Float[np.ndarray, "numbers numbers"] = np.kron(self.of_sums, np.eye(self.width))
        return alike if self.drift is None else alike + self.drift

    @property
    def log_det(self) -> float:
        """Return the logarithm of its determinant."""
        if self.drift is None:
            return self.width * float(np.linalg.slogdet(self.of_sums)[1])
        return float(np.linalg.slogdet(self.covariance)[1])

    def solve(
        self, values: Float[np.ndarray, "sums contrasts columns"]
    ) -> Float[np.ndarray, "sums contrasts columns"]:
        """Return the inverse of the covariance times these values."""
        solved: Float[np.ndarray, "sums contrasts columns"]
        if self.drift is None:
            solved = np.einsum(
                "ts,sdn->tdn", np.linalg.inv(self.of_sums), values, optimize=True
            )
        else:
            numbers = values.reshape(-1, values.shape[2])
            solved = np.linalg.solve(self.covariance, numbers).reshape(values.shape)
        return solved


class _Equations:
    """The normal equations of contrasts of all clients, and the evidence of their prior."""

    def __init__(
        self,
        response: SumResponse,
        extra: float,
        drift: float,
        basis: Float[np.ndarray, "classes contrasts"],
    ) -> None:
        weights, slopes, observed = response.weights, response.slopes, response.observed
        self.extra, self.drift = extra, drift
        sums, clients = weights.shape
        width = basis.shape[1]
        self.noise = _Noise.of(response, extra, drift)
        design = weights[:, :, None, None] * slopes[:, None]  # (sums, clients, own, noise)
        flat = design.transpose(0, 3, 1, 2).reshape(sums, width, clients * width)
        solved = self.noise.solve(flat)
        self.matrix = np.einsum("tdm,tdn->mn", flat, solved, optimize=True)
        self.vector = np.einsum("tdn,td->n", solved, observed)
        self.square = float((observed * self.noise.solve(observed[:, :, None])[:, :, 0]).sum())
        self.clients, self.numbers = clients, sums * width
        self._log_det = self.noise.log_det
        self.mean = self._mean_shares(basis)
        self._log_evidence = self._evidence(basis)
        largest = self._log_evidence.max()
        self.total_evidence = largest + np.log(np.exp(self._log_evidence - largest).sum())
        self.probabilities = np.exp(self._log_evidence - self.total_evidence)
        self.probabilities /= self.probabilities.sum()

    @property
    def scale(self) -> float:
        """Return the factor of the variance that the sums themselves speak for."""
        return float(np.exp(self.probabilities.sum(axis=0) @ np.log(SCALES)))

    def center(
        self, basis: Float[np.ndarray, "classes contrasts"]
    ) -> Float[np.ndarray, " contrasts"]:
        """Return the contrasts of the mean shares."""
        center: Float[np.ndarray, " contrasts"] = (self.mean - 1 / len(self.mean)) @ basis
        return center

    def spread(
        self, basis: Float[np.ndarray, "classes contrasts"]
    ) -> Float[np.ndarray, "contrasts contrasts"]:
        """Return the covariance of contrasts of clients with one label each."""
        spread: Float[np.ndarray, "contrasts contrasts"]
        spread = basis.T @ (np.diag(self.mean) - np.outer(self.mean, self.mean)) @ basis
        return spread

    def _mean_shares(
        self, basis: Float[np.ndarray, "classes contrasts"]
    ) -> Float[np.ndarray, " classes"]:
        """Return the mean shares of clients by generalised least squares."""
        classes, width = basis.shape
        all_alike = np.tile(np.eye(width), (self.clients, 1))
        prior = np.eye(self.clients * width) / VAGUE
        solved = np.linalg.solve(self.matrix + prior, self.matrix @ all_alike)
        left = all_alike.T @ self.matrix @ all_alike - all_alike.T @ self.matrix @ solved
        right = all_alike.T @ self.vector - solved.T @ self.vector
        left += 1e-6 * left.trace() / width * np.eye(width) + 1e-12 * np.eye(width)
        mean = (basis @ np.linalg.solve(left, right) + 1 / classes).clip(FEWEST / classes)
        shares: Float[np.ndarray, " classes"] = mean / mean.sum()
        return shares

    def _evidence(
        self, basis: Float[np.ndarray, "classes contrasts"]
    ) -> Float[np.ndarray, "concentrations scales"]:
        """Return the log evidence of concentrations and scales, up to a constant."""
        root = np.kron(np.eye(self.clients), np.linalg.cholesky(self.spread(basis)))
        center = np.tile(self.center(basis), self.clients)
        square = self.square - 2 * self.vector @ center + center @ self.matrix @ center
        values, vectors = np.linalg.eigh(root.T @ self.matrix @ root)
        values = values.clip(0)
        turned = vectors.T @ (root.T @ (self.vector - self.matrix @ center))
        variance = 1 / (1 + CONCENTRATIONS)[:, None, None]
        scale = SCALES[None, :, None]
        ratio = values * variance / scale
        evidence: Float[np.ndarray, "concentrations scales"] = (
            -0.5 * np.log1p(ratio).sum(axis=2)
            + 0.5 * ((turned / scale) ** 2 * variance / (1 + ratio)).sum(axis=2)
            - 0.5 * self.numbers * np.log(SCALES)
            - 0.5 * square / SCALES
            - 0.5 * self._log_det
        )
        return evidence


class _Sampler:
    """Gibbs steps on pairs of shares, in several chains side by side."""

    def __init__(
        self,
        equations: _Equations,
        basis: Float[np.ndarray, "classes contrasts"],
        generator: np.random.Generator,
    ) -> None:
        self._clients, self._classes = equations.clients, len(basis)
        to_shares = np.kron(np.eye(self._clients), basis)
        self._matrix = to_shares @ equations.matrix @ to_shares.T
        self._vector = to_shares @ equations.vector
        self._generator = generator
        angles = np.pi * (np.arange(GRID) + 0.5) / GRID
        # Dense at both ends, where the density of a Dirichlet may be infinite.
        self._grid, self._log_step = (1 - np.cos(angles)) / 2, np.log(np.sin(angles))

    def run(
        self,
        parameters: Float[np.ndarray, "chains classes"],
        scales: Float[np.ndarray, " chains"],
        sweeps: int,
    ) -> Float[np.ndarray, "draws clients classes"]:
        chains = len(scales)
        shares = self._generator.dirichlet(np.ones(self._classes), (chains, self._clients))
        kept = []
        for sweep in range(BURN_IN + sweeps):
            # Computed anew in each sweep, so that rounding does not add up.
            product = shares.reshape(chains, -1) @ self._matrix
            for client in range(self._clients):
                order = self._generator.permutation(self._classes)
                for first, second in order[: self._classes // 2 * 2].reshape(-1, 2):
                    self._redraw(shares, product, client, (first, second), parameters, scales)
            if sweep >= BURN_IN:
                kept.append(shares.copy())
        return np.concatenate(kept)

    def _redraw(
        self,
        shares: Float[np.ndarray, "chains clients classes"],
        product: Float[np.ndarray, "chains numbers"],
        client: int,
        pair: tuple[int, int],
        parameters: Float[np.ndarray, "chains classes"],
        scales: Float[np.ndarray, " chains"],
    ) -> None:
        """Redraw two shares of a client in all chains, and update the matrix product."""
        first, second = pair
        one, other = client * self._classes + first, client * self._classes + second
        matrix, vector = self._matrix, self._vector
        both = shares[:, client, first] + shares[:, client, second]
        slope = vector[one] - product[:, one] - vector[other] + product[:, other]
        bend = matrix[one, one] + matrix[other, other] - 2 * matrix[one, other]
        steps = both[:, None] * self._grid - shares[:, client, first, None]
        density = (
            (slope[:, None] * steps - bend * steps**2 / 2) / scales[:, None]
            + (parameters[:, first, None] - 1) * np.log(self._grid)
            + (parameters[:, second, None] - 1) * np.log1p(-self._grid)
            + self._log_step
        )
        cumulated = np.exp(density - density.max(axis=1, keepdims=True)).cumsum(axis=1)
        level = self._generator.random(len(both))[:, None] * cumulated[:, -1:]
        cell = (cumulated < level).sum(axis=1).clip(0, GRID - 1)
        within = (cell + self._generator.random(len(both))) / GRID
        new = both * (1 - np.cos(np.pi * within)) / 2
        change = new - shares[:, client, first]
        shares[:, client, first], shares[:, client, second] = new, both - new
        product += change[:, None] * (matrix[one] - matrix[other])
