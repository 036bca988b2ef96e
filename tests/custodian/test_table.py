"""The table: the same integers on every engine, and nothing of the records anywhere else.

The oracle is pure Python on exact fractions and knows no engine: it says what each cell stands for, and the sums
must be equal to the bit.
"""

import math
import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.custodian.tables import ENGINES, WITH_SCHEMA, held, number

from noiseaware import family
from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.missing import Cells
from noiseaware.custodian.table import MOST_RECORDS, Table

EXTREMES = [
    -1.3,
    2.1,
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    2.0,
    -1.5,
    0.1,
    math.pi,
]
NO_NUMBER = [None, math.nan]
INFINITE = [math.inf, -math.inf]
NUMBERS_AS_TEXT = [" 3 ", "1e3", "-1.25", "+2", ".5", "1.", "\t7\n", "inf", "-inf", "Infinity", "1e400", "nan", "NaN"]
WORDS = ["", " ", "abc", "3abc", "--3", "1 000", "1,5", "0x10", "null", "None", "é", "3\u00a0", '"', "'", "a\nb", "٣"]


def oracle(cells, bounds, outside, k) -> int:
    low, high = (Fraction(b) for b in bounds)
    total = 0
    for x in map(number, cells):
        if outside == "drop":
            kept = x if x is not None and low <= x <= high else Fraction(0)
        else:
            kept = low if x is None else min(max(x, low), high)
        total += math.floor(Fraction(kept) * Fraction(2) ** k)
    return total


def source(engine, cells, kind, folder):
    """The cells in a column 'x'."""
    return held(engine, {"x": cells}, {"x": kind}, folder)


def _cells(column, seed, n):
    rng = random.Random(seed)
    draws = {
        "float": lambda: rng.choice([rng.gauss(0, 2), rng.uniform(-3, 3), *EXTREMES, *NO_NUMBER, *INFINITE]),
        "float32": lambda: rng.choice([float(np.float32(rng.gauss(0, 2))), 0.5, None, math.nan, math.inf]),
        "whole": lambda: rng.choice([rng.randint(-3, 3), rng.randint(-(2**63), 2**63 - 1), 2**53 + 1, None]),
        "flag": lambda: rng.choice([True, False, None]),
        "text": lambda: rng.choice([repr(rng.gauss(0, 2)), *NUMBERS_AS_TEXT, *WORDS, "true", "FALSE", " True ", None]),
        "decimal": lambda: rng.choice(
            [Decimal(f"{rng.randint(-3, 3)}.{rng.getrandbits(90)}"[:30]), Decimal("0.1"), None]
        ),
    }
    return [draws[column]() for _ in range(n)]


KINDS = {
    "float": pa.float64(),
    "float32": pa.float32(),
    "whole": pa.int64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "decimal": pa.decimal128(38, 30),
}


@pytest.mark.parametrize("column", KINDS)
def test_sums_are_the_same_bits_on_every_engine(column, tmp_path, seed):
    n = 100_000
    cells = _cells(column, seed, n)
    bounds, k = (-1.3, 2.1), 29
    expected = {outside: oracle(cells, bounds, outside, k) for outside in ("clamp", "drop")}
    for engine in ENGINES:
        table = Table(source(engine, cells, KINDS[column], tmp_path))
        for outside, total in expected.items():
            model = family.Normal("x", bounds=bounds, variance=1.0, outside=outside)
            assert table.sums(model.query, k) == ([total], n), (engine, outside)


@pytest.mark.parametrize("column", KINDS)
def test_counts_below_candidates_are_the_same_on_every_engine(column, tmp_path, seed):
    cells = _cells(column, seed, 1000)
    candidates = [-4.0, -1.5, 0.0, 2.0**-16, 0.5, 2.0, 3.0, 2.0**32]
    placed = [-math.inf if x is None else x for x in map(number, cells)]
    counts = [sum(x <= c for x in placed) for c in candidates]
    for engine in ENGINES:
        assert Table(source(engine, cells, KINDS[column], tmp_path)).counts("x", candidates) == (counts, 1000), engine


