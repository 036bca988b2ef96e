"""A die of any number of faces: all counts get noise, and one record moves only two of them."""

import noiseaware.program as pp

FACES = ["one", "two", "three", "four", "five", "six"]


@pp.program(epsilon=2)
def dirichlet_laplace(p, db: pp.Categories(FACES, adjacency="replace")):
    posterior = pp.infer(pp.observe(db, pp.dirichlet([1] * 6), lambda r, x: pp.categorical(r) == x))
    noisy = p.laplace(posterior.concentration, epsilon=1)
    return {"posterior": pp.dirichlet(*noisy), "n": db.size}
