"""One draw from the posterior, kept away from 0 and 1, is a mechanism by itself: ε = 2 ln((1 − η)/η)."""

import noiseaware.program as pp


@pp.program(epsilon="2.7727")
def coin_sample(p, db: pp.Booleans(adjacency="replace")):
    posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
    return {"theta": p.sample(posterior, within=("1/5", "4/5")), "n": db.size}
