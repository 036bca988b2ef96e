"""Releases that other tools made, one a file: each function gives what `noiseaware.infer` and `infer_each` take.

What a tool publishes says little of how it came about. Each file knows one tool's noise, by law and not by name, and
what the tool does to a number after the noise: rounding, truncation, a clamp at zero, rows that are left out. A count
of a cell is by default one Poisson record, whose mean is the parameter; give `family` and `n` for another model. Files
are read with the standard library, and frames of any kind as they come.
"""

from noiseaware.interop.census import census_estimates as census_estimates
from noiseaware.interop.census import census_measurements as census_measurements
from noiseaware.interop.opendp import opendp as opendp
from noiseaware.interop.opendp_polars import opendp_polars as opendp_polars
from noiseaware.interop.pipelinedp import pipelinedp as pipelinedp
from noiseaware.interop.pydp import pydp as pydp
from noiseaware.interop.smartnoise import smartnoise as smartnoise
from noiseaware.interop.table import table as table
from noiseaware.interop.tumult import tumult as tumult
from noiseaware.interop.wikimedia import wikimedia as wikimedia
