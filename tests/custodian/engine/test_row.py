"""CSV files: whatever bytes one record holds, the number of records and all other records stay as they are.

The oracle reads a file a cell at a time, by the definition alone and with the whole file in memory.
"""

import contextlib
import csv
import io
import os
import random
import re
import threading
import time

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import noiseaware as na
from noiseaware import family
from noiseaware.custodian.division import Unit
from noiseaware.custodian.engine import row
from noiseaware.custodian.engine._engine import Opening
from noiseaware.custodian.engine.duckdb import connection
from noiseaware.custodian.engine.file import READERS
from noiseaware.custodian.table import Table

ONES = family.Bernoulli("x")
RUNS = ["\r", "\r\r", "\n", "\r\n", "\n\r", "\r\r\n", '"', '""', '"""', '"\r', '\r"', '"\n', '\n"', '",', ',"', '","']
RUNS += [
    ",",
    ",,",
    "\r,",
    ",\r\n1",
    "\r1",
    'a"b',
    '"a" b',
    '"a"b"',
    " ",
    ' "',
    '" ',
    '"a" \r',
    "x" + "\r1" * 50,
    '1"\r1,1',
]


def _by_pandas(frame, path):
    frame.to_csv(path, index=False)


def _by_csv(end):
    def write(frame, path):
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator=end)
            writer.writerow(frame.columns)
            writer.writerows(frame.itertuples(index=False))

    return write


