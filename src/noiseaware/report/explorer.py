"""A local page on which prior, method and level are moved by hand, and the posterior of a release follows.

It is served on the loopback address, under a path that holds a secret, so that no other user of the machine finds it,
and answers to its own page alone: a request with another Host or Origin gets nothing. It holds one release, writes no
file and keeps nothing of what it is asked.
"""

import json
import math
import secrets
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from noiseaware.evidence.release import Release
from noiseaware.posterior.infer import infer
from noiseaware.prior import AbstractPrior
from noiseaware.report.number import shown
from noiseaware.report.page import rendered
from noiseaware.report.plot import curves
from noiseaware.report.posterior_words import cells, exactness, headline
from noiseaware.report.release_words import brief, facts
from noiseaware.sampler.method import METHODS, method_for
from noiseaware.study.plan import Plan, plan

_ADDRESS = "127.0.0.1"
_LONGEST = 10_000  # characters of a question
_POINTS = 240
_COSTS = tuple(10 ** (i / 6) for i in range(-18, 13))  # ε of the planning tab's curve
_POLICY = (
    "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Explorer:
    """Answers to the page's questions, one at a time, since they share the machine."""

    def __init__(self, release: Release, parse: Callable[[str], AbstractPrior]) -> None:
        self.release = release
        self._parse = parse
        self._busy = threading.Lock()
        self._plans: dict[str, Plan] = {}

    def answer(self, path: str, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question; a ValueError says in a sentence what is wrong with it."""
        known = {"/posterior": self._posterior, "/plan": self._plan}
        if path not in known:
            raise ValueError(f"path must be one of {', '.join(known)}, got {shown(path)}.")
        with self._busy:
            return known[path](asked)

    def _posterior(self, asked: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        prior, method, level = self._prior(asked), asked.get("method", "auto"), _number(asked, "level", 0.01, 0.999)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # all that they say is in the answer
            posterior = infer(self.release, prior, method=str(method), seed=0)
        numbers = []
        for number in curves(posterior, {}, level, _POINTS):
            of = {name: _plain(getattr(number, name)) for name in ("x", "posterior", "naive", "prior")}
            of |= {"own": _estimate(number.own), "other": _estimate(number.other)}
            numbers.append({"label": number.label, "is_log": number.is_log, "top": number.top, **of})
        return {
            "numbers": numbers,
            "headline": headline(posterior),
            "method": posterior.method,
            "exactness": exactness(posterior),
            "concerns": list(posterior.concerns),
            "milliseconds": 1000 * (time.perf_counter() - started),
        }

    def _plan(self, asked: dict[str, Any]) -> dict[str, Any]:
        n, epsilon = round(_number(asked, "n", 1, 1e12)), _number(asked, "epsilon", 1e-6, 1e6)
        found = replace(self._start(str(asked.get("prior", ""))), n=n, epsilon=epsilon)
        at = [replace(found, epsilon=cost).width for cost in _COSTS]
        return {
            "widths": [{"name": shown(name), "width": width} for name, width in found.by_parameter.items()],
            "floor": found.floor,
            "records_worth": found.records_worth,
            "curve": {"epsilon": list(_COSTS), "width": at},
        }

    def _prior(self, asked: dict[str, Any]) -> AbstractPrior:
        return self._parse(str(asked.get("prior", "")))

    def _start(self, prior: str) -> Plan:
        """The plan for a prior, kept while the prior stays: its moments take the longest."""
        if prior not in self._plans:
            self._plans = {prior: plan(self.release.family, self._parse(prior), n=1, epsilon=1)}
        return self._plans[prior]


def _number(asked: dict[str, Any], name: str, low: float, high: float) -> float:
    value = asked.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {shown(value)}.")
    return float(value)


def _plain(values) -> list[float]:
    return [float(f"{value:.6g}") if math.isfinite(value) else 0.0 for value in values]


def _estimate(estimate) -> dict[str, Any]:
    mean, _, interval = cells(estimate)
    return {"low": estimate.low, "high": estimate.high, "mean": estimate.mean, "text": f"{mean} ({interval})"}


def _serves(name: str, release: Release) -> bool:
    try:
        method_for(release.evidence(), name)
        return True
    except ValueError:
        return False


def page(release: Release, prior: str, nonce: str) -> str:
    """The page as HTML; what it needs of the release is in it, escaped."""
    methods = [name for name in METHODS if _serves(name, release)]
    return rendered(
        "explore.html",
        brief=brief(release),
        facts=facts(release),
        methods=["auto", *methods],
        start={"prior": prior, "n": release.likely_n},
        nonce=nonce,
    )


class Server(ThreadingHTTPServer):
    """The page and its answers on a port of the loopback address; port 0 takes any that is free."""

    daemon_threads = True

    def __init__(self, release: Release, prior: str, parse: Callable[[str], AbstractPrior], port: int = 0) -> None:
        super().__init__((_ADDRESS, port), _Handler)
        self.explorer = Explorer(release, parse)
        self.nonce = secrets.token_urlsafe(16)
        self.root = f"/{secrets.token_urlsafe(16)}"
        self.page = page(release, prior, self.nonce).encode()

    @property
    def url(self) -> str:
        return f"http://{_ADDRESS}:{self.server_port}{self.root}/"

    @property
    def names(self) -> set[str]:
        """The names by which the page's own requests call the server."""
        return {f"{name}:{self.server_port}" for name in (_ADDRESS, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server  # type: ignore[assignment]
    timeout = 30
    server_version, sys_version = "noiseaware", ""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what is explored is nobody else's business."""

    def do_GET(self) -> None:
        if not self._is_own():
            return self._reply(403)
        if self._asked_path() != "/":
            return self._reply(404)
        return self._reply(200, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        if not self._is_own() or self.headers.get_content_type() != "application/json":
            return self._reply(403)
        path = self._asked_path()
        if path is None:
            return self._reply(404)
        try:
            answer, status = self.server.explorer.answer(path, self._asked()), 200
        except (ValueError, RuntimeError) as error:
            answer, status = {"error": str(error)}, 400
        return self._reply(status, "application/json", json.dumps(answer, allow_nan=False).encode())

    def _is_own(self) -> bool:
        """True if the request comes from the page itself, not from another site that a browser has open."""
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        return host in self.server.names and origin in (None, f"http://{host}")

    def _asked_path(self) -> str | None:
        """Return the path after the secret; None where the secret is wrong."""
        root, path = self.path[: len(self.server.root)], self.path[len(self.server.root) :]
        return path if secrets.compare_digest(root.encode(), self.server.root.encode()) else None

    def _asked(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LONGEST:
            raise ValueError(f"a question must have at most {_LONGEST:,} bytes.")
        try:
            asked = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise ValueError("a question must be JSON.") from None
        if not isinstance(asked, dict):
            raise ValueError("a question must be a JSON object.")
        return asked

    def _reply(self, status: int, kind: str = "text/plain", content: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", _POLICY.format(nonce=self.server.nonce))
        for name, value in (
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
            ("Connection", "close"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
