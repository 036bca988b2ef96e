"""Real engines for the tests: a PostgreSQL server of their own, and Spark in local mode.

Each is started once a process and stopped with it; where it is not installed, a test that asks for it is skipped.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))


class Server:
    """A PostgreSQL server in a folder of its own."""

    def __init__(self, programs: Path, folder: str, port: int) -> None:
        self.programs, self.data, self.port = programs, Path(folder, "data"), port
        self.owner = "postgres" if os.geteuid() == 0 else None  # PostgreSQL does not run as root
        if self.owner is not None:
            os.chown(folder, pwd.getpwnam(self.owner).pw_uid, -1)
        self._run("initdb", "--auth=trust", "--username=tester", "--encoding=UTF8", "--no-sync")

    def url(self, database: str = "postgres", user: str = "tester") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        place = ["-D", str(self.data), "-p", str(self.port), "-k", str(self.data.parent)]
        with open(self.data.parent / "log", "ab") as log:
            command = [str(self.programs / "postgres"), *place, "-c", "listen_addresses=127.0.0.1"]
            self.process = subprocess.Popen(command, user=self.owner, cwd=self.data.parent, stdout=log, stderr=log)
        ready = [str(self.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-d", "postgres"]
        for _ in range(600):
            if self.process.poll() is None and subprocess.run(ready).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError((self.data.parent / "log").read_text()[-2000:])

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGINT: close what is open; SIGQUIT: at once; SIGKILL: as power would."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        self.process.send_signal(how)
        for child in map(int, listed.stdout.split()) if how == signal.SIGKILL else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, how)
        self.process.wait(60)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.data), *arguments]
        subprocess.run(command, check=True, user=self.owner, cwd=self.data.parent, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A PostgreSQL server that runs, with an empty database."""
    found = shutil.which("initdb") or (str(_SERVERS[-1]) if _SERVERS else None)
    if found is None:
        pytest.skip("PostgreSQL tests need a PostgreSQL server (package postgresql)")
    with tempfile.TemporaryDirectory(prefix="noiseaware-postgres-") as folder:
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
        made = Server(Path(found).resolve().parent, folder, port)
        made.start()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL server."""
    for package in ("ibis", "psycopg"):
        pytest.importorskip(package, reason="PostgreSQL tests need noiseaware[postgres]")
    with server() as started:
        yield started.url()


@pytest.fixture(scope="session")
def spark():
    """A Spark session in local mode."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark tests need noiseaware[spark]")
    if shutil.which("java") is None:
        pytest.skip("Spark tests need a Java runtime (package default-jre-headless)")
    settings = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.log.level": "OFF"}
    settings |= {"spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    builder = sql.SparkSession.builder.master("local[2]").appName("noiseaware tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings(action="ignore"):  # JAX warns of the fork by which Java is started
        session = builder.getOrCreate()
    yield session
    session.stop()
