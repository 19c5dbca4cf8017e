"""Which addresses and URLs a webhook may have: public ones, and what the operator allows, in any spelling."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.vocabulary.errors import InvalidRequest
from pipelines.webhooks.addresses import Ports, Reach, check_webhook_url, is_forbidden, parse_address

LOOPBACK = (ip_network("127.0.0.0/8"),)
ANYWHERE = Reach()

FORBIDDEN = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255",
    "127.0.0.1", "127.255.255.254", "161.26.0.11", "166.8.0.1", "166.11.255.255", "168.63.129.16", "169.254.0.23",
    "169.254.0.1", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::7f00:1",
    "64:ff9b:1:ffff::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1", "2001:20::1",
    "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254",
    "fd20:ce::254", "2001:4860::5efe:a9fe:a9fe", "2400:cb00::200:5efe:a00:1", "fdff::1", "fe80::1", "febf::1",
    "fec0::1", "ff02::1", "ff05::2", "1000::1", "4000::1", "8000::1",
]  # fmt: skip

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.254", "100.128.0.1", "126.255.255.255",
    "128.0.0.1", "161.25.255.255", "161.27.0.0", "166.7.255.255", "166.12.0.0", "168.63.129.15", "168.63.129.17",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.167.255.255",
    "192.169.0.1", "198.17.255.255", "198.20.0.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
    "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "2400:cb00::1",
    "2400:cb00::5efe:808:808",
]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_reserved_address_is_forbidden(address: str) -> None:
    assert is_forbidden(ip_address(address), ())


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_and_neighbours_of_reserved_ones_are_allowed(address: str) -> None:
    assert not is_forbidden(ip_address(address), ())


def test_the_operator_may_allow_a_network() -> None:
    assert not is_forbidden(IPv4Address("127.0.0.1"), LOOPBACK)
    assert not is_forbidden(IPv6Address("::1"), (ip_network("::1/128"),))
    assert is_forbidden(IPv4Address("10.0.0.1"), LOOPBACK)


def test_allowing_a_translator_does_not_allow_embedded_private_addresses() -> None:
    nat64 = (ip_network("64:ff9b::/96"),)
    assert not is_forbidden(IPv6Address("64:ff9b::808:808"), nat64)
    assert is_forbidden(IPv6Address("64:ff9b::a9fe:a9fe"), nat64)


@pytest.mark.parametrize("wrap", ["::ffff:{}", "64:ff9b::{}", "::ffff:0:{}", "2002:{1:02x}{2:02x}:{3:02x}{4:02x}::"])
@given(inner=st.ip_addresses(v=4))
def test_allowing_every_ipv6_address_never_allows_a_private_ipv4_one(wrap: str, inner: IPv4Address) -> None:
    wrapped = IPv6Address(wrap.format(inner, *inner.packed))
    assert is_forbidden(wrapped, (ip_network("::/0"),)) == is_forbidden(inner, ())


def test_a_scope_does_not_hide_an_address() -> None:
    assert parse_address("fe80::1%lo") == IPv6Address("fe80::1")


@pytest.mark.parametrize(
    ("url", "retained"),
    [
        ("https://lender.example/hooks", "https://lender.example/hooks"),
        ("https://lender.example", "https://lender.example"),
        ("HTTPS://Lender.Example./Hooks?A=1&b=%2F", "https://lender.example/Hooks?A=1&b=%2F"),
        ("https://lender.example:443/", "https://lender.example:443/"),
        ("https://lender.example:8443/a//b/../c;d", "https://lender.example:8443/a//b/../c;d"),
        ("https://xn--bcher-kva.example:65535/", "https://xn--bcher-kva.example:65535/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700:4700:0::1111]:1024/", "https://[2606:4700:4700::1111]:1024/"),
        ("https://11.0.0.0/", "https://11.0.0.0/"),
        ("https://172.32.0.1/", "https://172.32.0.1/"),
    ],
)
def test_valid_url_is_unchanged_except_for_the_spelling_of_its_host(url: str, retained: str) -> None:
    assert check_webhook_url(url, ANYWHERE) == retained


def code(url: str, reach: Reach = ANYWHERE) -> str:
    with pytest.raises(InvalidRequest) as refused:
        check_webhook_url(url, reach)
    assert [fault.pointer for fault in refused.value.faults] == ["/webhookUrl"]
    return refused.value.code


@pytest.mark.parametrize(
    "url",
    ["http://lender.example/", "ftp://lender.example/", "file:///etc/passwd", "gopher://x/", "data:text/plain,x", "",
     "lender.example/hooks", "//lender.example/hooks", "/hooks", "javascript:alert(1)", "https"],
)  # fmt: skip
def test_only_https_is_allowed(url: str) -> None:
    assert code(url) == "Webhook.UrlNotHttps"


@pytest.mark.parametrize(
    "url",
    [
        *("https:", "https://", "https:///hooks", "https:/hooks", "https:lender.example", "https://?q"),
        *("https://good@127.0.0.1/", "https://u:p@lender.example/", "https://@lender.example/"),
        *("https://127.0.0.1\\@good/", "https://good\\.example/", "https://good#@127.0.0.1/", "https://good/#part"),
        *("https://127.0.0.1\t.example/", "https://lender.\nexample/", " https://lender.example/", "https://a b/"),
        *("https://lender.example/\0", "https://lender.example/\x7f", "https://b\u00fccher.example/"),
        *("https://\uff11\uff12\uff17.0.0.1/", "https://127\u30020.0.1/", "https://lender.example/\ud800"),
        *("https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://0/"),
        *("https://0x7f.0.0.1/", "https://127.0.0.0x1/", "https://1.2.3.4.5/", "https://256.1.1.1/", "https://a.1/"),
        *("https://[fe80::1%25lo]/", "https://[fe80::1%lo]/", "https://[::1/", "https://::1/", "https://[1.2.3.4]/"),
        *("https://%6c%6f/", "https://-a.example/", "https://a..example/", "https://.example/", "https://a*.example/"),
        *("https://lender.example:65536/", "https://lender.example:x/", "https://lender.example:-1/"),
        "https://" + "a" * 64 + ".example/",
        "https://" + "a." * 127 + "example/",
        "https://lender.example/" + "a" * 2048,
    ],
)
def test_malformed_url_is_invalid(url: str) -> None:
    assert code(url) == "Webhook.UrlInvalid"


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_url_with_a_reserved_address_is_forbidden(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    assert code(f"https://{host}/hooks") == "Webhook.UrlForbidden"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost."])
def test_localhost_is_forbidden_under_all_names_unless_loopback_is_allowed(host: str) -> None:
    assert code(f"https://{host}:8443/") == "Webhook.UrlForbidden"
    assert check_webhook_url(f"https://{host}:8443/", Reach(LOOPBACK)).endswith(":8443/")


def test_own_name_is_forbidden() -> None:
    reach = Reach(own_names=["Tidemark-1.lender.example"])
    assert code("https://tidemark-1.lender.example/", reach) == "Webhook.UrlForbidden"


def test_name_that_only_resembles_localhost_is_allowed() -> None:
    assert check_webhook_url("https://localhost.example/", ANYWHERE) == "https://localhost.example/"


@pytest.mark.parametrize("port", [0, 1, 22, 25, 80, 442, 444, 1023, 2375, 3306, 5432, 6379, 9200, 27017])
def test_ports_of_internal_services_are_forbidden(port: int) -> None:
    assert code(f"https://lender.example:{port}/") == "Webhook.UrlForbidden"
    assert not ANYWHERE.allows(IPv4Address("8.8.8.8"), port)


def test_operator_may_set_the_ports() -> None:
    reach = Reach(ports=Ports((range(443, 444), range(6000, 6400))))
    assert check_webhook_url("https://lender.example:6379/", reach) == "https://lender.example:6379/"
    assert code("https://lender.example:8443/", reach) == "Webhook.UrlForbidden"
    assert [reach.allows(IPv4Address("8.8.8.8"), port) for port in (443, 6399, 6400)] == [True, True, False]


def test_own_public_address_is_forbidden_unless_allowed() -> None:
    ours = IPv4Address("8.8.8.8")
    reach = Reach(is_own=ours.__eq__)
    assert (reach.allows_address(ours), reach.allows_address(IPv4Address("8.8.4.4"))) == (False, True)
    assert code("https://8.8.8.8:8443/", reach) == "Webhook.UrlForbidden"
    assert Reach([ip_network("8.8.8.0/24")], is_own=ours.__eq__).allows_address(ours)


@given(url=st.text(max_size=60) | st.text(max_size=40).map("https://".__add__))
def test_any_url_is_accepted_or_refused(url: str) -> None:
    try:
        retained = check_webhook_url(url, ANYWHERE)
    except InvalidRequest:
        return
    assert check_webhook_url(retained, ANYWHERE) == retained


def reads_as_an_address(host: str) -> bool:
    """Return whether the system's resolver reads the host as an address, without a network query."""
    try:
        return bool(socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST))
    except OSError:
        return False


@given(host=st.from_regex(r"\A[0-9a-fx.:%\[\]@]{1,24}\Z") | st.ip_addresses().map(str))
def test_host_that_the_resolver_reads_as_an_address_is_public_or_refused(host: str) -> None:
    try:
        retained = check_webhook_url(f"https://{host}/", ANYWHERE)
    except InvalidRequest:
        return
    name = retained.removeprefix("https://").split("/")[0].strip("[]")
    assert not reads_as_an_address(name) or not is_forbidden(ip_address(name), ())


def test_resolver_reads_unusual_spellings_as_addresses() -> None:
    assert all(reads_as_an_address(host) for host in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0"))
