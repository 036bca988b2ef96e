"""A line: Laplace noise on all its moments, then the noise-aware posterior of the 2019 paper, which costs nothing."""

import noiseaware as na
import noiseaware.program as pp

BOUNDS = {"age": (20, 80), "pressure": (80, 200)}


@pp.program(epsilon=1)
def line_aware(p, db: pp.Rows(x=["age"], y="pressure", bounds=BOUNDS, adjacency="replace")):
    released = p.laplace(db.moments(), epsilon=1, sensitivity="16/3")
    prior = na.prior.NormalInverseGamma([0, 120], [100, 0.1], 3, 200)
    return {"posterior": pp.apply(lambda release: na.infer(release, prior), released), "n": db.size}
