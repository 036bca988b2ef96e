"""Any model at all, once the records are public through a mechanism: the No-U-Turn sampler runs on noisy records."""

import noiseaware.program as pp


@pp.program(epsilon="1/2", delta="1e-6")
def any_model(p, db: pp.Reals(bounds=(0, 1), adjacency="replace")):
    noisy = db.map(lambda x: p.gaussian(x, epsilon="1/2", delta="1e-6"))
    return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda r, x: pp.normal(pp.exp(r), 113) == x))
