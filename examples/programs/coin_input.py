"""A coin, noise on the input: each answer is told with the exponential mechanism, and inference is post-processing."""

import noiseaware.program as pp


@pp.program(epsilon=1)
def coin_input(p, db: pp.Booleans(adjacency="replace")):
    told = db.map(lambda x: p.exponential([False, True], lambda r: r == x, epsilon=1))
    return pp.infer(pp.observe(told, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