@pytest.mark.parametrize("levels", [["b", "é", "3", "O'Neil"], [7, 3, -1]])
def test_counts_of_levels_are_the_same_on_every_engine(levels, tmp_path, seed):
    rng = random.Random(seed)
    pool = [*map(str, levels), "other", "", " b", "3.0", "3.5", "nan", None]
    cells = [rng.choice(pool) for _ in range(100_000)]
    if isinstance(levels[0], str):
        values = cells
    else:
        values = [x if x is None or math.isfinite(x) else None for x in map(number, cells)]
    counts = [sum(value == level for value in values) for level in levels]
    counts[0] = len(cells) - sum(counts[1:])
    for engine in ENGINES:
        table = Table(source(engine, cells, pa.string(), tmp_path))
        assert table.sums(family.Categorical("x", levels=levels).query, 0) == (counts, len(cells)), engine


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_can_be_levels_where_levels_are_numbers(engine, tmp_path):
    cells = [3, 7, 7, None, 8, 2**62]
    table = Table(source(engine, cells, pa.int64(), tmp_path))
    assert table.sums(family.Categorical("x", levels=[3, 7]).query, 0) == ([4, 2], 6)
    assert table.sums(family.Categorical("x", levels=["3", "7"]).query, 0) == ([4, 2], 6)


GUESSED = [
    [1, 2, None],
    [1.0, 2.0, None],
    [1.0, 2.5, math.inf],
    [None, None, None],
    [True, False, None],
    [0.1, 1e20, -0.0],
]


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine not in ("csv", "json", "array")])
@pytest.mark.parametrize("cells", GUESSED, ids=str)
def test_text_levels_are_found_in_a_column_that_was_guessed_to_be_of_numbers(cells, engine, tmp_path):
    """Where one record held a word, the column were of text; that none does must not make another kind of answer."""
    kind = pa.bool_() if True in cells[:1] and type(cells[0]) is bool else pa.float64()
    kind = pa.int64() if type(cells[0]) is int else kind
    table = Table(source(engine, cells, kind, tmp_path))
    levels = ["other", "1", "2.0", "2.5", "inf", "0.1", "100000000000000000000", "True", "false", "0", "nan", "x"]
    numbers = {"1": 1.0, "2.0": 2.0, "2.5": 2.5, "0.1": 0.1, "0": 0.0}
    if kind == pa.bool_():
        numbers = {"True": True, "false": False}
    counts = [sum(cell == numbers[level] for cell in cells) if level in numbers else 0 for level in levels]
    counts[0] = len(cells) - sum(counts)
    assert table.sums(family.Categorical("x", levels=levels).query, 0) == (counts, len(cells))
    groups = Groups(("x",), (tuple(levels),))
    found = (
        [n for _, n in table.group_sums(family.Bernoulli("id").query, 0, groups)] if engine != "nullable" else counts
    )
    assert found[1:] == counts[1:]


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.parametrize("word", ["4", "abc"])
def test_a_lazy_frame_whose_types_are_guessed_is_refused_by_its_plan(kind, word, tmp_path):
    """Whether a cell far down would be its engine's error or not, the answer is the same; a path is read as text."""
    path = tmp_path / f"t.{kind}"
    rows = ["1"] * 30_000 + [word]
    path.write_text("x\n" + "\n".join(rows) if kind == "csv" else "\n".join(f'{{"x": "{row}"}}' for row in rows))
    own = duckdb.connect()
    lazy = {"csv": pl.scan_csv, "ndjson": pl.scan_ndjson}[kind](path)
    read = {"csv": own.read_csv, "ndjson": own.read_json}[kind](str(path))
    own.sql(f"CREATE VIEW v AS FROM '{path}'")
    for frame in (lazy, lazy.filter(pl.col("x").is_not_null()), read, read.filter("x IS NOT NULL"), own.view("v")):
        with pytest.raises(
            ValueError, match=r"must not be a lazy frame that reads a CSV or JSON file, .* give the path"
        ):
            Table(frame)
    assert Table(path).sums(family.Poisson("x", bounds=(0, 9)).query, 0) == ([30_000 + 4 * (word == "4")], 30_001)


