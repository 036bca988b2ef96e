"""Distributions, models and inference: `beta(1, 1)`, `observe`, `infer`, `ran`.

    infer(observe(db, beta(a, b), r, x ↦ bernoulli(r) == x)) = beta(a + #true, b + #false)

and likewise Dirichlet–categorical, normal–normal of known variance and gamma–Poisson: the posterior is exact, and its
parameters are terms of which a pair of neighbours can be told apart by what one record adds. Inference in any other
model is post-processing, and legal on public records only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from noiseaware.program.language.database import Database
from noiseaware.program.language.escape import Escape, Guarded, here
from noiseaware.program.language.expression import Distance, Record, Sample, Term, Variable, constant, term, walk

FIELDS = {
    "bernoulli": ("theta",),
    "beta": ("a", "b"),
    "normal": ("mean", "variance"),
    "gamma": ("shape", "rate"),
    "poisson": ("rate",),
}
VECTORS = {"categorical": "theta", "dirichlet": "concentration"}
_POSITIVE = {"beta": (0, 1), "gamma": (0, 1), "normal": (1,), "poisson": (0,)}


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Guarded):
    """A distribution whose parameters are terms; a posterior knows the model that it comes from."""

    described: ClassVar[str] = "a distribution"  # type: ignore[assignment]
    name: str
    parameters: tuple[Term, ...]
    origin: "Observation | None" = None

    def __getattr__(self, name: str) -> Any:
        if name == VECTORS.get(self.name):
            return self.parameters
        if name in FIELDS.get(self.name, ()):
            return self.parameters[FIELDS[self.name].index(name)]
        if name.startswith("__"):
            raise AttributeError(name)
        has = ", ".join(FIELDS.get(self.name, (VECTORS.get(self.name, "nothing"),)))
        raise Escape(f"a {self.name} distribution has no {name}; it has {has}.", here())

    def __eq__(self, other: Any) -> "Likelihood":  # type: ignore[override]
        return Likelihood(self, term(other))

    __hash__ = Guarded.__hash__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<a {self.name} distribution>"


def _distribution(name: str, parameters: Sequence[Any], origin: "Observation | None" = None) -> Distribution:
    terms = tuple(term(parameter) for parameter in parameters)
    must = range(len(terms)) if name in ("dirichlet", "categorical") else _POSITIVE.get(name, ())
    for place in must:
        known = constant(terms[place])
        if known is not None and known <= 0:
            raise ValueError(f"{here()}: parameters of {name} must be positive, got {known}.")
    return Distribution(name, terms, origin)


def bernoulli(theta: Any) -> Distribution:
    """True with probability θ."""
    return _distribution("bernoulli", [theta])


def categorical(theta: Sequence[Any]) -> Distribution:
    """Level j with probability θ_j."""
    return _distribution("categorical", list(theta))


def beta(a: Any, b: Any) -> Distribution:
    """Density ∝ θ^{a−1} (1−θ)^{b−1}."""
    return _distribution("beta", [a, b])


def dirichlet(*concentration: Any) -> Distribution:
    """Density ∝ Π θ_j^{α_j − 1}; the α_j one by one, or in a list."""
    is_list = len(concentration) == 1 and isinstance(concentration[0], list | tuple)
    listed = concentration[0] if is_list else concentration
    if len(listed) < 2:
        raise ValueError(f"{here()}: dirichlet must have at least two entries, got {len(listed)}.")
    return _distribution("dirichlet", list(listed))


def normal(mean: Any, variance: Any) -> Distribution:
    """The normal distribution, by its variance."""
    return _distribution("normal", [mean, variance])


def gamma(shape: Any, rate: Any) -> Distribution:
    """Density ∝ θ^{shape−1} e^{−rate·θ}."""
    return _distribution("gamma", [shape, rate])


def poisson(rate: Any) -> Distribution:
    """Counts of the given mean."""
    return _distribution("poisson", [rate])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A record that was seen to come from a distribution."""

    distribution: Distribution
    target: Term


@dataclass(frozen=True, eq=False)
class Observation:
    """A model of a database: where the parameter comes from, and a record from the parameter."""

    database: Database
    prior: Distribution
    parameter: tuple[Variable, ...]
    record: Record
    likelihood: Likelihood
    line: str


@dataclass(frozen=True, eq=False, repr=False)
class Inferred(Guarded):
    """A posterior that has no formula: draws of it are made when the program runs."""

    described: ClassVar[str] = "a posterior without a formula"  # type: ignore[assignment]
    origin: Observation


