"""A coin whose number of tosses is public: one draw of Laplace noise is enough, and b follows from a."""

import noiseaware.program as pp


@pp.program(epsilon=1)
def coin_public_size(p, db: pp.Booleans(adjacency="replace")):
    posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
    a = p.laplace(posterior.a, epsilon=1, sensitivity=1)
    return pp.beta(a, db.size + 2 - a)
