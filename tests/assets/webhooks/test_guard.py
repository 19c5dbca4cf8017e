"""No forbidden address is ever dialled. The oracle is the interpreter's audit event of `socket.connect`.

The verdicts are a fixed list: they are our decision, and must not change with a Python version's idea of "private".
"""

import json
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path

import psutil
import pytest
import trustme
from yarl import URL

from assets.webhooks import sending
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.webhooks.addresses import Address, Reach, check_webhook_url
from storage.core.own_addresses import owns
from storage.core.settings import Settings
from storage.webhooks.outbox import Attempt
from tests.assets.receivers import Names, answering, post, post_all, proxy_to, receiver, record_dialled, tls

FINE, FORBIDDEN, INVALID, NOT_HTTPS = "fine", "Webhook.UrlForbidden", "Webhook.UrlInvalid", "Webhook.UrlNotHttps"
NAME = "lender.example"
DIALLED, REFUSED, NOT_READ = "connect", "refused", "protocol"  # how a delivery ends; tests connect only to loopback

# A URL, the verdict when a subscription is created for it, and how a delivery to it ends.
VERDICTS: Sequence[tuple[str, str, str]] = [
    ("https://127.0.0.1/", FORBIDDEN, REFUSED),
    ("https://127.255.255.254:8443/", FORBIDDEN, REFUSED),
    ("https://0.0.0.0/", FORBIDDEN, REFUSED),
    ("https://10.0.0.1/", FORBIDDEN, REFUSED),
    ("https://100.64.0.1/", FORBIDDEN, REFUSED),
    ("https://100.100.100.200/", FORBIDDEN, REFUSED),
    ("https://161.26.0.11/", FORBIDDEN, REFUSED),
    ("https://168.63.129.16/", FORBIDDEN, REFUSED),
    ("https://169.254.169.254/", FORBIDDEN, REFUSED),
    ("https://169.254.170.2/", FORBIDDEN, REFUSED),
    ("https://172.16.0.1/", FORBIDDEN, REFUSED),
    ("https://172.31.255.255/", FORBIDDEN, REFUSED),
    ("https://192.0.0.192/", FORBIDDEN, REFUSED),
    ("https://192.168.0.1/", FORBIDDEN, REFUSED),
    ("https://198.18.0.1/", FORBIDDEN, REFUSED),
    ("https://224.0.0.1/", FORBIDDEN, REFUSED),
    ("https://255.255.255.255/", FORBIDDEN, REFUSED),
    ("https://[::]/", FORBIDDEN, REFUSED),
    ("https://[::1]/", FORBIDDEN, REFUSED),
    ("https://[::127.0.0.1]/", FORBIDDEN, REFUSED),
    ("https://[::ffff:127.0.0.1]/", FORBIDDEN, REFUSED),
    ("https://[::ffff:a9fe:a9fe]/", FORBIDDEN, REFUSED),
    ("https://[::ffff:8.8.8.8]/", FORBIDDEN, REFUSED),
    ("https://[::ffff:0:127.0.0.1]/", FORBIDDEN, REFUSED),
    ("https://[64:ff9b::a9fe:a9fe]/", FORBIDDEN, REFUSED),
    ("https://[64:ff9b::808:808]/", FORBIDDEN, REFUSED),
    ("https://[64:ff9b:1::7f00:1]/", FORBIDDEN, REFUSED),
    ("https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", FORBIDDEN, REFUSED),
    ("https://[2001:db8::1]/", FORBIDDEN, REFUSED),
    ("https://[2002:7f00:1::]/", FORBIDDEN, REFUSED),
    ("https://[2002:a9fe:a9fe::1]/", FORBIDDEN, REFUSED),
    ("https://[2001:4860::5efe:a9fe:a9fe]/", FORBIDDEN, REFUSED),
    ("https://[fd00:ec2::254]/", FORBIDDEN, REFUSED),
    ("https://[fd20:ce::254]/", FORBIDDEN, REFUSED),
    ("https://[fe80::1]/", FORBIDDEN, REFUSED),
    ("https://[fe80::a9fe:a9fe]/", FORBIDDEN, REFUSED),
    ("https://[fec0::1]/", FORBIDDEN, REFUSED),
    ("https://[ff02::1]/", FORBIDDEN, REFUSED),
    ("https://[4000::1]/", FORBIDDEN, REFUSED),
    ("https://localhost:8443/", FORBIDDEN, REFUSED),
    ("https://2130706433/", INVALID, NOT_READ),
    ("https://127.1/", INVALID, NOT_READ),
    ("https://0/", INVALID, NOT_READ),
    ("https://0x7f000001/", INVALID, REFUSED),
    ("https://0177.0.0.1/", INVALID, NOT_READ),
    ("https://good@127.0.0.1/", INVALID, REFUSED),
    ("https://[fe80::1%25lo]/", INVALID, REFUSED),
    ("https://8.8.8.8:22/", FORBIDDEN, REFUSED),
    ("https://8.8.8.8:25/", FORBIDDEN, REFUSED),
    ("https://8.8.8.8:6379/", FORBIDDEN, REFUSED),
    ("https://8.8.8.8:0/", FORBIDDEN, REFUSED),
    ("https://8.8.8.8/", FINE, DIALLED),
    ("https://8.8.8.8:8443/", FINE, DIALLED),
    ("https://100.63.255.254/", FINE, DIALLED),
    ("https://100.128.0.1/", FINE, DIALLED),
    ("https://172.15.255.255/", FINE, DIALLED),
    ("https://172.32.0.1/", FINE, DIALLED),
    ("https://11.0.0.0/", FINE, DIALLED),
    ("https://[2606:4700:4700::1111]/", FINE, DIALLED),
]  # fmt: skip

