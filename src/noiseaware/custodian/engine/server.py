"""Connections to a PostgreSQL server, which must answer in time, and is sent no password in clear text.

libpq asks a server for TLS and goes on without it where the server says no. Whoever answers in the server's place can
say no and ask for the password itself; so a host that is not this machine is not sent one, unless the URL says that
there must be TLS. A password that is proved, as SCRAM does, is not sent.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any

PATIENCE = {  # a server that cannot be reached, or accepts and is silent, is an error within half a minute
    "connect_timeout": "15",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_WITH_TLS = ("require", "verify-ca", "verify-full")
_REQUIRE_AUTH = 160_000  # the version of libpq that knows it


def settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return connection settings of the client library; those that a person has given stand."""
    import psycopg  # pyright: ignore[reportMissingImports]

    known = psycopg.pq.Conninfo.get_defaults()  # the environment's too
    taken = {option.keyword.decode(): option.val.decode() for option in known if option.val is not None} | dict(given)
    safe: dict[str, Any] = {}
    if not (_is_local(taken) or taken.get("sslmode") in _WITH_TLS or "require_auth" in taken):
        can_require = psycopg.pq.version() >= _REQUIRE_AUTH
        safe = {"require_auth": "!password"} if can_require else {"sslmode": "require"}
    return {"application_name": "noiseaware"} | PATIENCE | safe | dict(given)


def _is_local(taken: Mapping[str, Any]) -> bool:
    """True if the server is on this machine for certain: by a socket of its, or by a loopback address."""
    hosts = [host for key in ("host", "hostaddr") for host in str(taken.get(key) or "").split(",") if host]
    return "service" not in taken and all(_is_loopback(host) for host in hosts)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, or the folder of a socket
        return host == "localhost" or host.startswith(("/", "@"))
