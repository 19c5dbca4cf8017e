"""A small OpenID Connect provider on loopback, which says about people what a test wants."""

import hashlib
import json
import secrets
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from time import time
from typing import Any
from urllib.parse import parse_qs, urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "tidemark", "correct horse"
KEY, STRANGE_KEY = (RSAKey.generate_key(2048, {"kid": "one"}) for _ in range(2))
Start = Callable[[str, list[tuple[str, str]]], object]


@dataclass
class Provider:
    issuer: str
    signs_with: RSAKey = field(default_factory=lambda: KEY)
    described_as: dict[str, object] = field(default_factory=dict)  # instead of the truth
    _codes: dict[str, tuple[dict[str, str], dict[str, object]]] = field(default_factory=dict)

    def confirm(self, address: str, **claims: object) -> str:
        """Confirm who the person is that a browser was sent here for; return the code for the way back.

        Args:
            claims: instead of the true ones; None leaves one out.
        """
        asked = {name: value for name, [value] in parse_qs(urlsplit(address).query).items()}
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert (asked["scope"], asked["code_challenge_method"]) == ("openid email", "S256")
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked, claims
        return code

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        answers = {"/.well-known/openid-configuration": self._describe, "/keys": self._keys}
        path = environ["PATH_INFO"]
        status, answer = (200, answers[path]()) if path in answers else self._token(environ)
        start(f"{status} -", [("content-type", "application/json")])
        return [json.dumps(answer).encode()]

    def _describe(self) -> dict[str, object]:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        addresses = {name: f"{self.issuer}/{place}" for name, place in places.items()}
        return {"issuer": self.issuer} | addresses | self.described_as

    def _keys(self) -> dict[str, object]:
        return {"keys": [KEY.as_dict(private=False)]}

    def _token(self, environ: Mapping[str, Any]) -> tuple[int, dict[str, object]]:
        """Exchange a code, once, for whoever proves to be the client that asked for it."""
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()
        sent = {name: value for name, [value] in parse_qs(body).items()}
        client = b64decode(environ["HTTP_AUTHORIZATION"].removeprefix("Basic ")).decode()
        asked, claims = self._codes.pop(sent["code"], ({}, {}))
        challenge = urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).decode().rstrip("=")
        is_good = (challenge, sent["redirect_uri"]) == (asked.get("code_challenge"), asked.get("redirect_uri"))
        if not is_good or client.replace("+", " ").replace("%20", " ") != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return 400, {"error": "invalid_grant"}
        now = int(time())
        true = {"iss": self.issuer, "sub": "1", "aud": CLIENT_ID, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        claimed = {name: value for name, value in (true | claims).items() if value is not None}
        id_token = jwt.encode({"alg": "RS256", "kid": "one"}, claimed, self.signs_with)
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": id_token}


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        pass


@contextmanager
def answering_provider() -> Iterator[Provider]:
    """Run a provider until the end."""
    with make_server("127.0.0.1", 0, lambda *_: [], WSGIServer, _Quiet) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}")
        server.set_app(provider)
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield provider
        server.shutdown()
        thread.join(10)
