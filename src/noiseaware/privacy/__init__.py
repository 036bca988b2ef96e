"""Promises of privacy: how much, to whom, and what one implies of another."""

from noiseaware.privacy.agreement import Agreement as Agreement
from noiseaware.privacy.agreement import agreed as agreed
from noiseaware.privacy.promise import N_SHARE as N_SHARE
from noiseaware.privacy.promise import PROMISES as PROMISES
from noiseaware.privacy.promise import Approximate as Approximate
from noiseaware.privacy.promise import Guarantee as Guarantee
from noiseaware.privacy.promise import Neighbours as Neighbours
from noiseaware.privacy.promise import Number as Number
from noiseaware.privacy.promise import Promise as Promise
from noiseaware.privacy.promise import Pure as Pure
from noiseaware.privacy.promise import Relation as Relation
from noiseaware.privacy.promise import ZeroConcentrated as ZeroConcentrated
from noiseaware.privacy.promise import above as above
from noiseaware.privacy.promise import check_neighbours as check_neighbours
from noiseaware.privacy.promise import delta_of as delta_of
from noiseaware.privacy.promise import exact as exact
from noiseaware.privacy.promise import frozen as frozen
from noiseaware.privacy.promise import plain as plain
from noiseaware.privacy.promise import promised as promised
from noiseaware.privacy.promise import proper as proper
from noiseaware.privacy.promise import relation_of as relation_of
from noiseaware.privacy.promise import root_above as root_above
