"""The JavaScript lock names versions and hashes; where packages come from is the machine's own setting."""

from __future__ import annotations

import orjson

from tests.clients.node import SCRIPTS


def test_no_download_address() -> None:
    packages = orjson.loads((SCRIPTS / "package-lock.json").read_bytes())["packages"]
    locked = {name: one for name, one in packages.items() if name}
    assert locked
    assert all(one["integrity"] for one in locked.values())
    assert not [name for name, one in locked.items() if "resolved" in one]


def test_pinned() -> None:
    wanted = orjson.loads((SCRIPTS / "package.json").read_bytes())["dependencies"]
    assert all(version[0].isdigit() for version in wanted.values())
