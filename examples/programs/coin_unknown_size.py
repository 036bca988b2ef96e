"""A coin whose number of tosses is private too: a record that comes or goes moves one parameter, so ε is paid once."""

import noiseaware.program as pp


@pp.program(epsilon=1)
def coin_unknown_size(p, db: pp.Booleans(adjacency="add_remove")):
    posterior = pp.infer(pp.observe(db, pp.beta(1, 1), lambda r, x: pp.bernoulli(r) == x))
    a, b = p.laplace([posterior.a, posterior.b], epsilon=1, sensitivity=1)
    return pp.beta(a, b)
