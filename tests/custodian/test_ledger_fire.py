"""The ledger under fire: processes killed at any moment, writes that fail, disks that are full or read-only.

Whatever happens: nothing is overspent, nothing published that was not charged, and the ledger can be read afterwards.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.privacy import Pure

PRICE = Pure(Fraction(1, 7))
WORKERS = 8
MORTAL = 4  # workers that may die for good: the others alone make 4 · 200 > 500 attempts, so that the budget must end

WORKER = """
import os, sys
from fractions import Fraction
from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.privacy import Pure

path, published, attempts = sys.argv[1:]
ledger, file = Ledger(path), os.open(published, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for _ in range(int(attempts)):
    try:
        line = ledger.charge(Pure(Fraction(1, 7)), {"table": "clinic.csv"}).id
    except LedgerRefusal:
        line = "refused"
    os.write(file, f"{line}\\n".encode())
"""


@dataclass(frozen=True)
class Fire:
    """A budget for so many charges, and workers that attempt so many each; other numbers make a shorter round."""

    path: Any
    folder: Path
    budget: int = 500
    attempts: int = 200
    kills: int = 20

    def round(self, seed, survivors=WORKERS - MORTAL):
        Ledger.create(self.path, epsilon=self.budget * PRICE.epsilon)
        self._storm(random.Random(seed), survivors)
        self._check()
        ledger, is_exhausted = Ledger(self.path), "refused" in self._lines()
        assert is_exhausted or not survivors
        assert ledger.remaining == 0 or not is_exhausted
        with pytest.raises(LedgerRefusal):  # what was left by the killed can still be spent, to the last charge
            self._spend_the_rest(ledger)
        assert (len(ledger.entries()), ledger.remaining) == (self.budget, 0)

    def _storm(self, rng, survivors):
        """Random workers are killed at random times, and some started again: of the first ones, all."""
        workers, kills = {slot: self._started(slot) for slot in range(WORKERS)}, 0
        while alive := [slot for slot, worker in workers.items() if worker.poll() is None]:
            time.sleep(rng.uniform(0, 0.5))
            count = min(len(alive), rng.choice([1, 1, 2, WORKERS]))
            for slot in rng.sample(alive, count) if kills < self.kills else []:
                workers[slot].kill()
                kills += workers[slot].wait() == -signal.SIGKILL
                self._check()
                if slot < survivors or rng.random() < 0.3:
                    workers[slot] = self._started(slot)
        assert kills > 0
        assert {worker.returncode for worker in workers.values()} <= {0, -signal.SIGKILL}

    def _started(self, slot):
        """A worker that goes on where the last one of its slot ended."""
        published = self.folder / f"{slot}.published"
        left = self.attempts - (len(published.read_text().splitlines()) if published.exists() else 0)
        return subprocess.Popen([sys.executable, "-c", WORKER, self.path, published, str(left)])

    def _lines(self):
        """What workers have published, or were refused, so far."""
        return [line for file in self.folder.glob("*.published") for line in file.read_text().splitlines()]

    def _check(self):
        """What is true at any moment, whoever was killed."""
        published = [line for line in self._lines() if line != "refused"]  # read first: what stands there was charged
        ledger = Ledger(self.path)
        entries = ledger.entries()
        assert len(published) <= len(entries) <= self.budget
        assert set(published) <= {entry.id for entry in entries}
        assert len(entries) * PRICE.epsilon <= ledger.spent <= self.budget * PRICE.epsilon
        assert len(entries) <= ledger.verify() <= self.budget

    def _spend_the_rest(self, ledger):
        for _ in range(self.budget + 1):
            ledger.charge(PRICE, {})


def test_workers_killed_at_random_never_overspend(files, tmp_path, seed):
    Fire(files.place(), tmp_path).round(seed)


def test_workers_killed_at_random_never_overspend_in_postgresql(schemas, tmp_path, seed):
    Fire(schemas.place(), tmp_path, budget=100, attempts=40, kills=6).round(seed)


@pytest.mark.slow
@pytest.mark.parametrize("survivors", [0, WORKERS - MORTAL])
@pytest.mark.parametrize("number", range(10))
def test_twenty_rounds_of_workers_killed_at_random(store, tmp_path, seed, number, survivors):
    Fire(store.place(), tmp_path).round(seed, survivors)


def test_importing_the_ledger_is_light():
    code = "import sys, noiseaware.custodian.ledger.ledger; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "numpy", "scipy", "pandas", "pydantic", "opendp", "duckdb", "psycopg"} & set(done.stdout.split())


# Writing fails, or kills, at any byte. ------------------------------------------------------------------------------

# A write beyond a file size of so many bytes fails, or ends the process there and then as kill -9 would.
LIMITED = """
import resource, signal, sys
from fractions import Fraction
from noiseaware.custodian.ledger.ledger import Ledger
from noiseaware.privacy import Pure

path, deadly, *limits = sys.argv[1:]
ledger = Ledger(path)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly == "deadly" else signal.SIG_IGN)
for limit in limits:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    try:
        ledger.charge(Pure(Fraction(1, 7)), {"table": "clinic.csv"})
        sentence = "charged"
    except ValueError as error:
        sentence = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(limit, ledger.verify(), sentence)