WRITERS = {
    "pandas": _by_pandas,
    "pandas crlf": lambda frame, path: frame.to_csv(path, index=False, lineterminator="\r\n"),
    "csv": _by_csv("\n"),
    "csv crlf": _by_csv("\r\n"),
    "polars": lambda frame, path: pl.DataFrame({c: frame[c].to_list() for c in frame}).write_csv(path),
    "pyarrow": lambda frame, path: pyarrow.csv.write_csv(pa.table({c: frame[c].to_list() for c in frame}), path),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_a_program_wrote_is_read_as_it_was(writer, place, tmp_path):
    """Each run between records of 1, in the first, the middle and the last column; text comes back as it went."""
    texts = [text for run in RUNS for text in (run, f"a{run}b", "plain")]
    columns = {"x": [int(text == "plain") for text in texts], "z": ["k"] * len(texts)}
    names = ["x", "z"]
    names.insert(place, "note")
    frame = pd.DataFrame({**columns, "note": texts})[names]
    WRITERS[writer](frame, tmp_path / "t.csv")
    assert Table(tmp_path / "t.csv").sums(ONES.query, 0) == ([len(RUNS)], len(texts))
    assert Table(tmp_path / "t.csv").sums(family.Categorical("z", levels=["other", "k"]).query, 0)[0] == [0, len(texts)]
    wanted = [f"a{run}b" for run in RUNS]
    counts, n = Table(tmp_path / "t.csv").sums(family.Categorical("note", levels=["other", "plain", *wanted]).query, 0)
    assert (counts[1:], n) == ([texts.count(text) for text in ("plain", *wanted)], len(texts))


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_program_wrote_of_one_column_is_read_as_it_was(writer, tmp_path):
    texts = [text for run in RUNS for text in (run, f"1{run}1", "1")]
    WRITERS[writer](pd.DataFrame({"x": texts}), tmp_path / "t.csv")
    counts = Table(tmp_path / "t.csv").sums(family.Categorical("x", levels=["other", "1"]).query, 0)
    assert counts == ([len(texts) - texts.count("1"), texts.count("1")], len(texts))


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("run", [run for run in RUNS if "\n" not in run], ids=repr)
def test_no_run_of_bytes_changes_another_record_of_a_file_by_hand(run, end, tmp_path):
    """Cells are written as they are: what holds a line feed is two records, and nothing can tell."""
    path, others = tmp_path / "t.csv", ['1,"a, ""b""\nc",k', "1,d,k"] * 2
    for odd in (f"0,{run},k", f"0,a{run}b,k", f"0,k,{run}", f"{run},a,k", run + run + "z"):
        for place, last in ((0, end), (2, end), (4, "")):
            rows = [*others[:place], odd, *others[place:]]
            path.write_text("x,note,z" + end + end.join(rows) + last, newline="")
            counts, n = Table(path).sums(family.Categorical("x", levels=["0", "1"]).query, 0)
            assert (counts[1], n) == (4 + (odd.split(",")[0] == "1"), 5), (odd, place)


def test_a_return_in_the_note_of_one_person_makes_no_records(tmp_path):
    """The attack: free text of one person, in a column that nobody asks for, was as many records as it had returns."""
    notes = ["ok"] * 200
    for note in ("fell on stairs", "fell on\rstairs", "x" + "\r1" * 500):
        frame = pd.DataFrame({"ill": [0] * 200, "pid": range(200), "note": [note, *notes[1:]]})
        frame.to_csv(tmp_path / "t.csv", index=False)
        table = Table(tmp_path / "t.csv")
        assert table.sums(family.Bernoulli("ill").query, 0) == ([0], 200)
        assert table.sums(family.Bernoulli("ill").query, 0, unit=Unit("pid", 1)) == ([0], 200)


def oracle(text: bytes, columns: int) -> list[list[str | None]]:
    """The cells of each record, None where one is empty."""
    found, at = [], 0
    quoted = re.compile(rb' {0,1000}"((?:[^"]|"")*+)" {0,1000}(?=,|\r{0,1000}(?:\n|\Z))')
    while at < len(text):
        start, cells, end = at, [], b","
        while end == b",":
            is_quoted = quoted.match(text, at)
            after = re.compile(rb"[,\n]|\Z").search(text, is_quoted.end() if is_quoted else at)
            assert after is not None
            end = after[0]
            plain = text[at : after.start()]
            cells.append(is_quoted[1].replace(b'""', b'"') if is_quoted else plain.rstrip(b"\r" * (end != b",")))
            at = after.end()
        if columns == 1 or text[start:at].strip(b"\r\n"):
            found.append([cell.decode("utf-8", "replace") or None for cell in [*cells, *[b""] * columns][:columns]])
    return found


PIECES = [b"\r", b'"', b",", b"a", b"1", b" ", b'""', b"\r\r", b'"\r', b'\r"', b'",', b'"\n"', b"\xff", b"\x00", b"\t"]


def _records(path, columns):
    """All cells, as the table reads them."""
    with contextlib.ExitStack() as closing, connection() as own:
        relation = READERS[".csv"](path, Opening(own, [f"c{i}" for i in range(columns)], closing, "no"))
        return [list(record) for record in relation.fetchall()]


def _odd_file(rng, columns):
    end = rng.choice([b"\n", b"\r\n"])
    rows = [b"".join(rng.choice(PIECES) for _ in range(rng.randint(0, 8))) for _ in range(rng.randint(1, 5))]
    return b",".join(b"c%d" % i for i in range(columns)) + end, end.join(rows) + rng.choice([b"", end])


@pytest.mark.parametrize(
    "note",
    [b"x\n1,7,z\n1,7,z", b"fell\n1,7,", b"fell on stairs", b'a""b', b"x" * 40_000, b"x\ry"],
    ids=["lines", "a line", "text", "quotes", "long", "return"],
)
@pytest.mark.parametrize("pad", [b"", b" ", b"   "], ids=["tight", "a space", "spaces"])
def test_a_padded_and_quoted_note_of_one_person_is_that_of_one_record(note, pad, tmp_path):
    """DuckDB skips one space before a quote, and takes a quote after two for a character."""
    rows = [b'0,%b1,%b"%b"' % (pad, pad, one) for one in (note, *[b"text"] * 199)]
    (tmp_path / "t.csv").write_bytes(b"ill,n,note\n" + b"\n".join(rows) + b"\n")
    assert Table(tmp_path / "t.csv").sums(na.family.Bernoulli("ill").query, 0) == ([0], 200)
    assert Table(tmp_path / "t.csv").sums(na.family.Bernoulli("n").query, 0) == ([200], 200)


def test_a_mark_before_the_first_record_of_a_piped_file_swallows_nothing(tmp_path):
    """DuckDB takes a byte-order mark at the start of what it is given away, and then sees the quote."""
    (tmp_path / "t.csv").write_bytes(b'x,y\n\xef\xbb\xbf"0,ok\n' + b"1,ok\n" * 200 + b"1,o\rk\n")
    assert Table(tmp_path / "t.csv").sums(na.family.Bernoulli("x").query, 0) == ([201], 202)


def test_cells_past_the_last_column_are_no_part_of_the_next_record(tmp_path):
    for odd in (b'1,2,"a""b"\n', b"1,2\n", b"1,2,3,4\n"):
        (tmp_path / "t.csv").write_bytes(b"c0,c1\n" + odd + b'5",b\n1,b\n')
        assert _records(tmp_path / "t.csv", 2)[1:] == [['5"', "b"], ["1", "b"]]


@pytest.mark.parametrize(
    "record", [b'"' + b'""a' * 400_000 + b'",1', b'"z,1' + b'\n"","",' * 50_000, b"1," * 1_000_000]
)
def test_one_record_takes_no_more_time_than_its_length(record, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"x,y\n" + record + b"\n1,b\n")
    start = time.process_time()
    assert Table(tmp_path / "t.csv").sums(na.family.Bernoulli("x").query, 0, least=0)[1] > 1
    assert time.process_time() - start < 5


def test_any_file_is_read_as_it_is_defined(tmp_path, seed):
    rng, kept = random.Random(seed), 0
    for _ in range(150):
        columns = rng.choice([1, 2, 3])
        first, records = _odd_file(rng, columns)
        (tmp_path / "t.csv").write_bytes(first + records)
        assert _records(tmp_path / "t.csv", columns) == oracle(records, columns), first + records
        kept += row.is_plain(tmp_path / "t.csv", row.header(tmp_path / "t.csv"))
    assert 1 < kept < 75


@pytest.mark.parametrize("block", [16, 64])
def test_rows_that_reach_over_blocks_are_whole(block, tmp_path, seed, monkeypatch):
    """And cells that reach over what is peeked at: where the blocks end changes nothing."""
    rng = random.Random(seed)
    files = [_odd_file(rng, 3) for _ in range(100)]
    monkeypatch.setattr("noiseaware.custodian.engine.octets.BLOCK", block)
    for first, records in files:
        (tmp_path / "t.csv").write_bytes(first + records)
        header = row.Header(["c0", "c1", "c2"], ",", len(first), False)
        text = b"".join(row.safe(tmp_path / "t.csv", header)).partition(b"\n")[2]
        assert oracle(text, 3) == oracle(records, 3), records


def test_a_cell_of_any_length_is_one_cell(tmp_path):
    """Longer than a block, and than what DuckDB reads in one record; of them nothing is kept."""
    for long in (
        b"x" * (3 << 20),
        b'"' + b"a\n" * (9 << 20) + b'"',
        b"," * (1 << 17),
        b'"' * (5 << 20),
        b'"' + b"y" * (17 << 20),
    ):
        (tmp_path / "t.csv").write_bytes(b"x,note,z\n1,a,k\n0," + long + b",k\n1,b,k\n1,,k\n")
        assert Table(tmp_path / "t.csv").sums(ONES.query, 0) == ([3], 4)


def test_a_file_whose_rows_end_in_returns_is_refused_by_its_header(tmp_path):
    for text in (b"x,y\r1,a\r2,b\r", b"x,y\r1,a\r\n2,b\n"):
        (tmp_path / "t.csv").write_bytes(text)
        with pytest.raises(ValueError, match=r"must end its rows with line feeds, got a carriage return .* of t\.csv"):
            Table(tmp_path / "t.csv").sums(ONES.query, 0)
    (tmp_path / "t.csv").write_bytes(b'x,"y\rz"\r\n1,a\r\n')
    assert Table(tmp_path / "t.csv").sums(ONES.query, 0) == ([1], 1)


@pytest.mark.parametrize("first", ["x,note", '"x","note"', "\ufeffx,note", '\ufeff"x","note\nmore"', "x,note\r"])
def test_a_header_of_any_kind_is_a_header(first, tmp_path):
    for records in ("1,a\n0,b\n", "1,a\r2\n0,b\n", '"1","a\nb"\n0,b', ""):
        (tmp_path / "t.csv").write_text(f"{first}\n{records}", newline="")
        n = 2 if records else 0
        assert Table(tmp_path / "t.csv").sums(ONES.query, 0, least=0) == ([n // 2], n)


def test_a_pipe_is_read_twice_and_leaves_nothing(tmp_path, monkeypatch):
    """For private bounds the file is read twice; an end that comes early, before or while it is read, ends the pipe."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "t.csv").write_bytes(b"x,note\n" + b"1,a\rb\n" * 50_000)
    table = Table(tmp_path / "t.csv")
    assert table.counts("x", [0.5, 1.0]) == ([0, 50_000], 50_000)
    assert table.sums(ONES.query, 0) == ([50_000], 50_000)
    with table._scan() as scan:
        scan.numbers(["x"])  # opened and never read
    interrupted = Table(tmp_path / "t.csv", progress=lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with contextlib.suppress(KeyboardInterrupt):
        interrupted.sums(ONES.query, 0)
    assert [thread.name for thread in threading.enumerate() if thread.name == "noiseaware pipe"] == []
    assert os.listdir(tmp_path) == ["t.csv"]


def test_the_csv_module_writes_returns_without_quotes_on_some_pythons():
    """What makes all of this needed: where it changes, the files that were written before do not."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(["a\rb"])
    assert file.getvalue() in ("a\rb\n", '"a\rb"\n')
