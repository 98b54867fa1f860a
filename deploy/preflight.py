"""Owns the checks before anything starts: a wrong set-up ends in one line, not in a half-started stack."""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from adapter.errors import ConfigError


def refuse_public(host: str, *, allowed: bool, authenticated: bool) -> None:
    """Refuses to listen beyond this machine when nobody is asked who they are.

    Raises:
        ConfigError: the address is not a loopback address, no authentication is configured, and the operator did
            not insist.
    """
    if not (allowed or authenticated or is_loopback(host)):
        raise ConfigError(
            f"host {host} is reachable from other machines and no authentication is configured; set "
            'TURNS_API_KEYS or "auth" in the project file, listen on 127.0.0.1, or set TURNS_ALLOW_PUBLIC=1 behind a '
            "proxy that authenticates"
        )


def is_loopback(host: str) -> bool:
    """Tells whether an address is this machine's alone; a name other than localhost counts as public."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int, flag: str) -> socket.socket:
    """Returns a socket bound to the address, which is the check that the port is free.

    Raises:
        ConfigError: it is not; the message names the flag that moves it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do; TIME_WAIT is not "in use"
    try:
        made.bind((host, port))
    except OSError as exc:  # a name that does not resolve is one too
        made.close()
        if exc.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} is in use; stop what uses it, or pass another {flag}") from None
        raise ConfigError(f"cannot listen on {host}, port {port}: {exc.strerror}") from None
    return made


class DataDirLock:
    """One supervisor a data directory. The kernel gives the lock back when the process ends, however it ends.

    Raises:
        ConfigError: another supervisor holds it, or the directory cannot be written.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def __enter__(self) -> Self:
        path = self._data_dir / "lock"
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            raise ConfigError(
                f"data directory {self._data_dir}: {exc.strerror}; pass another --data-dir"
            ) from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise ConfigError(
                f"another `turns dev` (pid {holder}) runs on {self._data_dir}; "
                "stop it, or pass another --data-dir"
            ) from None
        os.ftruncate(self._fd, 0)
        os.write(self._fd, f"{os.getpid()}\n".encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


def holder_of(data_dir: Path) -> int | None:
    """Returns the pid of the supervisor that runs on this data directory, or None."""
    try:
        with (data_dir / "lock").open("r", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                return int(text) if text.isdecimal() else -1
    except OSError:
        pass
    return None
