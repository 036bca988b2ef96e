"""Counts by OpenDP's Polars queries: reads {counts, loss} as JSON, of an ε, an ε and δ, or a ρ; one group a count.

With a δ the groups are private, and those under a threshold are left out; without, they are public.
"""

import json
import sys
import warnings
from importlib.metadata import version

import opendp.prelude as dp
import polars as pl

warnings.simplefilter("ignore")
dp.enable_features("contrib")
asked = json.load(sys.stdin)
groups = [group for group, count in enumerate(asked["counts"]) for _ in range(count)]
keys = pl.LazyFrame({"place": list(range(len(asked["counts"])))}, schema={"place": pl.Int64})
context = dp.Context.compositor(
    data=pl.LazyFrame({"place": groups}, schema={"place": pl.Int64}),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(**asked["loss"]),
    split_evenly_over=1,
    margins=[dp.polars.Margin(by=["place"], max_groups=len(asked["counts"]))],
)
query = context.query().group_by("place").agg(dp.len())
if "delta" not in asked["loss"]:
    query = query.with_keys(keys)
summary = query.summarize().to_dicts()
rows = query.release().collect().to_dicts()
json.dump({"rows": rows, "summary": summary, "version": version("opendp")}, sys.stdout)
