"""Who may ask: Host, Origin and token are checked, and bodies limited, before anything else.

A page on another site, opened in the user's browser, can send requests to 127.0.0.1.  It cannot
choose the headers that the browser adds, though.  ``Host`` has the name in the address, so a name
that was made to point to this machine (DNS rebinding) is refused; ``Origin`` and
``Sec-Fetch-Site`` tell where the page is from, so requests of other sites are refused.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response

from bittern.checks import whole_number
from bittern.web.failures import answer_to
from bittern.web.refusal import Refusal

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "bittern_token"
PATIENCE, SLOWEST = 20.0, 10_000  # seconds for a body, and one more for so many bytes
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": CONTENT_POLICY,
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """An application in front of another, which lets only allowed requests through.

    ``hosts`` are the names that ``Host`` may have, with any port; None allows every name, which is
    for servers with a token.
    """

    def __init__(
        self, app: App, hosts: Collection[str] | None, token: str | None, most_bytes: int
    ) -> None:
        self._app, self._token, self._most_bytes = app, token, most_bytes
        self._hosts = None if hosts is None else {name.lower().strip("[]") for name in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, then pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        response: Response | None
        try:
            self._check_host(headers)
            _check_origin(scope["method"], headers)
            response = self._check_token(scope, headers)
            self._check_length(headers)
        except Refusal as refusal:
            response = answer_to(refusal)
        sent = _with_safe_headers(send)
        if response is not None:
            await response(scope, receive, sent)
            return
        await self._app(scope, _limited(receive, self._most_bytes), sent)

    def _check_host(self, headers: Headers) -> None:
        names = headers.getlist("host")
        if len(names) != 1 or not names[0]:
            raise Refusal(400, "The request must have one Host header.")
        if self._hosts is not None and host_name(names[0]) not in self._hosts:
            raise Refusal(
                403, f"This server does not answer for the host {names[0][:100]!r}; use 127.0.0.1."
            )

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a wrong token; move a right one from the address into a cookie."""
        if self._token is None:
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_right(given.strip()):
            return None
        if self._is_right(_cookie(headers.get("cookie", ""))):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and self._is_right(dict(query).get("token", "")):
            return _redirect_without_token(scope, query, self._token)
        raise Refusal(
            401, "This server needs its token, in the header 'Authorization: Bearer TOKEN'."
        )

    def _is_right(self, given: str) -> bool:
        token = self._token or ""
        return bool(token) and hmac.compare_digest(given.encode(), token.encode())

    def _check_length(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        number = whole_number(length)
        if length.isdigit() and (number is None or number > self._most_bytes):
            raise _too_large(self._most_bytes)


def host_name(netloc: str) -> str:
    """The name in ``name:port``, in small letters and without the brackets of IPv6; "" if bad."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


def _check_origin(method: str, headers: Headers) -> None:
    """Refuse what a page of another site asks, unless the user follows a link from there."""
    site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
    is_link = method == "GET" and mode == "navigate" and headers.get("sec-fetch-dest") == "document"
    if site not in (None, "same-origin", "none") and not is_link:
        raise Refusal(403, "Pages of other sites may not use this server.")
    ours = [f"{scheme}://{headers['host']}" for scheme in ("http", "https")]
    if any(origin not in ours for origin in headers.getlist("origin")):
        raise Refusal(403, "Pages of other sites may not use this server.")


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _redirect_without_token(scope: Scope, query: list[tuple[str, str]], token: str) -> Response:
    rest = urlencode([(name, value) for name, value in query if name != "token"])
    path = "/" + quote(scope["path"].lstrip("/"))  # "//name" would lead to another host
    response = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
    return response


def _with_safe_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _limited(receive: Receive, most_bytes: int) -> Receive:
    """The same, but fails when the body is longer than is allowed, or comes too slowly."""
    n, begin, is_more = 0, time.monotonic(), True

    async def received() -> MutableMapping[str, Any]:
        nonlocal n, is_more
        if not is_more:  # what comes next is that the client is gone
            return await receive()
        try:
            async with asyncio.timeout(begin + PATIENCE + n / SLOWEST - time.monotonic()):
                message = await receive()
        except TimeoutError:
            raise Refusal(408, "The request came too slowly.") from None
        n, is_more = n + len(message.get("body", b"")), message.get("more_body", False)
        if n > most_bytes:
            raise _too_large(most_bytes)
        return message

    return received


def _too_large(most_bytes: int) -> Refusal:
    return Refusal(413, f"A request may have at most {most_bytes:,} bytes.")
