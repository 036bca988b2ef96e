"""The cost of a release over the same sums as hand-written SQL: 10 million Parquet rows, side by side in one run.

Both clamp, floor and sum as integers in DuckDB; the release also checks, charges a ledger and draws its noise.
Bars: at most 1.3 times the time of the SQL, and under 2 GB of memory at the peak of the whole process. With
`--rows 10_000_000 100_000_000`, for some minutes and 3 GB of disk: the second costs at most 1.3 times as much a row.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import table

import noiseaware as na

LARGEST_RATIO = 1.3
LARGEST_GROWTH = 1.3
LARGEST_MEMORY = 2.0  # GB
LOW, HIGH = 0.0, 48.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    ratios, costs = [], []
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            compared = measure(Path(folder), rows, options.repeats)
        for name, (ours, theirs) in zip(("sum", "counts of levels"), compared, strict=True):
            table.add(
                f"release of a {name}, {rows:,} Parquet rows", ours / theirs, "{} ×", at_most=LARGEST_RATIO,
                ours=f"{ours:.3f} s", against=f"hand-written SQL, {theirs:.3f} s",
            )  # fmt: skip
        ratios += [ours / theirs for ours, theirs in compared]
        costs.append([[seconds / rows for seconds in pair] for pair in compared])
    growth, by_hand = (
        max(now[i] / then[i] for cost in costs for now, then in zip(cost, costs[0], strict=True)) for i in (0, 1)
    )
    if len(costs) > 1:
        told = f"cost of a row, at most {growth:.2f} times that of {options.rows[0]:,} rows (bar {LARGEST_GROWTH})"
        print(f"{told}; of the hand-written SQL {by_hand:.2f} times")
        work = f"release: cost of a row of {options.rows[-1]:,} against {options.rows[0]:,}"
        table.add(work, growth, "{} ×", at_most=LARGEST_GROWTH, against=f"hand-written SQL, {by_hand:.2f} ×")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    print(f"peak memory of the process {memory:.2f} GB (bar {LARGEST_MEMORY} GB)")
    table.add(f"release: peak memory, {options.rows[-1]:,} rows", memory, "{} GB", at_most=LARGEST_MEMORY)
    return 0 if max(ratios) <= LARGEST_RATIO and growth <= LARGEST_GROWTH and memory < LARGEST_MEMORY else 1


def measure(folder: Path, rows: int, repeats: int) -> list[tuple[float, float]]:
    """Seconds of a release and of the same by hand: of a sum, and of counts of levels."""
    path = folder / "clinic.parquet"
    write(path, rows)
    ledger = na.Ledger.create(folder / "clinic.ledger", epsilon=1000)
    family = na.family.Exponential("wait_hours", bounds=(LOW, HIGH))
    levels = ["home", "ward", "clinic", "street", "other"]
    categorical = na.family.Categorical("place", levels=levels)
    print(f"{rows:,} rows, {path.stat().st_size / 1e9:.2f} GB of Parquet")
    summed = compare("sum", lambda: na.release(path, family, epsilon=1, ledger=ledger), sum_query(path), repeats)
    by_level, counting = lambda: na.release(path, categorical, epsilon=1, ledger=ledger), count_query(path, levels)
    return [summed, compare("counts", by_level, counting, repeats)]


def write(path: Path, rows: int) -> None:
    """A clinic's table: waiting times with some NULL and NaN, a place, and columns that nobody asks for."""
    places = "['home', 'ward', 'clinic', 'street', 'other', 'unknown']"
    wait = "CASE WHEN i % 97 = 0 THEN NULL WHEN i % 101 = 0 THEN 'nan'::DOUBLE ELSE -4 * ln(1 - random()) END"
    columns = f"i AS id, {wait} AS wait_hours, {places}[1 + i % 6] AS place, random() AS weight"
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false; SET memory_limit = '500MB'").fetchall()
        connection.execute(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}'").fetchall()


def sum_query(path: Path) -> str:
    exponent = 25  # the grid that `release` chooses for these bounds
    number = f"CASE WHEN wait_hours IS NULL OR isnan(wait_hours) THEN {LOW}::DOUBLE ELSE wait_hours END"
    step = f"CAST(floor(greatest(least({number}, {HIGH}::DOUBLE), {LOW}::DOUBLE) * {2.0**exponent}::DOUBLE) AS BIGINT)"
    return f"SELECT sum({step}), count(*) FROM read_parquet('{path}')"


def count_query(path: Path, levels: list[str]) -> str:
    rest = ", ".join(f"'{level}'" for level in levels[1:])
    first = f"sum(CAST(place IS NULL OR place NOT IN ({rest}) AS BIGINT))"
    counts = [f"sum(CAST(COALESCE(place = '{level}', false) AS BIGINT))" for level in levels[1:]]
    return f"SELECT {', '.join([first, *counts])}, count(*) FROM read_parquet('{path}')"


def compare(name: str, release: Callable[[], na.Release], query: str, repeats: int) -> tuple[float, float]:
    """Median times, measured in turns."""
    with duckdb.connect() as connection:

        def by_hand() -> list:
            return connection.sql(query).fetchall()

        release(), by_hand()  # imports, and the file into the page cache
        times = [(seconds(release), seconds(by_hand)) for _ in range(repeats)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = f"ratio {ours / theirs:.2f} (bar {LARGEST_RATIO})"
    print(f"{name:7} release {ours:.3f} s, hand-written SQL {theirs:.3f} s, {ratio}")
    return ours, theirs


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
