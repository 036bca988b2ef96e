"""Counts by SmartNoise SQL: reads {counts, epsilon, clamp, censor} as JSON; one group for each count."""

import json
import sys
from importlib.metadata import version

import pandas as pd
from snsql import Privacy, from_connection

asked = json.load(sys.stdin)
frame = pd.DataFrame({"place": ["g"], "person": [1]})  # the counts are given as already summed: also those of nobody
table = {
    "row_privacy": True,
    "rows": sum(asked["counts"]),
    "censor_dims": asked["censor"],
    "clamp_counts": asked["clamp"],
    "place": {"type": "string"},
    "person": {"type": "int"},
}
privacy = Privacy(epsilon=asked["epsilon"], delta=asked["delta"])
reader = from_connection(frame, privacy=privacy, metadata={"": {"S": {"T": table}}})
pairs = [(f"g{group:04d}", count) for group, count in enumerate(asked["counts"])]
if asked["censor"]:
    summed = [("keycount", "place"), *((count, place) for place, count in pairs)]
else:
    summed = [("place", "count_star"), *pairs]
rows = reader.execute("SELECT place, COUNT(*) AS persons FROM S.T GROUP BY place", pre_aggregated=summed)
json.dump({"rows": rows, "tau": getattr(reader, "tau", None), "version": version("smartnoise-sql")}, sys.stdout)