def observe(database: Database, prior: Distribution, model: Callable[[Any, Term], Any]) -> Observation:
    """The model in which a parameter comes from the prior, and every record as `model(parameter, record)` says."""
    line = here()
    if not isinstance(database, Database):
        raise Escape(f"observe must be given a database first, got {type(database).__name__}.", line)
    if not isinstance(prior, Distribution):
        raise Escape(f"observe must be given a prior such as pp.beta(1, 1) second, got {type(prior).__name__}.", line)
    count = len(prior.parameters) if prior.name in VECTORS else 1
    parameter, record = tuple(Variable("parameter") for _ in range(count)), Record(database)
    likelihood = model(parameter if prior.name in VECTORS else parameter[0], record)
    if not isinstance(likelihood, Likelihood):
        raise Escape("the model must compare a distribution with the record, as in pp.bernoulli(r) == x.", line)
    return Observation(database, prior, parameter, record, likelihood, line)


def infer(model: Observation) -> Distribution | Inferred:
    """The posterior of a model: its parameters where they have a formula, else draws when the program runs."""
    if not isinstance(model, Observation):
        raise Escape(f"infer must be given what pp.observe makes, got {type(model).__name__}.", here())
    model.database.mechanisms.observations.append(model)
    found = _conjugate(model)
    return Inferred(model) if found is None else found


def ran(distribution: Distribution) -> Term:
    """One draw from a distribution."""
    if not isinstance(distribution, Distribution) or distribution.name in VECTORS:
        raise Escape("ran must be given a distribution of one number, such as pp.beta(a, b).", here())
    return Sample(distribution)


def _conjugate(model: Observation) -> Distribution | None:
    """The posterior by its formula, or None where there is none."""
    database, prior, likelihood = model.database, model.prior, model.likelihood.distribution
    own, rest = likelihood.parameters[: len(model.parameter)], likelihood.parameters[len(model.parameter) :]
    is_plain = len(own) == len(model.parameter) and all(a is b for a, b in zip(own, model.parameter, strict=True))
    is_loose = any(node is leaf for node in walk(rest) for leaf in (*model.parameter, model.record))
    if not is_plain or is_loose or model.likelihood.target is not model.record:
        return None
    pair, kind, first = (prior.name, likelihood.name), database.records.kind, prior.parameters
    if pair == ("beta", "bernoulli") and kind == "booleans":
        false, true = database.counts()
        return _distribution("beta", [first[0] + true, first[1] + false], model)
    if pair == ("dirichlet", "categorical") and len(database.records.levels) == len(first):
        counted = [own + count for own, count in zip(first, database.counts(), strict=True)]
        return _distribution("dirichlet", counted, model)
    if pair == ("normal", "normal") and kind == "reals":
        mean, variance = first
        spread = 1 / (1 / variance + database.size / rest[0])
        return _distribution("normal", [spread * (mean / variance + database.sum() / rest[0]), spread], model)
    if pair == ("gamma", "poisson") and kind == "counts":
        return _distribution("gamma", [first[0] + database.sum(), first[1] + database.size], model)
    return None


# ---- how far apart -----------------------------------------------------------------------------------------------


def l1(left: Distribution, right: Distribution) -> Term:
    """The sum of how far the parameters are apart, one by one: a metric."""
    return _distance("l1", left, right)


def hellinger(left: Distribution, right: Distribution) -> Term:
    """H = √(1 − ∫ √(p q)), a metric between 0 and 1."""
    return _distance("hellinger", left, right)


def kl(left: Distribution, right: Distribution) -> Term:
    """KL = ∫ p log(p/q), which is not a metric: no program that holds it is certified."""
    return _distance("kl", left, right)


def _distance(metric: str, left: Any, right: Any) -> Term:
    is_both = isinstance(left, Distribution) and isinstance(right, Distribution)
    if not is_both or left.name != right.name or len(left.parameters) != len(right.parameters):
        raise Escape(f"{metric} must be given two distributions of one kind.", here())
    if metric == "hellinger" and left.name not in ("beta", "dirichlet", "normal"):
        raise Escape(f"hellinger must be of beta, dirichlet or normal distributions, got {left.name}.", here())
    return Distance(metric, left, right)


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Every posterior that a database of this size could lead to: public where the size is."""

    database: Database
    prior: Distribution


def posteriors(database: Database, prior: Distribution) -> Posteriors:
    """Every posterior that as many records could lead to: candidates for an exponential mechanism."""
    if prior.name not in ("beta", "dirichlet") or not database.records.levels:
        raise Escape("posteriors are of Booleans and a beta prior, or of Categories and a dirichlet prior.", here())
    if len(prior.parameters) != len(database.records.levels):
        raise Escape(f"the prior must have {len(database.records.levels)} parameters, one a level.", here())
    return Posteriors(database, prior)
