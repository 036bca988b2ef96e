"""A normal mean, noise on the input: every record in an interval of length 1 gets normal noise."""

import noiseaware.program as pp


@pp.program(epsilon="1/2", delta="1e-6")
def normal_input(p, db: pp.Reals(bounds=(0, 1), adjacency="replace")):
    noisy = db.map(lambda x: p.gaussian(x, epsilon="1/2", delta="1e-6"))
    return pp.infer(pp.observe(noisy, pp.normal(0, 1), lambda mean, x: pp.normal(mean, "1/4") == x))
