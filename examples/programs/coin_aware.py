"""What we recommend: noise on the statistic, then noise-aware inference, which is post-processing and costs nothing."""

import noiseaware as na
import noiseaware.program as pp


@pp.program(epsilon=1)
def coin_aware(p, db: pp.Booleans(adjacency="replace")):
    released = p.laplace(db.count(), epsilon=1, sensitivity=1)
    return {"posterior": pp.apply(lambda release: na.infer(release, na.prior.Beta(1, 1)), released), "n": db.size}
