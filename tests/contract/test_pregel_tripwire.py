"""An unsupported LangGraph is refused at start, in one readable line."""

from __future__ import annotations

import pytest
from langgraph.pregel._read import PregelNode  # noqa: TID251 - the tripwire itself

from adapter import _pregel


def test_the_installed_langgraph_is_supported() -> None:
    _pregel.check()


def test_a_langgraph_without_a_used_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(PregelNode, "copy")

    with pytest.raises(RuntimeError, match=r"LangGraph \S+ is not supported: it has no PregelNode.copy"):
        _pregel.check()
