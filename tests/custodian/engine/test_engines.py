"""DuckDB, PostgreSQL and Spark agree to the last integer, on rows that are as bad as rows can be.

The sums of a Parquet file, which tests/custodian/test_table.py holds against exact fractions, are what all must be.
"""

import math
import random
import sys
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noiseaware import family
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.missing import Cells, cells_of
from noiseaware.custodian.table import Table

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL tests need noiseaware[postgres]")

LARGEST = 1.7976931348623157e308
FLOATS = [None, math.nan, math.inf, -math.inf, LARGEST, -LARGEST, 1e308, 5e-324, -5e-324, 2.2250738585072014e-308]
FLOATS += [-1e-310, 0.0, -0.0, 0.1 + 0.2, 2.0**53 + 2, 1e-30, -1e-30, 2.0**-31, -(2.0**-31), 0.5, 1.0, 48.0, -1.3]
SINGLES = [None, math.nan, math.inf, -math.inf, 3.4028234663852886e38, 1.401298464324817e-45, 0.5, -0.0]
WHOLES = [None, 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**62 + 2**9 + 1, 0, 1, -1, 47, 49]
WORDS = [None, "", " ", "abc", "3abc", "1e400", "-1e400", "1e-400", "nan", "NaN", "inf", "-Infinity", "true", " FALSE "]
WORDS += ["0x10", "1_000", "1,5", "٣", "é", "3\u00a0", "\t7\n", "'; drop table t; --", "$1.00", "1.5d", "9" * 400]
WORDS += ["\\N", "\u2212 1", "1e308", "-1.7976931348623157e308", "5e-324", "9223372036854775807", "0.30000000000000004"]
LEVELS = [None, "home", "ward", "é", "O'Neil", " home", "HOME", "", "1", "\\x41"]
DECIMALS = [None, Decimal("0.1"), Decimal("-0.0000000001"), Decimal(10) ** 27, -(Decimal(10) ** 27), Decimal("47.5")]
KINDS = {
    "f": (pa.float64(), "float8"),
    "g": (pa.float64(), "float8"),
    "r": (pa.float32(), "real"),
    "i": (pa.int64(), "bigint"),
    "s": (pa.int16(), "smallint"),
    "b": (pa.bool_(), "boolean"),
    "t": (pa.string(), "text"),
    "w": (pa.string(), "varchar(20)"),
    "d": (pa.decimal128(38, 10), "numeric"),
}


def rows(seed: int, n: int) -> pa.Table:
    rng = random.Random(seed)
    draws = {
        "f": lambda: rng.choice(FLOATS) if rng.random() < 0.5 else rng.gauss(0, 10.0 ** rng.randint(-3, 3)),
        "g": lambda: rng.choice(FLOATS) if rng.random() < 0.2 else rng.expovariate(0.1),
        "r": lambda: rng.choice(SINGLES) if rng.random() < 0.2 else float(np.float32(rng.gauss(0, 9))),
        "i": lambda: rng.choice(WHOLES) if rng.random() < 0.5 else rng.randint(-(2**63), 2**63 - 1),
        "s": lambda: rng.choice([None, -(2**15), 2**15 - 1, *range(-9, 9)]),
        "b": lambda: rng.choice([None, True, False]),
        "t": lambda: rng.choice(WORDS) if rng.random() < 0.5 else repr(rng.gauss(0, 10.0 ** rng.randint(-9, 9))),
        "w": lambda: rng.choice(LEVELS),
        "d": lambda: rng.choice([*DECIMALS, Decimal(f"{rng.randint(-99, 99)}.{rng.randrange(10**10):010d}")]),
    }
    return pa.table({name: pa.array([draw() for _ in range(n)], KINDS[name][0]) for name, draw in draws.items()})


def load(url: str, name: str, arrow: pa.Table) -> None:
    """The rows as a table of PostgreSQL."""
    columns = ", ".join(f"{column} {KINDS[column][1]}" for column in arrow.column_names)
    with psycopg.connect(url) as own:
        own.execute(f"DROP TABLE IF EXISTS {name}")
        own.execute(f"CREATE TABLE {name} ({columns})")
        with own.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for batch in arrow.to_batches(10_000):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)


@pytest.fixture
def backend(postgres):
    import ibis

    backend = ibis.connect(postgres)
    yield backend
    backend.disconnect()


@pytest.fixture(scope="module")
def small(tmp_path_factory, postgres, spark):
    return engines(tmp_path_factory.mktemp("engines"), postgres, spark, "small", rows(6, 3000))


