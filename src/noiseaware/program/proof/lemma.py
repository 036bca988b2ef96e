"""The lemmas that a certificate rests on, by name: each lemma has its statement, its source, and a test of its own.

A certificate is about the mechanisms as they are specified, in ideal arithmetic; that what is drawn keeps to it is
argued in custodian/program/noise.py.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Lemma:
    """A statement that the check relies on and does not prove itself."""

    name: str
    statement: str
    source: str


_DWORK = "Dwork & Roth 2014"
_PRIVINFER = "Barthe et al. 2016"

LAPLACE = Lemma(
    "laplace",
    "Laplace noise of scale Δ/ε on values that neighbours move by k in all costs (εk/Δ, 0).",
    f"{_DWORK}, theorem 3.6; {_PRIVINFER}, definition 3.3",
)
GAUSSIAN = Lemma(
    "gaussian",
    "Gaussian noise of σ = Δ·√(2 ln(1.25/δ))/ε on a value that neighbours move by k costs (εk/Δ, δ) if εk/Δ < 1.",
    f"{_DWORK}, theorem A.1; {_PRIVINFER}, definition 3.4",
)
EXPONENTIAL = Lemma(
    "exponential",
    "Choosing r with weights e^{ε·score(r)/2Δ} costs (εk/Δ, 0) if neighbours move no score by more than k.",
    "McSherry & Talwar 2007, theorem 6",
)
SAMPLE = Lemma(
    "posterior sample",
    "One draw of a beta posterior kept within [low, high] costs (logit(high) − logit(low), 0).",
    "Wang, Fienberg & Smola 2015, theorem 1, for Bernoulli records",
)
COMPOSITION = Lemma(
    "composition",
    "Costs of mechanisms used one after another add up, and a draw that is used again costs nothing again.",
    f"{_PRIVINFER}, lemma 3.3",
)
POST_PROCESSING = Lemma("post-processing", "Any function of what is public costs nothing.", f"{_PRIVINFER}, lemma 3.2")
EACH_RECORD = Lemma(
    "each record",
    "A mechanism run on each record costs what it costs for the one record in which neighbours differ.",
    "parallel composition, McSherry 2009, theorem 4",
)
COUNTS = Lemma(
    "counts",
    "One record moves two counts by 1 where it is replaced, and one count by 1 where it comes or goes.",
    "definition of neighbours",
)
SUM = Lemma(
    "clamped sum",
    "One record within [low, high] moves a sum by high − low where it is replaced, by max(|low|, |high|) otherwise.",
    "definition of neighbours",
)
MOMENTS = Lemma(
    "second moments",
    "One row of d columns within ±1 moves all sums and products together by d(d+2)²/2(d+1), or d(d+3)/2 if it goes.",
    "proved in query/moments.py",
)
CONJUGATE = Lemma(
    "conjugate posterior",
    "beta(a, b) and Bernoulli records give beta(a + #true, b + #false); likewise Dirichlet, normal and gamma.",
    "Bayes' theorem",
)
TRIANGLE = Lemma(
    "triangle inequality",
    "In a metric d, neighbours move the score −d(posterior, r) by d(posterior, its neighbour) at most, for every r.",
    "definition of a metric",
)
HELLINGER = Lemma(
    "Hellinger distance of neighbours",
    "Under a Dirichlet prior α, posteriors of neighbours are max √(1 − φ(α_i)φ(α_j)) apart, φ(x) = Γ(x+½)/(Γ(x)√x).",
    "φ increases, so the least counts are the worst",
)

LEMMAS = (
    LAPLACE,
    GAUSSIAN,
    EXPONENTIAL,
    SAMPLE,
    COMPOSITION,
    POST_PROCESSING,
    EACH_RECORD,
    COUNTS,
    SUM,
    MOMENTS,
    CONJUGATE,
    TRIANGLE,
    HELLINGER,
)

_DECIMALS = 10**15


def hellinger_bound(prior: list[Fraction]) -> Fraction:
    """max over i ≠ j of √(1 − φ(α_i)φ(α_j)), rounded up: of the two least entries, as φ increases."""
    import mpmath

    with mpmath.workdps(40):
        first, second = (mpmath.mpf(a.numerator) / a.denominator for a in sorted(prior)[:2])
        product = mpmath.mpf(1)
        for x in (first, second):
            product *= mpmath.exp(mpmath.loggamma(x + mpmath.mpf(1) / 2) - mpmath.loggamma(x)) / mpmath.sqrt(x)
        return _above(mpmath.sqrt(1 - product))


def sample_cost(low: Fraction, high: Fraction) -> Fraction:
    """logit(high) − logit(low), rounded up."""
    import mpmath

    odds = (high / (1 - high)) / (low / (1 - low))
    with mpmath.workdps(40):
        return _above(mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator))


def _above(value) -> Fraction:
    """A fraction of 15 decimals that is not below: value has 40 digits, and one unit covers the error of the last."""
    import mpmath

    return Fraction(int(mpmath.ceil(value * _DECIMALS)) + 1, _DECIMALS)
