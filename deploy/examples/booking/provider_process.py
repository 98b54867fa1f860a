"""Owns starting the provider, and the one provider that the worker processes of a machine share.

Whoever needs the shared provider first starts it; the others find it through a file with its URL. It is not
part of its starter's fate: a worker may be killed in the middle of a charge, and the provider goes on, as one
at the other end of the internet would. It stops by itself some seconds after its last user is gone.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

PROVIDER = Path(__file__).with_name("provider.py")
START_SECONDS = 20.0


class ProviderDidNotStart(Exception):
    """The provider's process ended, or said nothing, before it listened. Retryable."""


@dataclass(frozen=True)
class ProviderProcess:
    """A provider that listens at `url`."""

    url: str
    process: subprocess.Popen[str]


def start(ledger: Path, *options: str, log: Path | None = None) -> ProviderProcess:
    """Starts a provider on a free port and waits until it listens.

    Args:
        ledger: its ledger file; what it has recorded there before, it still knows.
        options: further options of `booking/provider.py`.
        log: file that takes its stderr; this process's own stderr without one.

    Raises:
        ProviderDidNotStart: Usually because another provider has the ledger.
    """
    command = [sys.executable, str(PROVIDER), "--port", "0", "--ledger", str(ledger), *options]
    stderr = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # A session of its own: Ctrl-C in the terminal stops the workers, which may still need it to finish.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True
        )
    finally:
        if stderr is not None:
            os.close(stderr)
    assert process.stdout is not None
    with process.stdout as stdout:
        said_something = select.select([stdout], [], [], START_SECONDS)[0]
        url = stdout.readline().strip() if said_something else ""
    if not url:
        process.kill()
        raise ProviderDidNotStart(
            f"the provider of {ledger} exited with {process.wait()}; see {log or 'stderr'}"
        )
    return ProviderProcess(url, process)


_guard = threading.Lock()  # guards the two below; held while a provider is looked for, so one thread looks
_urls: dict[Path, str] = {}
_locks: dict[Path, int] = {}  # kept open for this process's life: that is what makes it a user


def shared_url(data_dir: Path) -> str:
    """Returns the URL of the provider that all processes with this data directory share; starts it if needed.

    Blocks, for about a second when the provider has to be started: call it from a thread.

    Raises:
        ProviderDidNotStart: It could not be started; its log is in the data directory.
    """
    data_dir = data_dir.resolve()
    with _guard:
        if data_dir not in _urls:
            _urls[data_dir] = _find_or_start(data_dir)
        return _urls[data_dir]


def forget(data_dir: Path) -> None:
    """Forgets the shared provider's URL, so that the next use looks whether it is still alive."""
    with _guard:
        _urls.pop(data_dir.resolve(), None)


def _find_or_start(data_dir: Path) -> str:
    data_dir.mkdir(parents=True, exist_ok=True)
    ledger = data_dir / "booking-ledger.jsonl"
    url_file = data_dir / "booking-provider.url"
    users = data_dir / "booking-provider.users"
    log = data_dir / "booking-provider.log"
    deadline = time.monotonic() + START_SECONDS
    with (data_dir / "booking-provider.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        _become_user(data_dir, users)
        while True:
            url = _live_url(url_file, ledger)
            if url is not None:
                return url
            try:
                started = start(ledger, "--url-file", str(url_file), "--users", str(users), log=log)
            except ProviderDidNotStart:
                # A provider that nobody waited for (its starter was killed) may be about to write its URL,
                # and one that is stopping has the ledger until it has answered its last request.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                # Reaps it when it ends, which may be long before this process does.
                threading.Thread(target=started.process.wait, daemon=True).start()
                return started.url


def _become_user(data_dir: Path, users: Path) -> None:
    """Counts this process as a user until it ends; waits for a provider that has decided to stop."""
    if data_dir not in _locks:
        file = os.open(users, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        _locks[data_dir] = file


def _live_url(url_file: Path, ledger: Path) -> str | None:
    """Returns the URL in the file if this ledger's provider is what answers there."""
    try:
        url = url_file.read_text().strip()
        answer = httpx.get(f"{url}/health", timeout=2.0, trust_env=False)
        return url if answer.json() == {"ledger": str(ledger)} else None
    except (FileNotFoundError, httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