def engines(folder, url, spark, name, arrow) -> SimpleNamespace:
    path = folder / f"{name}.parquet"
    pq.write_table(arrow, path, row_group_size=100_000)
    load(url, name, arrow)
    others = {"postgresql": Table(url, name), "spark": Table(spark.read.parquet(str(path)))}
    return SimpleNamespace(path=path, reference=Table(path), others=others, n=arrow.num_rows)


WIDE = (-1e300, 1.5e300)


def models(columns: str) -> list:
    """Every family that can be released, with the exponent of its grid, and bounds that lose a tiny record."""
    found = [(family.Bernoulli(column), 0) for column in ("b", "i", "t", "f")]
    found += [(family.Binomial("i", trials=50), 0), (family.Poisson("s", bounds=(0, 7)), 0)]
    found += [(family.Poisson("i", bounds=(0, 2**30)), 0), (family.Geometric("t", bounds=(0, 48)), 0)]
    found += [(family.Gamma("g", bounds=(0, 48), shape=2.0), 25), (family.Exponential("d", bounds=(0, 48)), 25)]
    for outside in ("clamp", "drop"):
        found += [(family.Exponential(c, bounds=(0, 48), outside=outside), 25) for c in columns]
        found += [(family.Normal(c, bounds=(-1.3, 47.1), variance=1.0, outside=outside), 25) for c in columns]
        found += [(family.Normal(c, bounds=(-1.3, 47.1), outside=outside), 30) for c in columns]
        found += [(family.Normal(c, bounds=WIDE, variance=1.0, outside=outside), -970) for c in ("f", "t", "i")]
        found += [(family.Normal(c, bounds=(-1e300, 1e300), outside=outside), 20) for c in ("f", "t", "r")]
    found += [(family.Categorical("w", levels=["ward", "home", "é", "O'Neil", "1"]), 0)]
    found += [(family.Categorical(column, levels=[7, 0, 1, -1]), 0) for column in ("i", "s", "t", "d", "f")]
    bounds = {"f": (-20, 20), "g": (0.0, 48.0), "i": (0, 2**62), "t": (-1e3, 1e3), "b": (0, 1), "d": (0, 1e6)}
    found += [(family.MultivariateNormal(list(c), bounds={x: bounds[x] for x in c}), 30) for c in ("fg", "fib", "ftd")]
    found += [(family.LinearRegression(["f", "i"], "g", bounds={x: bounds[x] for x in "fig"}), 30)]
    return found


def check(small, wanted) -> None:
    for model, exponent in wanted:
        expected = small.reference.sums(model.query, exponent)
        assert expected[1] == small.n
        for name, table in small.others.items():
            assert table.sums(model.query, exponent) == expected, (name, model)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
def test_sums_are_the_same_integers_on_every_engine(small, part):
    check(small, models("fit")[part::4])


@pytest.mark.parametrize("column", KINDS)
def test_counts_and_records_are_the_same_on_every_engine(small, column):
    candidates = [-(2.0**62), -2.0, -(2.0**-16), 0.0, 2.0**-16, 0.5, 3.0, 2.0**32, LARGEST]
    model = family.Normal(column, bounds=(-3, 3), variance=1.0)
    counts, whole = small.reference.counts(column, candidates), small.reference.records(model.query, 20)
    for name, table in small.others.items():
        assert table.counts(column, candidates) == counts, name
        assert sorted(table.records(model.query, 20)) == sorted(whole), name
    if column == "w":
        model = family.Categorical("w", levels=["ward", "home", "é"])
        whole = sorted(small.reference.records(model.query, 0))
        assert all(sorted(table.records(model.query, 0)) == whole for table in small.others.values())


HOME = family.Categorical("w", levels=["ward", "home", "é"])
LINE = family.LinearRegression(["f"], "t", bounds={"f": (-20, 20), "t": (-1e3, 1e3)})
LOGISTIC = family.LogisticRegression(["g"], "t", bounds={"g": (0.0, 48.0)})


