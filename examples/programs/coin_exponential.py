"""A coin, noise on the output: a posterior is chosen by its parameters. One record moves the score by 2."""

import noiseaware.program as pp


@pp.program(epsilon=2)
def coin_exponential(p, db: pp.Booleans(adjacency="replace")):
    prior = pp.beta(1, 1)
    posterior = pp.infer(pp.observe(db, prior, lambda r, x: pp.bernoulli(r) == x))
    return p.exponential(pp.posteriors(db, prior), lambda r: -pp.l1(posterior, r), epsilon=1)
