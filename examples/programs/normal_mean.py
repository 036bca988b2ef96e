"""A normal mean of known variance: Laplace noise on the posterior mean, which one record moves by τ²·range/σ²."""

import noiseaware.program as pp

LOW, HIGH, VARIANCE = 0, 24, 9


@pp.program(epsilon=1)
def normal_mean(p, db: pp.Reals(bounds=(LOW, HIGH), adjacency="replace")):
    posterior = pp.infer(pp.observe(db, pp.normal(8, 16), lambda mean, x: pp.normal(mean, VARIANCE) == x))
    return p.laplace(posterior.mean, epsilon=1, sensitivity=posterior.variance * (HIGH - LOW) / VARIANCE)