"""


def _limited(path, deadly, limits):
    return subprocess.run(
        [sys.executable, "-c", LIMITED, path, deadly, *map(str, limits)], capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def ledger(tmp_path):
    """A ledger of ε = 9 with five entries that cost 1/7 each."""
    made = Ledger.create(tmp_path / "a.ledger", epsilon=9)
    for i in range(5):
        made.charge(PRICE, {"table": f"{i}.csv"})
    return made


def test_a_write_that_fails_charges_nothing(ledger):
    before, size = ledger.entries(), ledger.path.stat().st_size
    done = _limited(ledger.path, "harmless", range(0, size, 1024))
    assert done.returncode == 0, done.stderr
    told = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(told) == size // 1024
    for _, count, sentence in told:
        assert int(count) == len(before)
        assert sentence == f"ledger {ledger.path} must be on a disk that has room and works."
    assert Ledger(ledger.path).entries() == before
    ledger.charge(PRICE, {})


def test_a_process_that_dies_while_writing_charges_nothing(ledger):
    before, size = ledger.entries(), ledger.path.stat().st_size
    journals = 0
    for limit in range(0, size, 2048):  # first in the journal, then between the pages of the ledger itself
        assert _limited(ledger.path, "deadly", [limit]).returncode == -signal.SIGXFSZ
        journals += ledger.path.with_name("a.ledger-journal").exists()
        assert Ledger(ledger.path).entries() == before
    assert journals > 1
    ledger.charge(PRICE, {})


@contextmanager
def _disk(folder):
    """A disk of 64 kB."""
    folder.mkdir()
    mount = shutil.which("mount")
    words = [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    if mount is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def _charged(ledger):
    """The entry of a charge, or the sentence that refuses it."""
    try:
        return ledger.charge(PRICE, {})
    except ValueError as error:
        return str(error)


def test_a_full_disk_charges_nothing(tmp_path):
    with _disk(tmp_path / "disk") as disk:
        ledger, filler, refused = Ledger.create(disk / "a.ledger", epsilon=9), disk / "filler", 0
        for free in range(8):  # blocks of the disk; a charge needs some for its journal
            before, room = ledger.entries(), os.statvfs(disk)
            filler.write_bytes(b"x" * (room.f_bavail - free) * room.f_frsize)
            outcome = _charged(ledger)
            if isinstance(outcome, str):
                refused += 1
                assert outcome == f"ledger {ledger.path} must have room on its disk."
                with pytest.raises(ValueError, match=r"^ledger folder must be writable and have room, got .*: .*\.$"):
                    Ledger.create(disk / "b.ledger", epsilon=1)
            assert Ledger(ledger.path).entries() == (before if isinstance(outcome, str) else [*before, outcome])
            filler.unlink()
        assert 1 < refused < 8
        assert [file.name for file in disk.iterdir()] == ["a.ledger"]


# Root may write anywhere, unless it drops that right (24: PR_CAPBSET_DROP, 1 and 2: CAP_DAC_…) and starts anew.
PLAIN_USER = """
import ctypes, os, sys
for right in (1, 2) if sys.platform == "linux" else ():
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
UNWRITABLE = """
import json, os, sys
from fractions import Fraction
from noiseaware.custodian.ledger.ledger import Ledger
from noiseaware.privacy import Pure

path, locked = sys.argv[1:]
told = []
for act in (lambda: Ledger(path).charge(Pure(Fraction(1, 7)), {}), lambda: Ledger.create(path + "2", epsilon=1)):
    try:
        act()
    except ValueError as error:
        told.append(str(error))
print(json.dumps([os.access(locked, os.W_OK), Ledger(path).verify(), told]))
"""


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_what_may_only_be_read_is_not_charged(ledger, locked):
    place = ledger.path if locked == "file" else ledger.path.parent
    before, mode = ledger.entries(), place.stat().st_mode
    place.chmod(mode & ~0o222)
    try:
        words = [sys.executable, "-c", PLAIN_USER, UNWRITABLE, ledger.path, place]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    finally:
        place.chmod(mode)
    assert done.returncode == 0, done.stderr
    writable, count, told = json.loads(done.stdout)
    if writable:
        pytest.skip("this user may write what is read-only")
    assert count == len(before)
    assert told[0] in [f"ledger {ledger.path} and its folder must be {x}writable." for x in ("", "readable and ")]
    assert (
        told[1:]
        == [f"ledger folder must be writable and have room, got {place}: permission denied."][locked == "file" :]
    )
    assert Ledger(ledger.path).entries() == before


def test_a_ledger_that_vanished_is_not_made_anew(ledger):
    kept = ledger.path.rename(ledger.path.with_name("kept"))
    for act in (lambda: ledger.charge(PRICE, {}), lambda: ledger.afford(PRICE), ledger.entries):
        with pytest.raises(ValueError, match=r"must stay where it is, and is gone; put it back"):
            act()
    assert not ledger.path.exists()
    kept.rename(ledger.path)
    assert ledger.verify() == 5
