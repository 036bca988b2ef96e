"""Queries, one a file: what a table is asked, whatever is believed of its records."""

from noiseaware.query._query import LINE as LINE
from noiseaware.query._query import AbstractQuery as AbstractQuery
from noiseaware.query._query import AbstractQuestion as AbstractQuestion
from noiseaware.query._query import Bounds as Bounds
from noiseaware.query._query import Level as Level
from noiseaware.query._query import Norm as Norm
from noiseaware.query._query import Outside as Outside
from noiseaware.query._query import Whole as Whole
from noiseaware.query.counts import MOST_LEVELS as MOST_LEVELS
from noiseaware.query.counts import Counts as Counts
from noiseaware.query.moments import MOST_COLUMNS as MOST_COLUMNS
from noiseaware.query.moments import AbstractMoments as AbstractMoments
from noiseaware.query.moments import Moments as Moments
from noiseaware.query.moments import PowerSums as PowerSums
from noiseaware.query.sum import AbstractColumn as AbstractColumn
from noiseaware.query.sum import Sum as Sum
