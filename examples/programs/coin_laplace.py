"""A coin, noise on the output: each parameter of the posterior gets Laplace noise. One record moves both."""

import noiseaware.program as pp


@pp.program(epsilon=1)
def coin_laplace(p, db: pp.Booleans(adjacency="replace")):
    posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
    a = p.laplace(posterior.a, epsilon="1/2")
    b = p.laplace(posterior.b, epsilon="1/2")
    return {"posterior": pp.beta(a, b), "n": db.size}
