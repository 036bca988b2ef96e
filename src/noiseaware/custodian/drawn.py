"""What the mechanisms of a program draw: discrete noise that costs no more than the certificate says.

*Laplace.* A value lies on a lattice offset + unit·ℤ with public offset and unit (counts, fixed-point sums and what is
linear in them), or is rounded to 2^−24 noise scales or finer. Neighbours that move it by k move it by m lattice steps,
m = ⌊k/unit⌋, or ⌈k/unit⌉ where it was rounded, as rounding is monotone and commutes with whole steps. Discrete Laplace
noise of b steps costs m/b, and b is the least float for which that is at most the certified ε·k/Δ.

*Gaussian.* Discrete noise of the specified deviation, rounded up. The loss exceeds ε where the noise exceeds
t = εσ²/m − m/2 steps, and P(noise ≥ ⌈t⌉) ≤ Φ̄((⌈t⌉ − 1)/σ) (Canonne, Kamath & Steinke 2020, proposition 25): this is
computed, and refused where it is above δ.

*Exponential.* Scores are rounded to steps of 2^−30; neighbours move them by ⌈k·2^30⌉ steps, and by two more where they
hold a Hellinger distance, which evaluate.py rounds once, to a float. OpenDP chooses by integers (exponential.py).

*Sample.* A choice among the points of a public grid, by whole log-likelihoods of each record.

Nothing can fail for a value in the table: what leaves 64 bits is moved to the edge, which brings neighbours nearer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from noiseaware.custodian import exponential
from noiseaware.custodian.noise import draw
from noiseaware.mechanism import AbstractMechanism, DiscreteGaussian, DiscreteLaplace
from noiseaware.privacy import Guarantee, Pure, ZeroConcentrated, above
from noiseaware.program import lattice
from noiseaware.program.evaluate import Leaf, evaluate, numbers_of, scores
from noiseaware.program.lemma import sample_cost
from noiseaware.program.mechanism import Mechanism
from noiseaware.program.term import Distance, walk

_ROOM = 2**61
"""Where values and scores stop, in steps."""
_WIDEST = 50
"""Noise of more than 2^50 steps is drawn on a coarser grid, so that 64 bits hold it."""
_FINE = 24
"""A value on no lattice is rounded to 2^−24 noise scales, and is moved to the edge beyond 2^37 of them; finer where
neighbours move it by little, since whole steps would cost more than that."""
_SCORE_STEPS = 2**30
_LIKELIHOOD_STEPS = 2**20
_GRID = 1000
"""Points of the grid that a posterior sample is drawn from."""
_FLOAT_STEPS = 2


@dataclass(frozen=True)
class Noisy:
    """A noisy value: offset + unit · steps, and the law of the noise in steps."""

    offset: Fraction
    unit: Fraction
    steps: int
    law: AbstractMechanism
    is_lattice: bool

    @property
    def value(self) -> Fraction:
        return self.offset + self.unit * self.steps


def noised(mechanism: Mechanism, place: int, move: Fraction | None, leaf: Leaf, step: Fraction) -> Noisy:
    """A value with Laplace or normal noise, given how far neighbours move it (None: by the stated sensitivity)."""
    term, width, epsilon = mechanism.values[place], evaluate(mechanism.width, leaf), evaluate(mechanism.epsilon, leaf)
    k, is_laplace = width if move is None else move, mechanism.name == "laplace"
    scale = width / epsilon * (1 if is_laplace else Fraction(_deviation(mechanism.delta)))
    unit = lattice.unit(term, leaf, step)
    if unit is None or scale > unit * 2**_WIDEST:
        offset, unit, is_lattice = Fraction(0), _fine_unit(scale, k), False
        moved = max(1, math.ceil(k / unit))
        spread = scale / unit if k == 0 else max(scale / unit, scale * moved / k)
    else:
        offset, is_lattice = lattice.offset(term, leaf), True
        moved, spread = max(1, math.floor(k / unit)), scale / unit
    law = (DiscreteLaplace if is_laplace else DiscreteGaussian)(above(spread))
    if not is_laplace and k:
        _check_delta(Fraction(law.spread), moved, epsilon * k / width, mechanism.delta)  # type: ignore[arg-type]
    return Noisy(offset, unit, _noise(law, _steps((evaluate(term, leaf) - offset) / unit), moved), law, is_lattice)


def chosen(mechanism: Mechanism, move: Fraction | None, leaf: Leaf, n: int) -> tuple[Fraction, ...]:
    """One of the candidates, as its numbers."""
    scored = list(scores(mechanism, n, leaf))
    width, epsilon = evaluate(mechanism.width, leaf), evaluate(mechanism.epsilon, leaf)
    k = width if move is None else move
    is_rough = any(isinstance(node, Distance) and node.metric == "hellinger" for node in walk(mechanism.values))
    moved = max(1, math.ceil(k * _SCORE_STEPS) + (_FLOAT_STEPS if is_rough else 0))
    price = Pure(epsilon * (k or Fraction(moved, _SCORE_STEPS)) / width)
    whole = [_steps(score * _SCORE_STEPS) for _, score in scored]
    scale = exponential.calibrated(price, moved)
    place = exponential.select(whole, scale=scale, sensitivity=moved, guarantee=price)
    return scored[place][0]


def sampled(mechanism: Mechanism, leaf: Leaf, true: int, n: int) -> Fraction:
    """A point θ of the grid with P ∝ θ^{a−1} (1−θ)^{b−1}, given how many of n records are true.

    A record adds log θ or log(1−θ) to the score of θ, in whole steps and less the middle over the grid, which moves all
    scores alike: replaced, come or gone, it moves none by more than half of logit(high) − logit(low). The prior is told
    from its greatest value, so that what is likely stays clear of the edge.
    """
    assert mechanism.posterior is not None
    assert mechanism.posterior.origin is not None
    assert mechanism.within is not None
    low, high = mechanism.within
    a, b = numbers_of(mechanism.posterior.origin.prior, leaf)
    grid = [low + (high - low) * j / (_GRID - 1) for j in range(_GRID)]
    logs = [(math.log(t), math.log(1 - t)) for t in grid]
    prior = [_LIKELIHOOD_STEPS * ((a - 1) * Fraction(yes) + (b - 1) * Fraction(no)) for yes, no in logs]
    top = max(prior)
    adds = list(zip(*(_centred(side) for side in zip(*logs, strict=True)), strict=True))
    whole = [_steps(true * yes + (n - true) * no + own - top) for (yes, no), own in zip(adds, prior, strict=True)]
    moved = max(abs(yes - no) for yes, no in adds)  # at an end, where one is above 0 and the other below
    price = Pure(sample_cost(low, high))
    scale = exponential.calibrated(price, moved)  # the steps, and the little more that their rounding needs
    return grid[exponential.select(whole, scale=scale, sensitivity=moved, guarantee=price)]


def _centred(logs: Sequence[float]) -> list[int]:
    """What a record adds at each point of the grid, in whole steps, less the middle of its ends."""
    whole = [round(_LIKELIHOOD_STEPS * log) for log in logs]
    return [own - (whole[0] + whole[-1]) // 2 for own in whole]


def _fine_unit(scale: Fraction, k: Fraction) -> Fraction:
    """A power of two: 2^−24 noise scales, or a millionth of k, but never so fine that the noise would not fit."""
    finer = math.ceil(math.log2(scale / k)) + 20 if k else 0
    return Fraction(2) ** (math.floor(math.log2(scale)) - min(max(_FINE, finer), _WIDEST))


def _steps(value: Fraction) -> int:
    """The nearest whole number, halves up: Python's own rounding takes 0.5 and 1.5 two steps apart."""
    return max(-_ROOM, min(_ROOM, math.floor(value + Fraction(1, 2))))


