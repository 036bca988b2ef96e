"""Generalized linear models: y given a = coefficientsᵀ(x, 1), from noisy sums of x, xxᵀ, y and xy, and with x normal.

These sums are not sufficient, and need not be: only their mean and covariance enter, y_released ~ Normal(n m, n V + D).
With w = x − mean, S its covariance, slopes β, s² = βᵀSβ, e = Sβ/s and R = S − eeᵀ, x is single-index given θ:

    w = ez + r        z ~ Normal(0, 1),  r ~ Normal(0, R)        a = E a + sz

so that for h₁(a) = E[y | a] and h₂(a) = E[y² | a] seven integrals in z are all that is needed, A_k = E z^k h₁ (k ≤ 3)
and B_k = E z^k h₂ (k ≤ 2); the rest is Isserlis' theorem. They are sums at even steps: the weights are positive, so
that V is positive, also at large s. Where bounds move covariates, see _clipped_response. Σy² would need E[y⁴ | a],
and is not released: a yes or no is its own square, and a count's variance follows from its mean.
"""

import abc
import functools
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Key, Num

from noiseaware.check import kind
from noiseaware.family import _clipped_response
from noiseaware.family._moment import AbstractMomentFamily
from noiseaware.family._quadratic import raised
from noiseaware.family.linear_regression import believed_covariates
from noiseaware.family.multivariate_normal import MultivariateNormal, update_normal
from noiseaware.prior import AbstractPrior, Independent, NormalInverseWishart, Numeric
from noiseaware.prior import MultivariateNormal as NormalPrior
from noiseaware.prior import Normal as NumberPrior
from noiseaware.query.moments import all_pairs

_NODES = np.arange(-8, 8.0625, 0.125)
_WEIGHTS = 0.125 * np.exp(-0.5 * _NODES**2) / np.sqrt(2 * np.pi)
_FLATTEST = 1e-12  # under the root of s², so that slopes of 0 have a derivative
_LEAST = 1e-8  # of a variance: where all y are the same there is none
_STEPS, _LONGEST = 40, 0.5  # of the fit: how many, and how far one may move a, in sd and in mean


class Law(NamedTuple):
    """The parameters in the units of u, but for a, which has its own."""

    slopes: Float[Array, " p"]
    intercept: Float[Array, ""]
    mean: Float[Array, " p"]
    covariance: Float[Array, "p p"]


