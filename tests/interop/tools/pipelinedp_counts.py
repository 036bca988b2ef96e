"""Counts by PipelineDP: reads {counts, epsilon} as JSON; one public partition for each count."""

import json
import sys
from importlib.metadata import version

import pipeline_dp

asked = json.load(sys.stdin)
people = [(f"{group}.{i}", group, 1) for group, count in enumerate(asked["counts"]) for i in range(count)]
accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=asked["epsilon"], total_delta=1e-9)
engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
params = pipeline_dp.AggregateParams(
    metrics=[pipeline_dp.Metrics.COUNT],
    noise_kind=pipeline_dp.NoiseKind.LAPLACE,
    max_partitions_contributed=1,
    max_contributions_per_partition=1,
    output_noise_stddev=True,
)
extractors = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
result = engine.aggregate(people, params, extractors, public_partitions=list(range(len(asked["counts"]))))
accountant.compute_budgets()
rows = sorted((group, metrics._asdict()) for group, metrics in result)
json.dump({"rows": rows, "version": version("pipeline-dp")}, sys.stdout)
