"""How many records of each column of a regression the clamped normal model takes for moved to a bound.

With u the column in units of half its bounds, c = clip(u), u ~ Normal(µ, σ²), the release tells two averages:

    Σc/n ≈ E c(µ, σ)        Σc²/n ≈ E c²(µ, σ)        each within its sampling error and its noise

and with the prior of (µ, σ²) that gives the share P(|u| > 1) on a grid. A column that only takes its two bounds has
Σc² = n: the model then takes nearly all of its records for moved ones of a normal of huge spread, and a slope is per
unit of that spread.
"""

from typing import NamedTuple

import numpy as np

from noiseaware.artifact import Release
from noiseaware.family import AbstractFamily, AbstractGeneralizedLinear, LinearRegression
from noiseaware.family.recorded import clipped_powers, normal_cdf
from noiseaware.mechanism import Identity
from noiseaware.prior import AbstractPrior, NormalInverseWishart
from noiseaware.sampler.exact import noise_of
from noiseaware.words_of_numbers import percent

MOST = 0.2
"""The largest share of a covariate's records that the model may take for moved."""
NORMAL = "The covariates are taken as normal."