@pytest.mark.parametrize(
    ("missing", "part"),
    [("leave_out", "few"), *(pytest.param(m, "all", marks=pytest.mark.slow) for m in ("leave_out", "a value"))],
)
def test_missing_cells_and_words_are_read_alike_everywhere(missing, part, small):
    """Also where all columns are numbers, and where a number is one of the words that are yes."""
    wanted = [(family.Normal(c, bounds=(1.5, 47.1), variance=1.0), 25, (3.25,), None) for c in "fitd"]
    wanted += [(family.Normal(c, bounds=(1.5, 47.1), outside="drop"), 30, (3.25,), None) for c in "rt"]
    wanted += [(family.Bernoulli(c), 0, (1,), None) for c in "bift"]
    wanted += [(family.Bernoulli(c), 0, (1,), ["47", "True", "0.5", " É", "home"]) for c in "biftw"]
    wanted += [(HOME, 0, ("é",), None), (LINE, 30, (1.0, 2.0), None), (LOGISTIC, 30, (1.0, 1), None)]
    for model, exponent, values, true in wanted[::7] if part == "few" else wanted:
        said = missing if missing == "leave_out" else dict(zip(model.query.columns, values, strict=True))
        cells = cells_of(model, said, true)
        expected = small.reference.sums(model.query, exponent, cells=cells)
        assert (0 < expected[1] < small.n) if cells.leaves_out else (expected[1] == small.n)
        for name, table in small.others.items():
            assert table.sums(model.query, exponent, cells=cells) == expected, (name, model)
    counts = small.reference.counts("t", [0.0, 3.0, 7.0], missing=2.0)
    assert all(table.counts("t", [0.0, 3.0, 7.0], missing=2.0) == counts for table in small.others.values())


def test_an_ibis_table_and_a_file_that_spark_reads(small, backend, spark, tmp_path):
    columns = {"f": ["1.5", " x ", "", None, "é"], "w": ["ward", 'a"b', "é", "c\nd,e", None]}
    (tmp_path / "t.csv").write_text('f,w\n1.5,ward\n x ,"a""b"\n"",é\n,"c\nd,e"\né\n')
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    for model, exponent in (
        (family.Normal("f", bounds=(-1.3, 47.1), variance=1.0), 25),
        (family.Categorical("w", levels=["ward", "é", 'a"b', "c\nd,e"]), 0),
    ):
        expected = small.reference.sums(model.query, exponent)
        assert Table(backend.table("small")).sums(model.query, exponent) == expected
        assert Table(small.path, spark=True).sums(model.query, exponent) == expected
        expected = Table(tmp_path / "t.parquet").sums(model.query, exponent)
        assert Table(tmp_path / "t.csv", spark=True).sums(model.query, exponent) == expected
        assert Table(tmp_path / "t.csv").sums(model.query, exponent) == expected
    flag, cells = family.Bernoulli("w"), Cells("leave_out", (" é", 'A"B'))
    for table in (Table(tmp_path / "t.csv"), Table(tmp_path / "t.csv", spark=True)):
        assert table.sums(flag.query, 0, cells=cells) == ([2], 4)
    with pytest.raises(ValueError, match=r"must end in one of \.parquet, \.csv for Spark, got t\.json"):
        Table("t.json", spark=True)


@pytest.mark.slow
def test_a_million_rows_are_the_same_integers_on_every_engine(tmp_path, postgres, spark, seed):
    large = engines(tmp_path, postgres, spark, "large", rows(seed, 1_000_000))
    check(large, models("fgrisbtd"))
    candidates = [0.0, *(sign * 2.0**j for j in range(-16, 33) for sign in (-1, 1))]
    for column in KINDS:
        counts = large.reference.counts(column, sorted(candidates))
        assert all(table.counts(column, sorted(candidates)) == counts for table in large.others.values())


# ---- what is refused, and what is never said -------------------------------------------------------------------

SECRET = "s3cr3t-9071"
POISSON = family.Poisson("x", bounds=(0, 9))


