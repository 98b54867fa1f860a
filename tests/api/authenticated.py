"""An `Auth` object as a project has one: the key is the user's name; rows belong to who made them."""

from __future__ import annotations

from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def who(headers: dict[bytes, bytes], authorization: str | None) -> Any:
    name = headers.get(b"x-api-key", b"").decode() or (authorization or "").removeprefix("Bearer ")
    if name not in ("alice", "mallory"):
        raise Auth.exceptions.HTTPException(status_code=401, detail="bad key")
    return {"identity": name, "permissions": ["talk"], "token": f"token-of-{name}"}


@auth.on
async def own(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    metadata: dict[str, Any] = value.setdefault("metadata", {})
    metadata["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}


@auth.on.store
async def own_namespaces(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """Everybody's namespaces are below a label of their own, which they do not see."""
    value["namespace"] = (ctx.user.identity, *(value["namespace"] or ()))
