"""Counts by PyDP: reads {counts, epsilon} as JSON and writes what the library gives for each count."""

import json
import sys
from importlib.metadata import version

from pydp.algorithms.laplacian import Count

asked = json.load(sys.stdin)
noisy = [Count(epsilon=asked["epsilon"], dtype="int").quick_result([1] * count) for count in asked["counts"]]
json.dump({"values": noisy, "version": version("python-dp")}, sys.stdout)
