"""The rate of a count, with clamped records: one record moves the shape by the upper bound, and n is public."""

import noiseaware.program as pp


@pp.program(epsilon=1)
def rate_laplace(p, db: pp.Counts(bounds=(0, 20), adjacency="replace")):
    posterior = pp.infer(pp.observe(db, pp.gamma(2, 1), lambda rate, x: pp.poisson(rate) == x))
    shape = p.laplace(posterior.shape, epsilon=1, sensitivity=20)
    return pp.gamma(shape, posterior.rate)
