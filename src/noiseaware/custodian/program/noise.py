"""What the mechanisms of a program draw: discrete noise that costs no more than the certificate says.

*Laplace.* A value lies on a lattice offset + unit·ℤ with public offset and unit (counts, fixed-point sums and what is
linear in them), or is rounded to 2^−24 noise scales or finer. Neighbours that move it by k move it by m lattice steps,
m = ⌊k/unit⌋, or ⌈k/unit⌉ where it was rounded, as rounding is monotone and commutes with whole steps. Discrete Laplace
noise of b steps costs m/b, and b is the least float for which that is at most the certified ε·k/Δ.

*Gaussian.* Discrete noise of the specified deviation, rounded up. The loss exceeds ε where the noise exceeds
t = εσ²/m − m/2 steps, and P(noise ≥ ⌈t⌉) ≤ Φ̄((⌈t⌉ − 1)/σ) (Canonne, Kamath & Steinke 2020, proposition 25): this is
computed, and refused where it is above δ.

*Exponential.* Scores are rounded to steps of 2^−30, or of 2^−30 k where k is above 1; neighbours move them by k in
steps, rounded up, and by two more where they hold a Hellinger distance, which evaluate.py rounds once, to a float.
OpenDP chooses by integers (exponential.py).

*Sample.* A choice among the points of a public grid, by whole log-likelihoods of each record.

Nothing can fail for a value in the table: what leaves 64 bits is moved to the edge, which brings neighbours nearer. All
but the draw itself is tried before the charge, with made-up draws for those that noise depends on (`check_drawable`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from noiseaware.custodian import exponential
from noiseaware.custodian.engine.quiet import quietly
from noiseaware.custodian.noise import draw
from noiseaware.mechanism import LAWS, AbstractMechanism
from noiseaware.privacy import Guarantee, Pure, above
from noiseaware.program.language.evaluate import Leaf, evaluate, natural_log, numbers_of, scores
from noiseaware.program.language.expression import Distance, walk
from noiseaware.program.language.mechanism import Mechanism
from noiseaware.program.proof import lattice
from noiseaware.program.proof.lemma import sample_cost

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


@dataclass(frozen=True)
class _Plan:
    """Noise that is yet to be drawn: its law on offset + unit·ℤ, where neighbours are `moved` steps apart."""

    offset: Fraction
    unit: Fraction
    moved: int
    law: AbstractMechanism
    is_lattice: bool

    @property
    def cost(self) -> Fraction:
        """ε of Laplace noise of this scale, ρ of Gaussian noise."""
        return self._guarantee.amount

    @property
    def promise(self) -> Guarantee:
        """The promise of the noise, and a little for what OpenDP's map rounds up in the last places."""
        return self._guarantee.part(1 + Fraction(1, 10**9))

    @property
    def _guarantee(self) -> Guarantee:
        guarantee = self.law.guarantee(self.moved)
        assert guarantee is not None
        return guarantee


def _planned(mechanism: Mechanism, place: int, move: Fraction | None, leaf: Leaf, step: Fraction) -> _Plan:
    """The noise of a value, given how far neighbours move it (None: by the stated sensitivity)."""
    term, width, epsilon = mechanism.values[place], evaluate(mechanism.width, leaf), evaluate(mechanism.epsilon, leaf)
    k = width if move is None else move
    scale = width / epsilon * (Fraction(_deviation(mechanism.delta)) if mechanism.delta else 1)
    unit = lattice.unit(term, leaf, step)
    if unit is None or scale > unit * 2**_WIDEST:
        offset, unit, is_lattice = Fraction(0), _fine_unit(scale, k), False
        moved = max(1, math.ceil(k / unit))
        spread = scale / unit if k == 0 else max(scale / unit, scale * moved / k)
    else:
        offset, is_lattice = lattice.offset(term, leaf), True
        moved, spread = max(1, math.floor(k / unit)), scale / unit
    law = LAWS[f"discrete_{mechanism.name}"].of(above(spread))
    if mechanism.delta and k:
        _check_delta(Fraction(law.spread), moved, epsilon * k / width, mechanism.delta)  # type: ignore[arg-type]
    return _Plan(offset, unit, moved, law, is_lattice)


def noised(mechanism: Mechanism, place: int, move: Fraction | None, leaf: Leaf, step: Fraction) -> Noisy:
    """A value with Laplace or Gaussian noise."""
    plan = _planned(mechanism, place, move, leaf, step)
    steps, moved = _steps((evaluate(mechanism.values[place], leaf) - plan.offset) / plan.unit), plan.moved
    (noisy,) = draw(plan.law, [steps], sensitivity=moved, sensitivity_squared=moved**2, guarantee=plan.promise)
    return Noisy(plan.offset, plan.unit, noisy, plan.law, plan.is_lattice)


@dataclass(frozen=True)
class _Choice:
    """A choice that is yet to be made: neighbours move a score by so many steps; the scale, and what it promises."""

    steps: Fraction
    moved: int
    scale: float
    price: Pure

    def place(self, scores: Sequence[int]) -> int:
        """The place of one of the scores."""
        return exponential.select(scores, scale=self.scale, sensitivity=self.moved, guarantee=self.price)