# Only creation refuses these: no subscription stores them, and a delivery judges a name by its addresses.
NO_URLS: Sequence[tuple[str, str]] = [
    ("http://lender.example/", NOT_HTTPS),
    ("ftp://lender.example/", NOT_HTTPS),
    ("file:///etc/passwd", NOT_HTTPS),
    ("gopher://lender.example/", NOT_HTTPS),
    ("data:text/plain,x", NOT_HTTPS),
    ("https://127.0.0.1\\@good.example/", INVALID),
    ("https://good.example#@127.0.0.1/", INVALID),
    ("https://127.0.0.1\t.example/", INVALID),
    ("https://good.\nexample/", INVALID),
    ("https://8.8.8.8:65536/", INVALID),
    ("https://localhost.:8443/", FORBIDDEN),
    ("https://anything.localhost/", FORBIDDEN),
    (f"https://{socket.gethostname()}:8443/", FORBIDDEN),
]


@pytest.fixture
def settings(ca: trustme.CA, tmp_path: Path) -> Settings:
    bundle = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    return Settings(home=tmp_path, webhook_ca_bundle=bundle, webhook_timeout_s=2)


def allowing(settings: Settings, *networks: str) -> Settings:
    return settings.model_copy(update={"webhook_allow_cidrs": tuple(map(ip_network, networks))})


def verdict(url: str, reach: Reach) -> str:
    try:
        check_webhook_url(url, reach)
    except InvalidRequest as refusal:
        return refusal.code
    return FINE


def host_of(url: str) -> str:
    return str(URL(url).host)


def test_subscriptions_are_accepted_for_exactly_these_urls(settings: Settings) -> None:
    expected = [(url, code) for url, code, _ in VERDICTS] + list(NO_URLS)
    with record_dialled() as addresses:
        assert [(url, verdict(url, settings.webhook_reach)) for url, _ in expected] == expected
    assert addresses == []


def test_deliveries_go_to_exactly_these_urls(settings: Settings) -> None:
    """The check at the subscription's creation is skipped, because the guard must work without it."""
    with record_dialled() as addresses:
        attempts = post_all(settings, [url for url, *_ in VERDICTS])
    ended = [(url, attempt.error) for (url, *_), attempt in zip(VERDICTS, attempts, strict=True)]
    assert ended == [(url, end) for url, _, end in VERDICTS]
    assert set(addresses) == {host_of(url) for url, _, end in VERDICTS if end == DIALLED}


