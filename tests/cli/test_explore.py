"""`noiseaware explore` as a process: it says where it is, answers, and ends with Ctrl-C."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("noiseaware")


def test_it_serves_until_it_is_interrupted(clinic):
    words = [COMMAND, "explore", "ill.json", "--prior", "beta(1, 9)", "--no-browser"]
    before = sorted(clinic.iterdir())
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=clinic) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{22}/", said)
            assert found is not None, said
            with urllib.request.urlopen(found[0], timeout=30) as reply:
                assert b"Explore a release" in reply.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()  # nothing, where it has ended
    assert sorted(clinic.iterdir()) == before


@pytest.mark.parametrize(("option", "is_opened"), [("--browser", True), ("--no-browser", False)])
def test_it_is_at_the_port_that_was_asked_for_and_in_the_browser(option, is_opened, run, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("noiseaware.report.explorer.Server.serve_forever", lambda self: None)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = run("explore", "ill.json", "--prior", "beta(1, 9)", "--port", port, option)
    assert done.exit_code == 0, done.stderr
    assert f"exploring ill.json at http://127.0.0.1:{port}/" in done.stderr
    assert len(opened) == is_opened
    assert all(re.fullmatch(rf"http://127\.0\.0\.1:{port}/[\w-]{{22}}/", url) for url in opened)


def test_refused_in_a_sentence(refused):
    assert "release file must exist" in refused("explore", "none.json", "--prior", "beta(1, 9)")
    assert "prior must be" in refused("explore", "ill.json", "--prior", "gamma(1, 9)", "--no-browser")