def _weighed(mechanism: Mechanism, move: Fraction | None, leaf: Leaf) -> _Choice:
    """The choice of an exponential mechanism."""
    width, epsilon = evaluate(mechanism.width, leaf), evaluate(mechanism.epsilon, leaf)
    k = width if move is None else move
    is_rough = any(isinstance(node, Distance) and node.metric == "hellinger" for node in walk(mechanism.values))
    steps = _SCORE_STEPS / max(Fraction(1), k)
    moved = max(1, math.ceil(k * steps) + (_FLOAT_STEPS if is_rough else 0))
    price = Pure(epsilon * (k or moved / steps) / width)
    return _Choice(steps, moved, exponential.calibrated(price, moved), price)


def chosen(mechanism: Mechanism, move: Fraction | None, leaf: Leaf, n: int) -> tuple[Fraction, ...]:
    """One of the candidates, as its numbers."""
    choice, scored = _weighed(mechanism, move, leaf), list(scores(mechanism, n, leaf))
    return scored[choice.place([_steps(score * choice.steps) for _, score in scored])][0]


def check_drawable(
    mechanism: Mechanism, moves: Mapping[tuple[int, int], Fraction | None], leaf: Leaf, step: Fraction
) -> None:
    """Refuse noise that no float or 64-bit integer holds; the leaf knows nothing of the table, and nothing is drawn."""

    def tried() -> bool:
        if mechanism.name == "sample":
            return bool(_sampling(mechanism))
        if mechanism.name == "exponential":
            return bool(_weighed(mechanism, moves[id(mechanism), 0], leaf))
        places = range(len(mechanism.values))
        plans = [_planned(mechanism, place, moves[id(mechanism), place], leaf, step) for place in places]
        return all(plan.moved <= _ROOM and above(2 * plan.cost) for plan in plans)

    rule = "epsilon, delta, sensitivity and bounds must be nearer to 1, so that 64 bits hold the noise and its scale"
    if not quietly(tried, complaint := f"{mechanism.line}: {rule}."):
        raise ValueError(complaint)


@dataclass(frozen=True)
class _Sampling:
    """A posterior sample that is yet to be drawn: its grid, log θ and log(1 − θ) there, what a record adds in steps."""

    grid: list[Fraction]
    logs: list[tuple[float, float]]
    adds: list[tuple[int, int]]
    choice: _Choice


def _sampling(mechanism: Mechanism) -> _Sampling:
    assert mechanism.within is not None
    low, high = mechanism.within
    grid = [low + (high - low) * j / (_GRID - 1) for j in range(_GRID)]
    logs = [(natural_log(t), natural_log(1 - t)) for t in grid]
    adds = list(zip(*(_centred(side) for side in zip(*logs, strict=True)), strict=True))
    moved = max(1, *(abs(yes - no) for yes, no in adds))  # at an end, where one is above 0 and the other below
    price = Pure(sample_cost(low, high))
    scale = exponential.calibrated(price, moved)  # the steps, and the little more that their rounding needs
    return _Sampling(grid, logs, adds, _Choice(Fraction(_LIKELIHOOD_STEPS), moved, scale, price))


def sampled(mechanism: Mechanism, leaf: Leaf, true: int, n: int) -> Fraction:
    """A point θ of the grid with P ∝ θ^{a−1} (1−θ)^{b−1}, given how many of n records are true.

    A record adds log θ or log(1−θ) to the score of θ, in whole steps and less the middle over the grid, which moves all
    scores alike: replaced, come or gone, it moves none by more than half of logit(high) − logit(low). The prior is told
    from its greatest value, so that what is likely stays clear of the edge.
    """
    assert mechanism.posterior is not None
    assert mechanism.posterior.origin is not None
    found = _sampling(mechanism)
    a, b = numbers_of(mechanism.posterior.origin.prior, leaf)
    prior = [_LIKELIHOOD_STEPS * ((a - 1) * Fraction(yes) + (b - 1) * Fraction(no)) for yes, no in found.logs]
    top = max(prior)
    whole = [_steps(true * yes + (n - true) * no + own - top) for (yes, no), own in zip(found.adds, prior, strict=True)]
    return found.grid[found.choice.place(whole)]


def _centred(logs: Sequence[float]) -> list[int]:
    """What a record adds at each point of the grid, in whole steps, less the middle of its ends."""
    whole = [round(_LIKELIHOOD_STEPS * log) for log in logs]
    return [own - (whole[0] + whole[-1]) // 2 for own in whole]


def _fine_unit(scale: Fraction, k: Fraction) -> Fraction:
    """A power of two: 2^−24 noise scales, or a millionth of k, but never so fine that the noise would not fit."""
    finer = math.ceil(natural_log(scale / k) / math.log(2)) + 20 if k else 0
    return Fraction(2) ** (math.floor(natural_log(scale) / math.log(2)) - min(max(_FINE, finer), _WIDEST))


def _steps(value: Fraction) -> int:
    """The nearest whole number, halves up: Python's own rounding takes 0.5 and 1.5 two steps apart."""
    return max(-_ROOM, min(_ROOM, math.floor(value + Fraction(1, 2))))


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
