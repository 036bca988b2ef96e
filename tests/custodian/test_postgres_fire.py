"""The ledger in PostgreSQL under fire: connections that break at any byte, answers that are lost, servers that die."""

import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from fractions import Fraction
from urllib.parse import urlsplit

import pandas as pd
import pytest
from tests.engines import server

import noiseaware as na
from noiseaware.custodian.ledger.ledger import Ledger
from noiseaware.privacy import Pure

PRICE = Pure(Fraction(1, 7))
WHAT = {"table": "clinic.csv"}
UNKNOWN = r"lost its server while it was written, so that the entry may or may not stand; nothing was released\.$"


@pytest.fixture
def ledger(schemas):
    return Ledger.create(schemas.place(), epsilon=9)


@contextmanager
def proxy(url, cut):
    """The URL of a door to the server, which closes "before" or "after" a message of which `cut` says so."""
    target, threads = (urlsplit(url).hostname, urlsplit(url).port), []

    def pump(client):
        sent = 0
        with client, socket.create_connection(target) as upstream, suppress(OSError):
            while True:
                for source in select.select([client, upstream], [], [])[0]:
                    chunk = source.recv(65536)
                    if source is client:
                        when, sent = cut(sent, chunk), sent + len(chunk)
                        if not chunk or when == "before":
                            return
                        upstream.sendall(chunk)
                        if when == "after":
                            upstream.recv(1)  # the server has done what it was told
                            return
                    elif not chunk:
                        return
                    else:
                        client.sendall(chunk)

    def serve():
        while True:
            client, _ = door.accept()
            if is_closing.is_set():
                client.close()
                return
            threads.append(threading.Thread(target=pump, args=[client]))
            threads[-1].start()

    is_closing = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = threading.Thread(target=serve)
        server.start()
        try:
            yield url.replace(f":{target[1]}", f":{door.getsockname()[1]}")
        finally:
            is_closing.set()
            socket.create_connection(door.getsockname()).close()
            for thread in (server, *threads):
                thread.join()


@pytest.mark.parametrize(("when", "count"), [("before", 0), ("after", 1)])
def test_a_commit_whose_answer_is_lost_releases_nothing(ledger, schemas, when, count, monkeypatch):
    """Whether the entry stands is not known, and it may: nothing is drawn either way."""
    is_charging = threading.Event()
    charge = Ledger.charge

    def charging(*arguments):
        is_charging.set()
        return charge(*arguments)

    def cut(sent, chunk):
        return when if is_charging.is_set() and b"commit\0" in chunk else None

    monkeypatch.setattr(Ledger, "charge", charging)
    monkeypatch.setattr("noiseaware.custodian.grid.draw", lambda *_, **__: pytest.fail("noise was drawn"))
    with proxy(schemas.place(), cut) as url, pytest.raises(ValueError, match=UNKNOWN):
        na.release(pd.DataFrame({"x": [1, 0]}), na.family.Bernoulli("x"), epsilon=1, ledger=url)
    assert is_charging.is_set()
    assert ledger.verify() == count


def _outcome(url):
    try:
        return Ledger(url).charge(PRICE, WHAT)
    except ValueError as error:
        return str(error)


def test_a_connection_cut_at_any_message_is_a_sentence(ledger, schemas):
    """What returns was charged; what was charged may have raised."""
    returned, raised, places = 0, 0, range(0, 3000, 40)
    for place in places:
        with proxy(schemas.place(), lambda sent, _, place=place: "before" if sent >= place else None) as url:
            outcome = _outcome(url)
        returned += not isinstance(outcome, str)
        raised += isinstance(outcome, str) and outcome.startswith("ledger postgresql://")
        assert isinstance(outcome, str) or outcome in ledger.entries()
    assert returned + raised == len(places)
    assert raised > 10
    assert ledger.verify() == returned  # a message that was not sent was not acted upon


WORKER = """
import os, sys, time
from fractions import Fraction
from noiseaware.custodian.ledger.ledger import Ledger, LedgerRefusal
from noiseaware.privacy import Pure

url, published = sys.argv[1:]
file = os.open(published, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
ledger = None
while True:
    try:
        ledger = ledger or Ledger(url)
        os.write(file, f"{ledger.charge(Pure(Fraction(1, 7)), {}).id}\\n".encode())
    except LedgerRefusal:
        break
    except ValueError as error:
        if "must hold" in str(error):
            raise
        time.sleep(0.02)
"""


def _survived(rounds, budget, seed, folder):
    """Workers charge until nothing is left, while the server is killed or stopped so many times."""
    rng = random.Random(seed)
    with server() as started:
        ledger = Ledger.create(started.url(), epsilon=budget * PRICE.epsilon)
        words = [sys.executable, "-c", WORKER, started.url()]
        workers = [subprocess.Popen([*words, folder / f"{i}.published"]) for i in range(3)]
        for _ in range(rounds):
            time.sleep(rng.uniform(0.2, 0.8))
            started.stop(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGQUIT, signal.SIGINT]))
            with pytest.raises(ValueError, match="must be on a server that answers"):
                ledger.charge(PRICE, WHAT)
            started.start()
            assert ledger.verify() <= budget
        assert [worker.wait(120) for worker in workers] == [0] * 3
        published = [line for file in folder.glob("*.published") for line in file.read_text().split()]
        entries = [entry.id for entry in ledger.entries()]
        assert len(entries) == budget
        assert set(published) <= set(entries)
        assert len(published) == len(set(published))
        assert len(entries) - len(published) <= 3 * rounds  # wasted: at most one a worker and a kill


def test_a_server_that_is_killed_forgets_nothing(postgres, tmp_path, seed):
    _survived(2, 60, seed, tmp_path)


@pytest.mark.slow
def test_a_server_that_is_killed_twenty_times_forgets_nothing(postgres, tmp_path, seed):
    _survived(20, 1500, seed, tmp_path)


def test_a_server_that_keeps_nothing_is_not_charged(postgres):
    with server() as started:
        ledger = Ledger.create(started.url(), epsilon=1)
        started.stop(signal.SIGINT)
        with open(started.data / "postgresql.conf", "a") as file:
            file.write("\nfsync = off\n")
        started.start()
        assert ledger.verify() == 0
        with pytest.raises(ValueError, match="must be on a server with fsync = on, which keeps what it was told"):
            ledger.charge(PRICE, WHAT)
