"""Settings of a service: its models by name, its access rules, and its limits."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from pathlib import Path

from ibforecast.core.errors import UsageError, require, require_processes, require_threads

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SHORTEST_TOKEN = 8


@dataclass(frozen=True)
class Settings:
    """The limits of a service.

    `token`, if set, must be sent with requests for data. `hosts` are the host names that requests may use, None for
    any. `max_body` is in bytes; `max_windows` is per request; `max_concurrent` is the number of requests under way at
    a time. `threads` is the number of threads that compute one window: the last bits of a forecast depend on it.
    `workers` is the number of processes; each has these limits, and if there are several, none keeps uploads. At most
    `max_tables` uploads are kept, of `max_unpacked` bytes each. `max_numbers` limits the size of an answer,
    `max_history` the windows of a history. At most `max_waiting` connections may wait for a request. The head of a
    request must arrive within `head_seconds`, its body within `body_seconds`.
    """

    token: str | None = None
    hosts: frozenset[str] | None = None
    max_body: int = 16 * 2**20
    max_windows: int = 256
    max_concurrent: int = 128
    threads: int = 1
    workers: int = 1
    max_tables: int = 16
    max_unpacked: int = 128 * 2**20
    max_numbers: int = 4_000_000
    max_history: int = 4096
    max_waiting: int = 512
    head_seconds: float = 10.0
    body_seconds: float = 30.0

    def __post_init__(self) -> None:
        limits = ("max_body", "max_windows", "max_concurrent", "max_tables", "max_history", "max_waiting")
        require_threads(self.threads)
        require_processes("workers", self.workers)
        for name in limits:
            value = getattr(self, name)
            require(value >= 1, f"{name} must be at least 1", f"{name}={value}", "leave it out for the default")
        for name in ("head_seconds", "body_seconds"):
            value = getattr(self, name)
            require(0 < value < inf, f"{name} must be positive", f"{name}={value}", "leave it out for the default")
        require(
            self.token is None or (len(self.token) >= SHORTEST_TOKEN and self.token.isascii()),
            f"a token must be at least {SHORTEST_TOKEN} plain characters",
            f"{len(self.token or '')} characters",
            'make one with: python -c "import secrets; print(secrets.token_urlsafe())"',
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK


def check_reach(host: str, token: str | None, allow_public: bool) -> None:
    """Refuse to listen to other machines without a token, unless `allow_public`."""
    if not (is_loopback(host) or token or allow_public):
        raise UsageError(
            "a service that others can reach must have a token",
            f"--host {host} and none",
            "set IBFORECAST_TOKEN, or add --allow-public",
        )


def hosts_of(host: str, token: str | None) -> frozenset[str] | None:
    """Return the host names that requests may use; None for any.

    This refuses pages of other sites that point their own host name at this machine.
    """
    return LOOPBACK | {host.lower()} if is_loopback(host) and token is None else None


def named(words: Iterable[str]) -> dict[str, Path]:
    """Return paths by name from words such as "models/town" (called town) or "mine=models/town"."""
    paths: dict[str, Path] = {}
    for word in words:
        prefix, is_named, place = word.partition("=")
        # The name of a folder may contain "=" itself.
        path = Path(place if is_named and not Path(word).exists() else word)
        name = prefix if path != Path(word) else path.resolve().name
        if not name or name in paths:
            raise UsageError("models must have different names", f"{name!r} for {word!r}", "use NAME=PATH")
        paths[name] = path
    return paths