def create(url: str, name: str, column: str, cells: list) -> None:
    with psycopg.connect(url) as own:
        own.execute(f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (x {column})")
        own.cursor().executemany(f"INSERT INTO {name} VALUES (%s)", [(cell,) for cell in cells])


@pytest.mark.parametrize("cell", FLOATS)
def test_no_number_can_make_postgresql_err(postgres, cell):
    """It takes underflow for an error: 5e-324 · 2^-970, and a small distance from a centre among large bounds."""
    create(postgres, "one", "float8", [1.0, cell])
    for bounds, exponent in (((-1.3, 2.1), 29), ((-1e300, 1e300), -970)):
        assert Table(postgres, "one").sums(family.Normal("x", bounds=bounds, variance=1.0).query, exponent)[1] == 2
    assert Table(postgres, "one").sums(family.Normal("x", bounds=(-1e300, 1e300)).query, 20)[1] == 2
    assert Table(postgres, "one").counts("x", [0.0, 1e300])[1] == 2


def test_names_with_schemas_dots_and_capitals(postgres, spark):
    with psycopg.connect(postgres) as own:
        own.execute('CREATE SCHEMA IF NOT EXISTS clinic; DROP TABLE IF EXISTS clinic."Visits"')
        own.execute('CREATE TABLE clinic."Visits" AS SELECT 3 AS "a.b ""c", \'2\' AS "T"')
    table = Table(postgres, "clinic.Visits")
    assert table.name == "clinic.Visits"
    assert table.sums(family.Poisson('a.b "c', bounds=(0, 9)).query, 0) == ([3], 1)
    assert table.sums(family.Poisson("T", bounds=(0, 9)).query, 0) == ([2], 1)
    frame = spark.createDataFrame([(3, "2")], "`a.b ``c` int, T string")
    assert Table(frame).sums(family.Poisson("a.b `c", bounds=(0, 9)).query, 0) == ([3], 1)
    assert Table(frame).sums(family.Poisson("T", bounds=(0, 9)).query, 0) == ([2], 1)


def test_money_is_a_number_and_other_encodings_are_text(postgres):
    create(postgres, "paid", "money", ["$1.50", None, "$-3"])
    assert Table(postgres, "paid").sums(family.Normal("x", bounds=(-9, 9), variance=1.0).query, 1) == ([3 - 6 - 18], 3)
    with psycopg.connect(postgres, autocommit=True) as own:
        for encoding in ("LATIN1", "WIN1252", "SQL_ASCII"):
            own.execute(f"DROP DATABASE IF EXISTS other_{encoding}")
            own.execute(f"CREATE DATABASE other_{encoding} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    for encoding, e in (("LATIN1", "e9"), ("WIN1252", "e9"), ("SQL_ASCII", "c3a9")):
        url = postgres.rpartition("/")[0] + f"/other_{encoding.lower()}"
        with psycopg.connect(url) as own:
            own.execute("CREATE TABLE t (x text)")
            for cell in (e, "ff", "81", "3231"):  # in WIN1252 81 is no letter, and in UTF-8 ff is none
                own.execute("INSERT INTO t SELECT convert_from(decode(%s, 'hex'), %s)", (cell, encoding))
        levels = family.Categorical("x", levels=["a", "é", "21"])
        assert Table(url, "t").sums(levels.query, 0) == ([2, 1, 1], 4), encoding
        assert Table(url, "t").sums(family.Poisson("x", bounds=(1, 50)).query, 0) == ([24], 4)


def test_bytes_that_are_no_text_are_no_numbers(spark):
    frame = spark.sql("SELECT CAST(x AS STRING) AS x FROM VALUES (X'31'), (X'FFFE32'), (X'003300'), (X'09370A') v(x)")
    assert Table(frame).sums(POISSON.query, 0) == ([8], 4)
    assert Table(frame).sums(family.Categorical("x", levels=["2", "1"]).query, 0) == ([3, 1], 4)


def test_schema_errors_are_public(postgres, spark):
    frame = spark.sql("SELECT DATE'2020-01-01' AS d, ARRAY(1) AS a, 1 AS n, CAST(NULL AS VOID) AS v")
    with psycopg.connect(postgres) as own:
        own.execute("DROP TABLE IF EXISTS odd; CREATE TABLE odd (d date, a int[], n int, v text)")
        own.execute("INSERT INTO odd VALUES ('2020-01-01', '{1}', 1, NULL)")
    for table in (Table(frame), Table(postgres, "odd")):
        for column in "da":
            for model in (family.Poisson(column, bounds=(0, 9)), family.Categorical(column, levels=["a", "b"])):
                with pytest.raises(ValueError, match=f"column '{column}' must hold numbers or text, got type"):
                    table.sums(model.query, 0)
        with pytest.raises(ValueError, match=r"must have one column 'z', got 0\.$"):
            table.sums(family.Poisson("z", bounds=(0, 9)).query, 0)
        assert table.sums(family.Categorical("n", levels=["a", "1"]).query, 0) == ([0, 1], 1)
        assert table.sums(family.Poisson("v", bounds=(1, 9)).query, 0) == ([1], 1)
    create(postgres, "empty", "float8", [])
    with pytest.raises(ValueError, match=r"must hold 1 to \d+ records, got 0"):
        Table(postgres, "empty").sums(POISSON.query, 0)
    with pytest.raises(ValueError, match=r"^table none could not be found in PostgreSQL; it may need"):
        Table(postgres, "none").sums(POISSON.query, 0)


@pytest.mark.parametrize(
    ("table", "name", "sentence"),
    [
        (f"postgresql://u:{SECRET}@127.0.0.1:1/db", "visits", "PostgreSQL could not be reached with the URL of table"),
        (f"postgresql://u:{SECRET}@[::1/db", "visits", "PostgreSQL could not be reached with the URL of table visits"),
        (f"postgresql://u:{SECRET}@127.0.0.1:1/db", None, "must name the table in the database"),
        (f"mysql://u:{SECRET}@127.0.0.1", "visits", "got a URL of scheme mysql"),
        (f"{SECRET}://x", "visits", "got a URL of scheme another"),
        ("t.csv", "visits", "table_name must be left out unless"),
    ],
)
def test_a_url_is_never_quoted(postgres, table, name, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        Table(table, name).sums(POISSON.query, 0)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("missing", "extra"), [("psycopg", "postgres"), ("ibis", "postgres"), ("pyspark.sql", "spark")]
)
def test_a_missing_engine_names_its_extra(missing, extra, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, missing, None)
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "t.parquet")
    table = Table(tmp_path / "t.parquet", spark=True) if extra == "spark" else Table("postgresql://h/db", "visits")
    with pytest.raises(ImportError, match=rf"install noiseaware\[{extra}\]\.$"):
        table.sums(POISSON.query, 0)


def test_errors_hold_nothing_of_the_records(postgres, backend, spark, capfd, caplog, recwarn):
    """An expression of the custodian's own may fail on a value, and the engine's message quotes it."""
    create(postgres, "secret", "text", ["1", SECRET])
    spark.sparkContext.setLogLevel("ERROR")
    capfd.readouterr()
    frame = spark.createDataFrame([("1",), (SECRET,)], "x string")
    damaged = [frame.selectExpr("CAST(x AS INT) AS x"), frame.selectExpr("CAST(CAST(x AS INT) AS STRING) AS x")]
    with psycopg.connect(postgres) as own:
        own.execute("CREATE OR REPLACE VIEW cast_whole AS SELECT x::int AS x FROM secret")
        own.execute("CREATE OR REPLACE VIEW cast_text AS SELECT x::int::text AS x FROM secret")
    damaged += [backend.table("cast_whole"), backend.table("cast_text")]
    for source in damaged:
        for model in (POISSON, family.Categorical("x", levels=[1, 2])):
            with pytest.raises(ValueError, match="could not be read as a table of records") as caught:
                Table(source).sums(model.query, 0)
            assert SECRET not in str(caught.value)
            assert caught.value.__context__ is None
    for source, name in ((frame, None), (postgres, "secret")):
        assert Table(source, name).sums(POISSON.query, 0) == ([1], 2)
    spark.sparkContext.setLogLevel("OFF")
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err + caplog.text
    assert not [warning for warning in recwarn if SECRET in str(warning.message)]


def test_text_is_streamed(postgres, monkeypatch):
    """Batches of a server-side cursor, of which no more than one is asked for before it is read."""
    from noiseaware.custodian.engine import ibis as database

    monkeypatch.setattr(database, "_BATCH", 100)
    sizes = []
    whole = database._array
    monkeypatch.setattr(database, "_array", lambda cells, *rest: sizes.append(len(cells)) or whole(cells, *rest))
    with psycopg.connect(postgres) as own:
        own.execute("DROP TABLE IF EXISTS many; CREATE TABLE many AS SELECT '2' AS x FROM generate_series(1, 5050)")
    assert Table(postgres, "many").sums(POISSON.query, 0) == ([10100], 5050)
    assert sizes == [100] * 50 + [50]


@pytest.mark.parametrize(
    "groups",
    [Groups(("w",), (("home", "é", "O'Neil", "nowhere"),)), Groups(("s", "b"), ((3, -1, 7), (0, 1)))],
    ids=["text", "numbers"],
)
@pytest.mark.parametrize("engine", ["postgresql", "spark"])
def test_groups_are_the_same_everywhere(engine, groups, small):
    for model in (family.Exponential("g", bounds=(0, 48)), family.Categorical("t", levels=["abc", "true"])):
        expected = small.reference.group_sums(model.query, 0, groups)
        assert small.others[engine].group_sums(model.query, 0, groups) == expected
        assert 0 < sum(n for _, n in expected) < small.n


@pytest.mark.parametrize("engine", ["postgresql", pytest.param("spark", marks=pytest.mark.slow)])
def test_so_many_records_of_a_unit_are_summed_everywhere(engine, small):
    """All of them where the cap is high, which leaves out NULL and NaN; else as many, and by chance."""
    model, table = family.Exponential("g", bounds=(0, 48)), small.others[engine]
    for unit in ("w", "f", "i"):
        everyone = Unit(unit, 10**6)
        assert table.sums(model.query, 25, unit=everyone) == small.reference.sums(model.query, 25, unit=everyone)
        assert (
            table.sums(model.query, 25, unit=Unit(unit, 3))[1]
            == small.reference.sums(model.query, 25, unit=Unit(unit, 3))[1]
        )
    assert len({table.sums(model.query, 25, unit=Unit("w", 3))[0][0] for _ in range(4)}) > 1
