"""Owns the call of a webhook: which URLs are allowed, and one POST that cannot be led astray.

The addresses of a name are looked up here and the connection goes to one that was checked: a name that answers
differently the second time, or a redirect, leads nowhere else.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping

import httpx

from adapter.errors import Invalid

_TIMEOUT = httpx.Timeout(20.0, connect=10.0)


class Refused(Exception):
    """The receiver, or this server, says no: calling again will not help."""


class NotThere(Exception):
    """The receiver cannot be reached, or says that it cannot answer now; calling again may help."""


def check(url: str, *, private: bool) -> httpx.URL:
    """Returns a webhook's parsed URL.

    Args:
        url: as the client gave it.
        private: whether this machine and private networks are allowed.

    Raises:
        Invalid: it is not an http or https URL with a host, carries credentials, or names what is not allowed.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise Invalid("webhook: not a URL") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise Invalid("webhook: an absolute http or https URL is needed")
    if parsed.userinfo:
        raise Invalid("webhook: a URL with a user name or password is not taken")
    host = parsed.host.rstrip(".").lower()
    if not private and (host == "localhost" or host.endswith((".localhost", ".local", ".internal"))):
        raise Invalid(_PRIVATE)
    if not private and (address := _literal(host)) is not None and not _public(address):
        raise Invalid(_PRIVATE)
    return parsed


async def post(url: str, body: bytes, *, headers: Mapping[str, str], private: bool) -> int:
    """Calls a webhook once; returns the status it was accepted with.

    Args:
        url: of the receiver.
        body: JSON.
        headers: beside the content type.
        private: see `check`.

    Raises:
        Refused: it is not allowed, or was answered with a redirect or a 4xx other than 408 and 429; not retryable.
        NotThere: no connection, no answer in time, or a 5xx, 408 or 429; retryable.
    """
    try:
        parsed = check(url, private=private)
    except Invalid as exc:
        raise Refused(str(exc)) from None
    address = await _address(parsed, private=private)
    # The connection goes to the address; name, port and certificate stay those of the URL.
    sent = {
        **headers,
        "content-type": "application/json",
        "host": parsed.netloc.decode("ascii"),
    }
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, trust_env=False) as client:
            request = client.build_request(
                "POST",
                parsed.copy_with(host=address),
                content=body,
                headers=sent,
                extensions={"sni_hostname": parsed.raw_host.decode("ascii")},
            )
            answered = await client.send(request, stream=True)  # its body is nobody's
            await answered.aclose()
    except httpx.HTTPError as exc:
        raise NotThere(type(exc).__name__) from None
    status = answered.status_code
    if answered.is_success:
        return status
    if status >= 500 or status in (408, 429):
        raise NotThere(f"answered with {status}")
    raise Refused(f"answered with {status}")


_PRIVATE = "webhook: addresses of this machine and of private networks are not called (TURNS_WEBHOOK_PRIVATE)"


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        # Forms like 127.1 and 2130706433, which a resolver takes for addresses.
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeEncodeError):
        return None


def _public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    # Multicast counts as global.
    return (mapped or address).is_global and not address.is_multicast


async def _address(url: httpx.URL, *, private: bool) -> str:
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as exc:  # the second: one of its labels is too long
        raise NotThere(f"the name is not known: {type(exc).__name__}") from None
    addresses = [str(info[4][0]) for info in found]
    if not private and not all(_public(ipaddress.ip_address(a.partition("%")[0])) for a in addresses):
        raise Refused(_PRIVATE)
    return addresses[0]