def test_lazy_frames_whose_types_are_given_are_read(tmp_path):
    frame = pl.DataFrame({"READ_CSV": [1, 2], "Csv SCAN": [3, 4]})
    frame.write_parquet(tmp_path / "t.parquet")
    relation = duckdb.connect().sql(f"FROM '{tmp_path / 't.parquet'}'")
    for table in (frame.lazy(), pl.scan_parquet(tmp_path / "t.parquet"), relation, duckdb.from_arrow(frame.to_arrow())):
        assert Table(table).sums(family.Poisson("READ_CSV", bounds=(0, 9)).query, 0) == ([3], 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_cell_is_no_number_and_no_level(engine, tmp_path):
    """So that no engine needs memory for it; the limit counts bytes of UTF-8."""
    cells = [" " * (LONGEST_CELL - 1) + "7", " " * LONGEST_CELL + "7", "é" * (LONGEST_CELL // 2), "é" * LONGEST_CELL]
    table = Table(source(engine, cells, pa.string(), tmp_path))
    assert table.sums(family.Poisson("x", bounds=(1, 9)).query, 0) == ([10], 4)
    assert table.sums(family.Categorical("x", levels=["other", cells[2]]).query, 0) == ([3, 1], 4)


def test_a_pandas_column_may_mix_anything(seed):
    rng = random.Random(seed)
    pool = [
        1.5,
        "2",
        None,
        math.nan,
        True,
        "x",
        3,
        10**40,
        Decimal("0.7"),
        pd.NA,
        pd.Timestamp("2020"),
        [1],
        b"3",
        object,
    ]
    cells = [rng.choice(pool) for _ in range(1000)]
    texts = {"2": 2, "x": None, b"3": 3}
    plain = [
        texts[c] if isinstance(c, str | bytes) else c if isinstance(c, int | float | Decimal) else None for c in cells
    ]
    expected = oracle(plain, (-1, 5), "clamp", 20)
    for series in (pd.Series(cells, dtype=object), pd.Series(plain, dtype=object), pd.Series(plain).astype("category")):
        model = family.Normal("x", bounds=(-1, 5), variance=1.0)
        assert Table(pd.DataFrame({"x": series})).sums(model.query, 20) == ([expected], 1000)


def test_categories_and_enums_are_text():
    cells = ["b", "a", None, "nan", "b"]
    frames = [
        pd.DataFrame({"x": pd.Categorical(cells)}),
        pl.DataFrame({"x": pl.Series(cells, dtype=pl.Categorical)}),
        pl.DataFrame({"x": pl.Series(cells, dtype=pl.Enum(["a", "b", "nan"]))}),
        pa.table({"x": pa.array(cells).dictionary_encode()}),
        duckdb.connect().sql("SELECT unnest(['b', 'a', NULL, 'nan', 'b'])::ENUM('a', 'b', 'nan') AS x"),
        duckdb.connect().sql("""SELECT unnest(['"b"', '"a"', 'null', '"nan"', '"b"'])::JSON AS x"""),
    ]
    for frame in frames:
        assert Table(frame).sums(family.Categorical("x", levels=["a", "b", "nan"]).query, 0) == ([2, 2, 1], 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_without_any_value_is_a_column(engine, tmp_path):
    cells = [None] * 5
    kind = pa.string() if engine in ("pandas", "nullable") else pa.null()
    table = Table(source(engine, cells, kind, tmp_path))
    assert table.sums(family.Normal("x", bounds=(-1, 1), variance=1.0).query, 3) == ([-40], 5)
    assert table.sums(family.Categorical("x", levels=["a", "b"]).query, 0) == ([5, 0], 5)


def test_wide_integers_of_duckdb_round_as_text_does():
    value = 2**100 + 2**47 + 1  # rounding twice would lose the last bit's say
    relation = duckdb.connect().sql(f"SELECT {value}::HUGEINT AS x")
    bounds = (0, 2**101)
    model = family.Normal("x", bounds=bounds, variance=1.0)
    assert Table(relation).sums(model.query, -48) == ([oracle([value], bounds, "clamp", -48)], 1)


def test_a_csv_file_is_read_as_it_comes(tmp_path):
    """Ragged rows, stray quotes, other delimiters, a byte-order mark, bytes that are no text: all are records."""
    model = family.Poisson("x", bounds=(0, 10))
    files = {
        b"y,x\na,1\nb\nc,3,4,5\n,\n": ([4], 4),
        b"\xef\xbb\xbfx;y\r\n1;a\r\n2,5;b\r\n": ([1], 2),
        b"x\ty\n1\ta\n2\tb": ([3], 2),
        b'"x","a\nb"\n"1","c\nd"\n2,"e"\n': ([3], 2),
        b"y,x\n\xff\xfe,1\na,\xff\n\x00,3\n": ([4], 3),
        b"x\n1\n2\n": ([3], 2),
        b'y,x\na"b"c,1\n"q"r,2\n': ([3], 2),
    }
    for content, expected in files.items():
        (tmp_path / "t.csv").write_bytes(content)
        assert Table(tmp_path / "t.csv").sums(model.query, 0) == expected, content


def test_broken_json_lines_are_records_too(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"x/~y": 1}\n{"x/~y": NaN}\n{broken\n{"x/~y": "\xff"}\n5\n{"x/~y": [1]}\n{}\n{"x/~y": "2"}\n')
    assert Table(path).sums(family.Poisson("x/~y", bounds=(0, 10)).query, 0) == ([3], 8)


def test_names_with_quotes_and_patterns_are_names(tmp_path):
    frame = pd.DataFrame({'a"b': [1, 2], "c'd": ["u", "v"]})
    (tmp_path / "other.csv").write_text("z\n9\n")
    for name in ("[o]*.csv", "it's.csv", "a?b.parquet"):
        path = tmp_path / name
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
        assert Table(path).sums(family.Poisson('a"b', bounds=(0, 9)).query, 0) == ([3], 2)
        assert Table(path).sums(family.Categorical("c'd", levels=["v", "u"]).query, 0) == ([1, 1], 2)


@pytest.mark.parametrize("cell", [math.nan, math.inf, -math.inf, None])
@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_statistics_of_a_parquet_file_do_not_hide_a_record(cell, outside, tmp_path):
    """They leave NaN out, and DuckDB trusts them: here all else is inside the bounds, or all above, or all below."""
    for cells in ([1.0, cell, 2.0], [20.0, cell, 30.0], [-20.0, cell, -30.0], [cell, cell], [0.0, cell], [9.0, cell]):
        pq.write_table(pa.table({"x": pa.array(cells, pa.float64())}), tmp_path / "t.parquet")
        model = family.Poisson("x", bounds=(0, 9), outside=outside)
        assert Table(tmp_path / "t.parquet").sums(model.query, 0)[0] == [oracle(cells, (0, 9), outside, 0)]
        placed = [-math.inf if x is None else x for x in map(number, cells)]
        counts = [sum(x <= c for x in placed) for c in (-25.0, 0.0, 9.0, 25.0, 100.0)]
        assert Table(tmp_path / "t.parquet").counts("x", [-25.0, 0.0, 9.0, 25.0, 100.0])[0] == counts


def test_a_file_that_changed_is_read_again(tmp_path):
    model = family.Poisson("x", bounds=(0, 9))
    for x in range(9):
        pq.write_table(pa.table({"x": [float(x)]}), tmp_path / "t.parquet")
        assert Table(tmp_path / "t.parquet").sums(model.query, 0) == ([x], 1)


def test_threads_may_scan_at_once(seed):
    cells = [random.Random(seed).choice(["1", "2", "x", None]) for _ in range(1000)]
    table, model = Table(pd.DataFrame({"x": cells})), family.Poisson("x", bounds=(0, 9))
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(lambda _: table.sums(model.query, 0), range(16)))
    assert sums == [([oracle(cells, (0, 9), "clamp", 0)], 1000)] * 16


# ---- what is refused, and what is never said -------------------------------------------------------------------


@pytest.mark.parametrize("engine", WITH_SCHEMA)
def test_a_missing_column_is_named(engine, tmp_path):
    table = Table(source(engine, [1.0, 2.0], pa.float64(), tmp_path))
    with pytest.raises(ValueError, match=r"must have one column 'z', got 0\.$"):
        table.sums(family.Poisson("z", bounds=(0, 9)).query, 0)


@pytest.mark.parametrize("engine", ["parquet", "pandas", "arrow-backed", "polars", "lazy", "arrow", "duckdb"])
@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_types_that_are_neither_numbers_nor_text_are_refused(engine, kind, tmp_path):
    if engine == "pandas" and not pa.types.is_timestamp(kind):
        pytest.skip("pandas holds these as objects, which are text")
    table = Table(source(engine, [None, None], kind, tmp_path))
    for model in (family.Poisson("x", bounds=(0, 9)), family.Categorical("x", levels=["a", "b"])):
        with pytest.raises(ValueError, match="column 'x' must hold numbers or text, got type"):
            table.sums(model.query, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_table_is_refused(engine, tmp_path):
    table = Table(source(engine, [], pa.float64(), tmp_path))
    with pytest.raises(ValueError, match=f"must hold 1 to {MOST_RECORDS} records, got 0"):
        table.sums(family.Poisson("x", bounds=(0, 9)).query, 0)


@pytest.mark.parametrize("bad", [5, None, {"x": [1]}, [1, 2], np.zeros(3), pd.Series([1])])
def test_what_is_no_table_is_refused(bad):
    with pytest.raises(ValueError, match=r"table must be a path of a CSV, .* or a PySpark frame, got"):
        Table(bad)


def test_files_must_exist_and_end_well(tmp_path):
    with pytest.raises(ValueError, match="must exist"):
        Table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"must end in one of \.csv, .*, got t\.xlsx"):
        Table("t.xlsx")


SECRET = "s3cr3t-9071"


@pytest.mark.parametrize("engine", ENGINES)
def test_no_record_can_make_an_error(engine, tmp_path, capfd, caplog):
    """Neighbours with NULL, NaN, ±inf, huge values or text give the same shape, and no word about them."""
    texts = [
        None,
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-1e400",
        SECRET,
        "9" * 400,
        "",
        "2020-01-01",
        "[1]",
        "\x00",
        "a\x00b",
    ]
    for cell in texts:
        table = Table(source(engine, ["1", cell, "2"], pa.string(), tmp_path))
        (total,), n = table.sums(family.Poisson("x", bounds=(0, 9)).query, 0)
        assert (3 <= total <= 12, n) == (True, 3)
    floats = [None, math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -0.0]
    for cell in floats:
        table = Table(source(engine, [1.0, cell, 2.0], pa.float64(), tmp_path))
        (total,), n = table.sums(family.Poisson("x", bounds=(0, 9)).query, 0)
        assert (3 <= total <= 12, n) == (True, 3)
    captured = capfd.readouterr()
    assert captured.out + captured.err + caplog.text == ""


@pytest.mark.parametrize("form", [pl.DataFrame, pl.LazyFrame])
def test_whole_numbers_of_128_bits_are_numbers(form):
    frame = form({"x": pl.Series("x", [3, 2**100, None, -(2**100)], dtype=pl.Int128)})
    assert Table(frame).sums(family.Poisson("x", bounds=(1, 9)).query, 0) == ([3 + 9 + 1 + 1], 4)
    assert Table(frame).sums(family.Categorical("x", levels=[0, 3]).query, 0) == ([3, 1], 4)


NAN = float("nan")


@pytest.mark.parametrize("by", ["path", "relation"])
@pytest.mark.parametrize("last", [1.0, 2.0, NAN], ids=["first level", "another", "missing"])
def test_no_record_of_a_parquet_file_decides_how_nan_is_read(by, last, tmp_path):
    """Its statistics know no NaN, and DuckDB answers from them: 99 missing cells were 99 of the one level there is."""
    path = tmp_path / "t.parquet"
    columns = {"x": [NAN] * 99 + [last], "u": [NAN] * 99 + [1.0]}
    pq.write_table(pa.table(columns), path)
    found = Table(path if by == "path" else duckdb.read_parquet(str(path)))
    levels, flag, leave_out = family.Categorical("x", levels=[1, 2, 3]), family.Bernoulli("x"), Cells("leave_out")
    counts = [int(last == level) for level in (1, 2, 3)]
    assert found.sums(levels.query, 0, least=0, cells=leave_out) == (counts, sum(counts))
    assert found.sums(levels.query, 0)[0] == [counts[0] + 100 - sum(counts), *counts[1:]]
    assert found.sums(flag.query, 0, cells=Cells(None, ("1",))) == ([counts[0]], 100)
    assert found.sums(flag.query, 0, least=0, cells=Cells("leave_out", ("1",))) == ([counts[0]], sum(counts))
    assert found.sums(flag.query, 0, unit=Unit("u", 50))[1] == 1