def test_deliveries_through_a_proxy_go_to_exactly_these_urls(settings: Settings) -> None:
    """With a proxy the resolver interprets unusual spellings: `127.1` is refused because of its address."""
    with receiver(None, lambda _: None) as there, proxy_to(there.port) as proxy:
        through = settings.model_copy(update={"webhook_proxy": proxy.url})
        inside = [url for url, _, end in VERDICTS if end != DIALLED]
        assert {attempt.error for attempt in post_all(through, inside)} == {REFUSED}
        assert proxy.asked == []


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_other_python_versions_give_the_same_verdicts(version: str) -> None:
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"no Python {version} here to compare with")
    asked = [url for url, *_ in VERDICTS] + [url for url, _ in NO_URLS]
    program = "import json, sys; from pipelines.webhooks.addresses import *\n"
    program += "from pipelines.vocabulary.errors import InvalidRequest\n"
    program += "def verdict(url):\n try: check_webhook_url(url, Reach())\n except InvalidRequest as e: return e.code\n"
    program += f" return {FINE!r}\n"
    program += "print(json.dumps([verdict(url) for url in json.load(sys.stdin)]))"
    reported = subprocess.run(
        [python, "-c", program], input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert json.loads(reported) == [verdict(url, Reach()) for url in asked]


@pytest.mark.parametrize("port_is_open", [True, False])
def test_a_refusal_does_not_reveal_whether_the_port_is_open(settings: Settings, port_is_open: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        if not port_is_open:
            listening.close()
        reported = asdict(post(settings, f"https://127.0.0.1:{port}/"))
    shown = {name: reported[name] for name in ("status_code", "error", "response_head", "connect_ms", "tls_ms")}
    assert shown == {"status_code": None, "error": REFUSED, "response_head": None, "connect_ms": None, "tls_ms": None}


@pytest.mark.parametrize("addresses", [("10.0.0.1", "127.0.0.1"), ("127.0.0.1", "10.0.0.1")])
def test_only_the_public_address_of_a_name_is_dialled(
    ca: trustme.CA, settings: Settings, addresses: Sequence[str]
) -> None:
    open_loopback = allowing(settings, "127.0.0.0/8")
    with receiver(tls(ca, "mixed.example"), answering("200 OK")) as there, record_dialled() as seen:
        attempt = post(open_loopback, f"https://mixed.example:{there.port}/", Names(addresses))
    assert (attempt.status_code, seen) == (200, ["127.0.0.1"])


def test_a_name_that_becomes_private_after_the_subscription_is_refused(settings: Settings) -> None:
    assert verdict("https://rebound.example/", settings.webhook_reach) == FINE
    with record_dialled() as seen:
        attempt = post(settings, "https://rebound.example/", Names(["192.168.0.1", "10.0.0.1", "fd00::1"]))
    assert (attempt.error, seen) == (REFUSED, [])


def test_a_name_with_changing_addresses_is_judged_by_the_dialled_one(settings: Settings) -> None:
    names = Names([["8.8.8.8"], ["127.0.0.1"], ["169.254.169.254"], ["11.0.0.0"]])
    with record_dialled() as seen:
        ends = [post(settings, "https://fickle.example/", names).error for _ in range(4)]
    assert (ends, seen) == ([DIALLED, REFUSED, REFUSED, DIALLED], ["8.8.8.8", "11.0.0.0"])


def test_every_address_of_this_machine_is_recognised() -> None:
    listed = (
        each.address
        for interface in psutil.net_if_addrs().values()
        for each in interface
        if each.family != psutil.AF_LINK
    )
    own = [ip_address(address) for address in listed if "%" not in address]
    assert own
    assert all(map(owns, own))
    assert not any(map(owns, map(ip_address, ("8.8.8.8", "11.0.0.0", "2606:4700:4700::1111"))))


def test_this_machines_own_public_address_is_not_dialled() -> None:
    def is_own(address: Address) -> bool:
        return str(address) == "8.8.8.8"

    make = sending.guarded_socket(Reach(is_own=is_own).allows)
    with pytest.raises(sending.RefusedAddressError):
        make((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("8.8.8.8", 443)))
    make((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("8.8.4.4", 443))).close()


def test_only_ports_in_the_settings_are_dialled(ca: trustme.CA, settings: Settings) -> None:
    with receiver(tls(ca), answering("200 OK")) as there:
        open_loopback = allowing(settings, "127.0.0.0/8")
        narrow = Settings(**open_loopback.model_dump(exclude={"webhook_ports"}), webhook_ports="443,9000-9010")
        assert post(narrow, there.url).error == REFUSED
        assert there.connections == 0
        assert post(open_loopback, there.url).status_code == 200


@dataclass(frozen=True)
class Outcome:
    """The outcome of one delivery through a proxy."""

    attempt: Attempt
    asked: Sequence[bytes]
    requests: Sequence[bytes]


def through_a_proxy(
    ca: trustme.CA, settings: Settings, names: Names, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n", name: str = NAME
) -> Outcome:
    """Deliver to NAME through a proxy that connects to a receiver with a certificate for `name`."""
    with receiver(tls(ca, name), answering("202 Accepted")) as there, proxy_to(there.port, answer) as proxy:
        through = settings.model_copy(update={"webhook_proxy": proxy.url})
        attempt = post(through, f"https://{NAME}/hooks", names)
        return Outcome(attempt, proxy.asked, there.requests)


def test_a_proxy_is_asked_for_a_tunnel_and_sees_only_ciphertext(ca: trustme.CA, settings: Settings) -> None:
    reported = through_a_proxy(ca, settings, Names(["8.8.8.8"]))
    assert (reported.attempt.status_code, reported.attempt.error, len(reported.requests)) == (202, None, 1)
    (asked,) = reported.asked
    assert asked.startswith(b"CONNECT lender.example:443 HTTP/1.1\r\n")
    assert b"signature" not in asked.lower()
    assert None not in (reported.attempt.connect_ms, reported.attempt.tls_ms, reported.attempt.first_byte_ms)


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["169.254.169.254", "8.8.8.8"]])
def test_a_proxy_is_not_asked_for_a_name_with_any_forbidden_address(
    ca: trustme.CA, settings: Settings, addresses: Sequence[str]
) -> None:
    """The proxy resolves the name again, and might use the forbidden address."""
    reported = through_a_proxy(ca, settings, Names(addresses))
    assert (reported.attempt.error, reported.asked) == (REFUSED, [])


