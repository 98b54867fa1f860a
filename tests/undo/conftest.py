"""A provider without a past for every test."""

from __future__ import annotations

import pytest

from tests.undo import booked


@pytest.fixture(autouse=True)
def provider() -> None:
    booked.reset_provider()
