"""JSON files: an array or lines by the name of the file, and no record is an error or changes another."""

import json
import random

import pytest

from noiseaware import family
from noiseaware.custodian.engine import octets
from noiseaware.custodian.table import Table

ONES = family.Bernoulli("x")
LINES = [
    b'["x"]',
    b"[1]",
    b"[",
    b"]",
    b"[]",
    b"{",
    b'{"x": 1} {"x": 1}',
    b'{"x": 1}\r{"x": 1}',
    b'{"x": 1},',
    b"null",
    b"\x00",
]
LINES += [
    b'{"x": "\xff"}',
    b'{"x": "\\ud83d"}',
    b'{"y": "\\ud83d", "x": 0}',
    b'{"x": NaN}',
    b'"',
    b"\\",
    b"[" * 9999,
    b"x",
    b"/*",
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: repr(line[:20]))
@pytest.mark.parametrize("suffix", ["jsonl", "ndjson"])
def test_no_line_is_an_error_or_changes_another(line, suffix, tmp_path):
    good = b'{"x": 1}'
    for place in range(3):
        rows = [good] * 2
        rows.insert(place, line)
        (tmp_path / f"t.{suffix}").write_bytes(b"\n".join(rows))
        (ones,), n = Table(tmp_path / f"t.{suffix}").sums(ONES.query, 0)
        assert (n, ones in (2, 3)) == (3, True)


VALUES = [
    1,
    1.5,
    None,
    True,
    "a",
    "",
    [1, [2]],
    {"a": {"b": [{}]}},
    "]",
    "}, {",
    '"',
    "\\",
    '\\"',
    "\n\r",
    "é\U0001f600",
    "\ud83d",
]
VALUES += ["\ude00\ud83d", "\ud83d\ud83d\ude00", "\\ud83d", float("nan"), float("inf"), 10**400, "x" * 3000]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_any_array_that_a_program_wrote_is_read(indent, ascii_only, tmp_path, seed, monkeypatch):
    """With blocks of any size, so that each place is once the end of one."""
    rng = random.Random(seed)
    for block in (7, 64, 2**20):
        monkeypatch.setattr("noiseaware.custodian.engine.octets.BLOCK", block)
        records = [{"y": rng.choice(VALUES), "x": rng.choice([0, 1]), "z": rng.choice(VALUES)} for _ in range(40)]
        records += [1, "x", None, [], {}]
        text = json.dumps(records, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        for start in (b"", b"\xef\xbb\xbf", b" \n"):
            (tmp_path / "t.json").write_bytes(start + text + b"\n")
            assert Table(tmp_path / "t.json").sums(ONES.query, 0) == ([sum(r["x"] for r in records[:40])], 45)


def test_half_a_pair_of_surrogates_costs_no_other_value(tmp_path):
    texts = ["\ud83d", "a\ude00b", "\\ud83d", "\U0001f600"]
    for name, start, between, end in (("t.json", "[", ",", "]"), ("t.jsonl", "", "\n", "\n")):
        records = [json.dumps({"x": 1, "t": text}) for text in texts]
        (tmp_path / name).write_text(start + between.join(records) + end)
        assert Table(tmp_path / name).sums(ONES.query, 0) == ([4], 4)
        levels = ["other", "\ufffd", "a\ufffdb", "\\ud83d", "\U0001f600"]
        assert Table(tmp_path / name).sums(family.Categorical("t", levels=levels).query, 0) == ([0, 1, 1, 1, 1], 4)


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_record_of_any_length_is_one_record(name, tmp_path, monkeypatch):
    """The longest that is read is four blocks here and in earnest; the last record is one of brackets."""
    monkeypatch.setattr("noiseaware.custodian.engine.octets.LONGEST_RECORD", 2**14)
    monkeypatch.setattr("noiseaware.custodian.engine.octets.BLOCK", 2**12)
    records = [json.dumps(record) for record in ({"x": 1}, {"t": "x" * 2**15, "x": 1}, {"x": 1}, {"x": [[1]] * 2**13})]
    for order in (records, records[::-1]):
        (tmp_path / name).write_text("\n".join(order) if name == "t.jsonl" else f"[{','.join(order)}]")
        assert Table(tmp_path / name).sums(ONES.query, 0) == ([2], 4)
    monkeypatch.undo()
    (tmp_path / name).write_text(records[1] if name == "t.jsonl" else f"[{records[1]}]")  # read, in earnest
    assert Table(tmp_path / name).sums(ONES.query, 0) == ([1], 1)


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
@pytest.mark.parametrize("excess", [0, 1])
def test_the_longest_record_is_read_even_if_each_byte_becomes_three(excess, name, tmp_path):
    start, end = b'{"x": 1, "t": "', b'"}'
    broken = b"\xff" * (octets.LONGEST_RECORD // octets.GROWTH - len(start + end) + excess)
    records = [b'{"x": 1}', start + broken + end, b'{"x": 1}']
    (tmp_path / name).write_bytes(b"\n".join(records) if name == "t.jsonl" else b"[%b]" % b",".join(records))
    assert Table(tmp_path / name).sums(ONES.query, 0) == ([3 - excess], 3)


@pytest.mark.parametrize(
    "text", ['[{"x": 1}', '[{"x": 1},\n{"x": 1}', '[{"x": 1}] [', "[1,]", "[,1]", "[1]]", '[{"x": "}]', "[}"]
)
def test_a_broken_array_is_refused_in_one_sentence(text, tmp_path):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(
        ValueError, match=r"^table file t\.json must hold one JSON array that is whole, or one record a line"
    ):
        Table(tmp_path / "t.json").sums(ONES.query, 0)


@pytest.mark.parametrize("first", ['{"x": 1}', '["x"]', "[1, 2]", "[]", "5", "x", '[{"x": 1}]', "]", "{"])
def test_the_first_line_of_a_json_file_is_a_record_like_all_others(first, tmp_path):
    """Where it is no array as a whole, it is lines; one record cannot make it another thing."""
    (tmp_path / "t.json").write_text(f'{first}\n{{"x": 1}}\n{{"x": 0}}\n')
    assert Table(tmp_path / "t.json").sums(ONES.query, 0) == ([1 + (first == '{"x": 1}')], 3)


@pytest.mark.parametrize("text", ["[]", " [ ]\n"])
def test_an_empty_array_is_a_table_of_no_records(text, tmp_path):
    (tmp_path / "t.json").write_text(text)
    assert Table(tmp_path / "t.json").sums(ONES.query, 0, least=0) == ([0], 0)