def test_a_proxy_is_not_asked_for_an_unknown_name(ca: trustme.CA, settings: Settings) -> None:
    reported = through_a_proxy(ca, settings, Names([]))
    assert (reported.attempt.error, reported.asked) == ("dns", [])


@pytest.mark.parametrize("status", [b"403 Forbidden", b"407 Proxy Authentication Required", b"502 Bad Gateway"])
def test_a_refusal_by_the_proxy_is_a_connect_failure(ca: trustme.CA, settings: Settings, status: bytes) -> None:
    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
    reported = through_a_proxy(ca, settings, Names(["8.8.8.8"]), answer)
    assert (reported.attempt.error, reported.attempt.status_code, reported.requests) == ("connect", None, [])


def test_a_proxy_that_connects_to_another_host_is_not_trusted(ca: trustme.CA, settings: Settings) -> None:
    reported = through_a_proxy(ca, settings, Names(["8.8.8.8"]), name="another.example")
    assert (reported.attempt.error, [request for request in reported.requests if request]) == ("tls", [])


def test_neither_proxies_nor_credentials_come_from_the_environment(
    ca: trustme.CA, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login canary password canary\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with receiver(tls(ca), answering("200 OK")) as there, proxy_to(there.port) as proxy:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert post(allowing(settings, "127.0.0.0/8"), there.url).status_code == 200
        assert proxy.asked == []
    assert b"authorization" not in there.requests[0].lower()
