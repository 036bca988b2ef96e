"""`noiseaware explore` as a process: it says where it is, answers, and ends with Ctrl-C."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

COMMAND = Path(sys.executable).with_name("noiseaware")


def test_it_serves_until_it_is_interrupted(clinic):
    words = [COMMAND, "explore", "ill.json", "--prior", "beta(1, 9)", "--no-browser"]
    before = sorted(clinic.iterdir())
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=clinic) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", said)
            assert found is not None, said
            with urllib.request.urlopen(found[0], timeout=30) as reply:
                assert b"Explore a release" in reply.read()
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert sorted(clinic.iterdir()) == before


def test_refused_in_a_sentence(refused):
    assert "release file must exist" in refused("explore", "none.json", "--prior", "beta(1, 9)")
    assert "prior must be" in refused("explore", "ill.json", "--prior", "gamma(1, 9)", "--no-browser")
