"""A coin, noise on the output: a posterior is chosen by Hellinger distance. Private, and of little use."""

import noiseaware.program as pp


@pp.program(epsilon="0.4633")
def coin_hellinger(p, db: pp.Booleans(adjacency="replace")):
    prior = pp.beta(1, 1)
    posterior = pp.infer(pp.observe(db, prior, lambda r, x: pp.bernoulli(r) == x))
    return p.exponential(pp.posteriors(db, prior), lambda r: -pp.hellinger(posterior, r), epsilon=1)
