"""Owns the headers that tell a client where its run is, for reconnecting and for asking again."""

from __future__ import annotations


def run_place(thread_id: str, run_id: str, then: str | None = None) -> dict[str, str]:
    """Returns the headers of a run on a thread.

    `Content-Location` ends with the run's id, since clients read it from there; `Location` is where the same
    answer can be fetched again. Both are relative: clients refuse another origin.

    Args:
        thread_id: its thread.
        run_id: the run.
        then: what to fetch again: "stream" or "join"; None for an answer that is complete.
    """
    return _headers(f"/threads/{thread_id}/runs/{run_id}", then)


def stateless_place(run_id: str, then: str | None = None) -> dict[str, str]:
    """Returns the headers of a run whose thread its client does not know."""
    return _headers(f"/runs/{run_id}", then)


def _headers(path: str, then: str | None) -> dict[str, str]:
    headers = {"Content-Location": path}
    if then is not None:
        headers["Location"] = f"{path}/{then}"
    return headers
