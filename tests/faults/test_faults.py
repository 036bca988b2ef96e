"""The list of faults is in order; `make test-all` plants them (plant.py)."""

from collections import Counter

import pytest
from tests.faults import plant

FAULTS = plant.faults()


def test_every_fault_has_a_place_and_changes_it():
    assert [fault.name for fault in FAULTS if plant.occurrences(fault) != 1 or fault.becomes == fault.text] == []


def test_every_fault_has_a_name_of_its_own():
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_tests_that_should_notice_exist():
    """The file, and in it the function."""
    missing = []
    for test in {test for fault in FAULTS for test in fault.tests}:
        file, _, function = test.partition("[")[0].partition("::")
        path = plant.ROOT / file
        if not path.is_file() or f"def {function}" not in path.read_text(encoding="utf-8"):
            missing.append(test)
    assert missing == []
    assert all(fault.tests for fault in FAULTS)


def test_faults_are_spread_over_the_package():
    rooms = [
        "custodian",
        "evidence",
        "family",
        "interop",
        "likelihood",
        "mechanism",
        "posterior",
        "privacy",
        "program",
        "sampler",
        "study",
    ]
    count = Counter(fault.path.parts[2] for fault in FAULTS)
    assert min(count[room] for room in rooms) >= 5
    assert sum(count.values()) >= 300


def test_a_fault_is_planted_in_a_copy_and_nowhere_else(tmp_path):
    fault = FAULTS[0]
    (tmp_path / fault.path).parent.mkdir(parents=True)
    right = (plant.ROOT / fault.path).read_text(encoding="utf-8")
    (tmp_path / fault.path).write_text(right, encoding="utf-8")
    plant.planted(fault, tmp_path)
    assert plant.occurrences(fault) == 1
    assert (tmp_path / fault.path).read_text(encoding="utf-8") == right.replace(fault.text, fault.becomes)


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        ('<failure message="AssertionError: 1 is not 2"/>', plant.DIED),
        ('<failure message="ModuleNotFoundError: no such thing"/>', plant.BROKEN),
        ('<error message="failed on setup"/>', plant.BROKEN),
        ("", plant.BROKEN),
    ],
)
def test_only_a_test_that_fails_has_noticed(case, verdict, tmp_path):
    report = tmp_path / "report.xml"
    passed = '<testcase classname="a.b" name="c"/>'
    report.write_text(f'<run>{passed}<testcase classname="a.b" name="d">{case}</testcase></run>')
    assert plant._first(report)[0] == verdict