class AbstractGeneralizedLinear(AbstractMomentFamily):
    """A regression known by two functions of a, E[y | a] and E[y² | a]; covariates x are normal."""

    conjugate: ClassVar[type] = Independent
    parameters: ClassVar[tuple[str, ...]] = ("coefficients",)

    @abc.abstractmethod
    def link(self, a: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """E[y | a] and E[y² | a] of y as it is summed, clamped to its bounds."""

    @abc.abstractmethod
    def respond(self, key: Key[Array, ""], a: Float[Array, "..."]) -> Num[Array, "..."]:
        """y given a, before any bound is applied."""

    @property
    def x(self) -> tuple[str, ...]:
        """The covariates."""
        return self.query.columns[:-1]

    @property
    def y(self) -> str:
        """The column that they explain."""
        return self.query.columns[-1]

    def settings(self) -> dict[str, Any]:
        return {"x": self.x, "y": self.y, "bounds": self.query.intervals}

    @property
    def axes(self) -> dict[str, tuple[tuple[str, tuple], ...]]:
        return {"coefficients": (("coefficient", (*self.x, "intercept")),)}

    def named(self, theta):
        """θ goes on with the mean and covariance of x, which are nobody's question."""
        return {"coefficients": theta[..., : self.dimension]}

    @property
    def _covariates(self) -> MultivariateNormal:
        """The columns x by themselves, for their units and their prior."""
        return MultivariateNormal(self.x, None if self.query.intervals is None else self.query.intervals[:-1])

    # ---- records -------------------------------------------------------------------------------------------

    def sample(self, key: Key[Array, ""], theta: Float[Array, " m"], n: int) -> Num[Array, "d n"]:
        key_x, key_y = jax.random.split(key)
        q = self.dimension
        x = self._covariates.sample(key_x, theta[q:], n)
        y = self.respond(key_y, theta[: q - 1] @ x + theta[q - 1])
        return jnp.concatenate([x, y.astype(x.dtype)[None]])

    def modelled(self, x: Num[Array, "d n"]) -> tuple[Num[Array, "..."], ...]:
        """Of y what its bounds leave, and of x all, as if no covariate were outside."""
        if self.query.intervals is None:
            return self.query.statistic(x)
        return self.query.statistic([*x[:-1], x[-1].clip(*self.query.intervals[-1])])

    @property
    def is_natural(self) -> bool:
        return False

    def natural(self, theta: Float[Array, "*batch"]) -> Float[Array, "..."]:
        """θ itself: the sums are not those of an exponential family."""
        return theta

    def log_partition(self, eta: Inexact[Array, " k"]) -> Inexact[Array, ""]:
        raise NotImplementedError(f"the sums of a {self.name} are not those of an exponential family.")

    # ---- moments -------------------------------------------------------------------------------------------

    def modelled_moments(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
        """Mean and covariance of the statistic with covariates as they are: in closed form, but for seven integrals."""
        return self._moments(self._law(theta))

    def released_moments(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
        """The same of what the bounds leave of the covariates: the mean exact, the covariance by points."""
        if self.query.intervals is None:
            return self.modelled_moments(theta)
        return _clipped_response.moments(*self._clipped_law(theta))

    def released_again(self, theta: Float[Array, " m"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
        return _clipped_response.moments(*self._clipped_law(theta), again=True)

    def mean(self, theta: Float[Array, " m"]) -> Float[Array, " k"]:
        return self.released_moments(theta)[0]

    def covariance(self, theta: Float[Array, " m"]) -> Float[Array, "k k"]:
        return self.released_moments(theta)[1]

    @property
    def _forward(self) -> np.ndarray:
        """F of θ_u = Fθ: slopes in units of half, and the intercept at the centre of x."""
        matrix = np.diag(np.append(self.query.half[:-1], 1.0))
        matrix[-1, :-1] = self.query.centre[:-1]
        return matrix

    def _law(self, theta: Float[Array, " m"]) -> Law:
        q, p, centre, half = self.dimension, len(self.x), self.query.centre[:-1], self.query.half[:-1]
        inner = jnp.asarray(self._forward) @ theta[:q]
        covariance = theta[q + p :].reshape(p, p) / np.outer(half, half)
        return Law(inner[:p], inner[p], (theta[q : q + p] - centre) / half, covariance)

    def _clipped_law(self, theta: Float[Array, " m"]) -> tuple:
        law = self._law(theta)
        return law.mean, law.covariance, law.slopes, law.intercept, self._response

    def _moments(self, law: Law) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
        """Of (w, y, ww, wy) first, in that order; then of t, which is affine in them."""
        slopes, covariance, mean = law.slopes, law.covariance, law.mean
        first, second, order, shift = _places(len(self.x))
        cross = covariance @ slopes
        s = jnp.sqrt(slopes @ cross + _FLATTEST)
        e = cross / s
        rest, outer = covariance - jnp.outer(e, e), jnp.outer(e, e)
        (a0, a1, a2, a3), (b0, b1, b2) = self._integrals(law.intercept + slopes @ mean, s)
        ee = e[first] * e[second]
        of_w = [covariance, (e * a1)[:, None], jnp.zeros((e.size, ee.size)), outer * a2 + rest * a0]
        of_y = [(e * a1)[None], (b0 - a0**2)[None, None], (ee * (a2 - a0))[None], (e * (b1 - a0 * a1))[None]]
        with_w = rest[first] * e[second][:, None] + rest[second] * e[first][:, None]
        ww_wy = ee[:, None] * e * (a3 - a1) + with_w * a1
        between = covariance[np.ix_(first, first)] * covariance[np.ix_(second, second)]
        between = between + covariance[np.ix_(first, second)] * covariance[np.ix_(second, first)]
        of_ww = [of_w[2].T, of_y[2].T, between, ww_wy]
        of_wy = [of_w[3].T, of_y[3].T, ww_wy.T, outer * (b2 - a1**2) + rest * b0]
        inner = jnp.block([of_w, of_y, of_ww, of_wy])[np.ix_(order, order)]
        affine = jnp.eye(len(order)) + shift @ mean
        products = covariance[first, second] + mean[first] * mean[second]
        expected = jnp.concatenate([mean, a0[None], products, e * a1 + mean * a0])[order]
        return expected, affine @ inner @ affine.T

    def _integrals(self, middle: Float[Array, ""], s: Float[Array, ""]) -> tuple[Float[Array, "4"], Float[Array, "3"]]:
        """A_k and B_k of y in the units of u."""
        one, two = self._response(middle + s * _NODES)
        powers = _WEIGHTS * _NODES ** np.arange(4)[:, None]
        return powers @ one, powers[:3] @ two

    def _response(self, a: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """E[y | a] and E[y² | a] of y in the units of u."""
        centre, half = self.query.centre[-1], self.query.half[-1]
        h1, h2 = self.link(a)
        return (h1 - centre) / half, (h2 - 2 * centre * h1 + centre**2) / half**2

    # ---- priors --------------------------------------------------------------------------------------------

    def check_prior(self, prior: object) -> None:
        parts = prior.parts if isinstance(prior, Independent) else {"coefficients": prior}
        if not {"coefficients"} <= set(parts) <= {"coefficients", "covariates"}:
            raise ValueError(f"prior must have the parts coefficients and covariates, got {', '.join(parts)}.")
        known = {"coefficients": (NumberPrior, NormalPrior), "covariates": (NormalInverseWishart,)}
        for name, part in parts.items():
            if not isinstance(part, known[name]):
                kinds, got = " or ".join(one.__name__ for one in known[name]), kind(part)
                raise ValueError(f"{name} must be a {kinds} for the {self.name} family, got {got}.")
            size, what = (self.dimension, "coefficient") if name == "coefficients" else (len(self.x), "covariate")
            if not isinstance(part, NumberPrior) and len(part.mean) != size:  # type: ignore[attr-defined]
                got = len(part.mean)  # type: ignore[attr-defined]
                raise ValueError(f"{name} prior must have a mean of {size} entries, one a {what}, got {got}.")

    def completed(self, prior: AbstractPrior) -> Independent:
        """One law of all coefficients, and what is believed of the covariates, in the units of x."""
        parts = prior.parts if isinstance(prior, Independent) else {"coefficients": prior}
        own, covariates = parts["coefficients"], parts.get("covariates")
        if isinstance(own, NumberPrior):
            own = NormalPrior(np.full(self.dimension, float(own.mean)), float(own.variance))
        return Independent(coefficients=own, covariates=covariates or believed_covariates(self._covariates))

    def parted(self, prior: Independent) -> tuple[AbstractPrior, AbstractPrior]:
        return prior.parts["coefficients"], prior.parts["covariates"]

    # ---- what someone who does not know of the noise believes ----------------------------------------------

    def project(self, s: Num[Array, " k"], n: Numeric) -> Float[Array, " k"]:
        """The scatter of x is made positive, and the mean of y brought within its bounds."""
        p = len(self.x)
        mean, scatter = self._split(s, n)
        moments = raised(scatter, n) + n * jnp.outer(mean, mean)
        first, second, order, _ = _places(p)
        total = s[p] if self.query.intervals is None else s[p].clip(-n, n)
        return jnp.concatenate([s[:p], total[None], moments[first, second], s[self._crosses]])[order]

    def update(self, prior: Independent, s: Num[Array, " k"], n: Numeric) -> Independent:
        """A normal law about the fit of E y and E xy, given x as if its moments were known: there is no conjugate one.

        θ ← θ + (JᵀV⁻¹J + P)⁻¹ (JᵀV⁻¹(s − m) − P(θ − θ₀)),  J = dm/dθ,  P the precision of the prior
        """
        parts, forward = prior.parts, self._forward
        about_x = update_normal(self._covariates.scaled(parts["covariates"]), *self._split(s, n), n)
        start = forward @ jnp.asarray(parts["coefficients"].mean)
        precision = jnp.linalg.inv(forward @ jnp.asarray(parts["coefficients"].covariance) @ forward.T)
        here, law = self._crosses_and_y, self._fitted(about_x)
        seen = s[here] / n

        def expected(inner):
            mean, covariance = self._moments(law(inner))
            return mean[here], (mean[here], _given(covariance, here))

        def bend(inner):
            slope, (mean, covariance) = jax.jacfwd(expected, has_aux=True)(inner)
            weighted = jnp.linalg.solve(covariance + _LEAST * jnp.eye(len(here)), slope).T * n
            return weighted @ slope + precision, weighted @ (seen - mean) - precision @ (inner - start)

        def step(_, inner):
            move = jnp.linalg.solve(*bend(inner))
            slopes, rise = move[:-1], move[-1] + move[:-1] @ jnp.asarray(about_x.mean)
            far = jnp.sqrt(slopes @ law(inner).covariance @ slopes + rise**2)
            return inner + move / jnp.maximum(1.0, far / _LONGEST)

        inner = jax.lax.fori_loop(0, _STEPS, step, start)
        back = np.linalg.inv(forward)
        coefficients = NormalPrior(back @ inner, back @ jnp.linalg.inv(bend(inner)[0]) @ back.T)
        return Independent(coefficients=coefficients, covariates=self._covariates.unscaled(about_x))

    def _fitted(self, about_x: NormalInverseWishart):
        """The law of u with these coefficients, and x as it most likely is."""
        mean, covariance = jnp.asarray(about_x.mean), jnp.asarray(about_x.scale) / about_x.dof
        return lambda inner: Law(inner[:-1], inner[-1], mean, covariance)

    def _split(self, s: Num[Array, " k"], n: Numeric) -> tuple[Float[Array, " p"], Float[Array, "p p"]]:
        """The mean and the scatter of x."""
        p = len(self.x)
        places = {pair: self.dimension + i for i, pair in enumerate(self.query.pairs)}
        whole = np.array([[places[min(i, j), max(i, j)] for j in range(p)] for i in range(p)])
        mean = s[:p] / n
        return mean, s[whole] - n * jnp.outer(mean, mean)

    @property
    def _crosses(self) -> np.ndarray:
        """Where Σu_i u_y stand."""
        p = len(self.x)
        return np.array([self.dimension + i for i, (_, j) in enumerate(self.query.pairs) if j == p])

    @property
    def _crosses_and_y(self) -> np.ndarray:
        return np.append(self._crosses, len(self.x))


def _given(covariance: Float[Array, "k k"], here: np.ndarray) -> Float[Array, "q q"]:
    """The covariance of some statistics given the others."""
    there = np.setdiff1d(np.arange(len(covariance)), here)
    across = covariance[np.ix_(there, here)]
    return covariance[np.ix_(here, here)] - across.T @ jnp.linalg.solve(covariance[np.ix_(there, there)], across)


@functools.cache
def _places(p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The first and second column of each product of two covariates; where each statistic stands in (w, y, ww, wy); and
    what of w and y, times the mean of x, is added to a product for the statistic."""
    pairs = all_pairs(p + 1)[:-1]
    inner = [pair for pair in pairs if pair[1] < p]
    place = {pair: p + 1 + i for i, pair in enumerate(inner)}
    place |= {(i, p): p + 1 + len(inner) + i for i in range(p)}
    order = np.array([*range(p + 1), *(place[pair] for pair in pairs)])
    shift = np.zeros((len(order), len(order), p))
    for row, (i, j) in enumerate(pairs, p + 1):
        shift[row, j, i] += 1  # u_i u_j = … + mean_i w_j + mean_j w_i, and u_i u_y = … + mean_i y
        if j < p:
            shift[row, i, j] += 1
    first, second = (np.array(column) for column in zip(*inner, strict=True))
    return first, second, order, shift