def _noise(law: AbstractMechanism, steps: int, moved: int) -> int:
    """The steps with fresh noise; what it keeps follows from its own scale."""
    spread = Fraction(law.spread)  # type: ignore[arg-type]
    room = 1 + Fraction(1, 10**9)  # OpenDP's map rounds up in the last places, which an exact promise would not bear
    promise: Guarantee = Pure(moved / spread * room)
    if isinstance(law, DiscreteGaussian):
        promise = ZeroConcentrated(moved**2 / (2 * spread**2) * room)
    (noisy,) = draw(law, [steps], sensitivity=moved, sensitivity_squared=moved**2, guarantee=promise)
    return noisy


def _deviation(delta: Fraction) -> float:
    """√(2 ln(1.25/δ)), rounded up."""
    return math.sqrt(2 * math.log(1.25 / float(delta))) * (1 + 1e-12)


def _check_delta(sigma: Fraction, moved: int, epsilon: Fraction, delta: Fraction) -> None:
    """Normal noise of σ steps on a value that moves by m keeps (ε, δ), or nothing is drawn."""
    threshold = math.ceil(epsilon * sigma**2 / moved - Fraction(moved, 2))
    beyond = 0.5 * math.erfc((threshold - 1) / float(sigma) / math.sqrt(2))
    if beyond * (1 + 1e-9) > float(delta):
        raise RuntimeError(f"noise of {float(sigma):g} steps must keep δ = {float(delta):g}, and does not.")


def flat(found: Noisy | Fraction) -> Fraction:
    """A draw as its number."""
    return found.value if isinstance(found, Noisy) else found


Drawn = Sequence[Noisy | Fraction]
