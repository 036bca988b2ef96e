"""Real engines for the tests: a PostgreSQL server of their own, and Spark in local mode.

Each is started once a process and stopped with it; where it is not installed, a test that asks for it is skipped.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL server."""
    pytest.importorskip("ibis", reason="PostgreSQL tests need noiseaware[postgres]")
    found = shutil.which("initdb") or (str(_SERVERS[-1]) if _SERVERS else None)
    if found is None:
        pytest.skip("PostgreSQL tests need a PostgreSQL server (package postgresql)")
    programs = Path(found).resolve().parent
    owner = "postgres" if os.geteuid() == 0 else None  # PostgreSQL does not run as root
    with tempfile.TemporaryDirectory(prefix="noiseaware-postgres-") as folder, socket.create_server(("", 0)) as free:
        port = free.getsockname()[1]
        if owner is not None:
            os.chown(folder, pwd.getpwnam(owner).pw_uid, -1)
        free.close()

        def run(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", f"{folder}/data", *arguments]
            subprocess.run(command, check=True, user=owner, cwd=folder, stdout=subprocess.DEVNULL)

        run("initdb", "--auth=trust", "--username=tester", "--encoding=UTF8", "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("pg_ctl", "start", "-w", "-o", options, "-l", f"{folder}/log")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "stop", "-m", "immediate")


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
    session = builder.getOrCreate()
    yield session
    session.stop()
