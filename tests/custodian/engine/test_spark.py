"""Tables in Spark: rows that its own reader refuses, types that only it has, and what it writes."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from noiseaware import family
from noiseaware.check import LONGEST_CELL
from noiseaware.custodian.division import Groups, Unit
from noiseaware.custodian.engine import spark as engine
from noiseaware.custodian.table import Table

ILL = family.Bernoulli("ill")
ODD = [
    b"1,fell, on, stairs",
    b"1" + b"," * 30_000,
    b"1,x\r0,y\r1,z",
    b'1,a"b',
    b'"1"x',
    b'"1", "a"',
    b"1,\xff\xfe\x00",
    b"1",
]
ODD += [b'1,"two\nlines"', b'1,"' + b"x" * 50_000 + b'"', b"", b",", b'"', b"1,\\,\\\\"]


@pytest.mark.parametrize("odd", [ODD[:2], ODD])
def test_no_row_of_a_csv_file_refuses_the_others(odd, spark, tmp_path):
    lines = [b"ill,note", *(b"1,fell on stairs" for _ in range(99)), *odd, *(b"0,x" for _ in range(99))]
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines) + b"\n")
    found = Table(tmp_path / "t.csv", spark=True).sums(ILL.query, 0)
    assert found == Table(tmp_path / "t.csv").sums(ILL.query, 0)
    if odd == ODD[:2]:
        assert found == ([101], 200)


def test_char_is_not_padded_and_letters_are_not_folded(spark):
    """As in PostgreSQL: char(5) is stored with spaces, and a collation may say that A is a."""
    frame = spark.sql(
        "SELECT 1 AS ill, 'a' AS c, 'A' COLLATE UTF8_LCASE AS p UNION ALL SELECT 1, 'b    ', 'a' COLLATE UTF8_LCASE"
    )
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}
    padded = frame.selectExpr("ill", "rpad(c, 5) AS c", "p").withMetadata("c", declared)
    groups = Groups(("c",), (("a", "b", "a    "),))
    assert [n for _, n in Table(padded).group_sums(ILL.query, 0, groups)] == [1, 1, 0]
    assert Table(frame).sums(ILL.query, 0, unit=Unit("p", 1)) == ([2], 2)


def test_a_long_cell_is_no_number(spark):
    frame = spark.range(2).selectExpr(f"concat(repeat(' ', {LONGEST_CELL - 1} + CAST(id AS int)), '7') AS x")
    assert Table(frame).sums(family.Poisson("x", bounds=(1, 9)).query, 0) == ([8], 2)


def test_a_session_logs_as_before(spark):
    """PySpark holds back what is below WARN where no level was set; its own setLogLevel ends that for good."""
    logs = spark._jvm.org.apache.logging.log4j
    configurator = logs.core.config.Configurator
    shell = getattr(getattr(spark._jvm.org.apache.spark.internal, "Logging$"), "MODULE$")
    configurator.setRootLevel(logs.Level.INFO)
    getattr(shell, "sparkShellThresholdLevel_$eq")(logs.Level.WARN)
    frame = spark.range(3).selectExpr("id AS ill")
    with engine._silent(frame):
        assert str(logs.LogManager.getRootLogger().getLevel()) == "OFF"
    assert str(logs.LogManager.getRootLogger().getLevel()) == "INFO"
    assert str(shell.sparkShellThresholdLevel()) == "WARN"
    spark.sparkContext.setLogLevel("OFF")


OWN = """
import os, sys
from pathlib import Path
from noiseaware import family
from noiseaware.custodian.division import Unit
from noiseaware.custodian.engine import spark
from noiseaware.custodian.table import Table
os.umask(0o022)
table = Table(sys.argv[1], spark=True)
assert table.sums(family.Bernoulli("ill").query, 0, unit=Unit("pid", 1))[1] == 40_000
folder = Path(spark._session().sparkContext.getConf().get("spark.local.dir"))
written = [path for path in folder.rglob("*") if path.is_file()]
assert any("shuffle" in path.name for path in written), written
for path in written:
    assert b"SECRETPERSON" not in path.read_bytes(), path
for path in (folder, *folder.rglob("*")):
    assert path.stat().st_mode & 0o077 == 0, path
assert os.umask(0o022) == 0o022
print(folder)
"""


@pytest.mark.slow
def test_what_spark_writes_is_encrypted_nobody_elses_and_gone(spark, tmp_path):
    """`spark` is there to skip where there is none; another is started here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    persons = [f"SECRETPERSON{i % 40_000}" for i in range(80_000)]
    pq.write_table(pa.table({"pid": persons, "ill": [0] * len(persons)}), tmp_path / "t.parquet")
    done = subprocess.run([sys.executable, "-c", OWN, tmp_path / "t.parquet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_settings_of_a_session_that_is_started_here():
    own = engine._own_settings()
    folder = Path(own["spark.local.dir"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (own["spark.io.encryption.enabled"], own["spark.eventLog.enabled"]) == ("true", "false")
    seen = os.umask(0o022)
    with engine._unheard():
        assert os.umask(0o077) == 0o077
    assert os.umask(seen) == 0o022
