"""List what a bucket stores besides current objects: earlier versions, and unfinished multipart uploads.

The library of `storage.core.bucket` reads a version but lists none, and no uploads either. So these lists are requests
of our own to S3's REST API, signed with Signature Version 4. Nothing but the search for personal data needs them.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from xml.etree import ElementTree

import obstore
import requests
from obstore.store import S3Store
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from storage.core.lake import ObjectVersion, UnfinishedUpload
from storage.core.settings import AccessKey, Settings

VERSIONS, UPLOADS = "versions", "uploads"
MARKERS = {  # parameters of the next page, and the elements of the last page that have them
    VERSIONS: {"key-marker": "NextKeyMarker", "version-id-marker": "NextVersionIdMarker"},
    UPLOADS: {"key-marker": "NextKeyMarker", "upload-id-marker": "NextUploadIdMarker"},
}
REPEATED = Retry(3, backoff_factor=0.2, status_forcelist=[500, 502, 503, 504], raise_on_status=False)
ANY_PATH = "any"
ALGORITHM = "AWS4-HMAC-SHA256"
NO_CONTENT = hashlib.sha256(b"").hexdigest()
NEEDS_KEY = (
    "listing it needs an access key: pass that of the machine's role as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
    "AWS_SESSION_TOKEN"
)


class BucketListing:
    """Lists below the prefix of a bucket. `library` says where the bucket is.

    All methods raise ConnectionError, with a phrase for the operator, if the bucket can't be reached or refuses.
    """

    def __init__(self, settings: Settings, library: S3Store) -> None:
        self._settings = settings
        self._library = library
        prefix = settings.lake_url.removeprefix("s3://").rstrip("/").partition("/")[2]
        self._prefix = f"{prefix}/" if prefix else ""

    def list_versions(self) -> Iterator[ObjectVersion]:
        """Yield all versions of all objects, in order of key."""
        for page in self._list(VERSIONS):
            for each in page.iterfind("{*}Version"):
                yield ObjectVersion(
                    self._path_of(each),
                    _text(each, "VersionId"),
                    datetime.fromisoformat(_text(each, "LastModified")),
                    is_current=_text(each, "IsLatest") == "true",
                )

    def list_uploads(self) -> Iterator[UnfinishedUpload]:
        """Yield all multipart uploads that were neither completed nor aborted."""
        for page in self._list(UPLOADS):
            for each in page.iterfind("{*}Upload"):
                yield UnfinishedUpload(self._path_of(each), datetime.fromisoformat(_text(each, "Initiated")))

    def _path_of(self, element: ElementTree.Element) -> str:
        return _text(element, "Key").removeprefix(self._prefix)

    def _list(self, what: str) -> Iterator[ElementTree.Element]:
        """Yield the pages of a list."""
        key = self._settings.s3_access_key
        if key is None:
            raise ConnectionError(NEEDS_KEY)
        url, region = locate(self._library, self._prefix)
        query = {what: "", "prefix": self._prefix}
        with requests.Session() as session:
            session.mount(url, HTTPAdapter(max_retries=REPEATED))
            session.auth = lambda request: sign(request, key, region, datetime.now(UTC))
            while query:
                page = self._request(session, url, query)
                yield page
                query |= {name: _text(page, element) for name, element in MARKERS[what].items()}
                if _text(page, "IsTruncated") != "true":
                    return

    def _request(self, session: requests.Session, url: str, query: Mapping[str, str]) -> ElementTree.Element:
        in_order = urlencode(sorted(query.items()), quote_via=quote, safe="-_.~")  # as it must be signed
        try:
            response = session.get(f"{url}?{in_order}", timeout=self._settings.s3_timeout_s, allow_redirects=False)
        except requests.RequestException as error:
            raise ConnectionError(f"the object store can't be reached: {type(error).__name__}") from error
        try:
            page = ElementTree.fromstring(response.content)
        except ElementTree.ParseError as error:
            raise ConnectionError(f"the object store answers with status {response.status_code}") from error
        if response.status_code != requests.codes.ok:
            raise ConnectionError(f"the object store answers with {_text(page, 'Code')}")
        return page


def locate(library: S3Store, prefix: str) -> tuple[str, str]:
    """Return the bucket's address and region. The library knows the styles of addresses, and signs for the prefix."""
    signed = urlsplit(obstore.sign(library, "GET", ANY_PATH, timedelta(minutes=1)))
    region = parse_qs(signed.query)["X-Amz-Credential"][0].split("/")[2]
    return (
        f"{signed.scheme}://{signed.netloc}{signed.path.removesuffix(f'{prefix}{ANY_PATH}').rstrip('/') or '/'}",
        region,
    )


def sign(request: requests.PreparedRequest, key: AccessKey, region: str, now: datetime) -> requests.PreparedRequest:
    """Sign a request without content, whose parameters are in order.

    See "Authenticating Requests: Using the Authorization Header" in the reference of Amazon S3's API.
    """
    url = urlsplit(request.url or "")
    headers = {
        "host": url.netloc,
        "x-amz-content-sha256": NO_CONTENT,
        "x-amz-date": f"{now:%Y%m%dT%H%M%SZ}",
        **({"x-amz-security-token": key.session_token} if key.session_token else {}),
    }
    names = ";".join(headers)
    lines = [f"{name}:{value}" for name, value in headers.items()]
    canonical = "\n".join([request.method or "GET", url.path, url.query, *lines, "", names, NO_CONTENT])
    scope = f"{now:%Y%m%d}/{region}/s3/aws4_request"
    text = "\n".join([ALGORITHM, headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = _digest(_signing_key(key, scope), text).hex()
    authorization = f"{ALGORITHM} Credential={key.id}/{scope},SignedHeaders={names},Signature={signature}"
    request.headers.update({**headers, "authorization": authorization})
    return request


def _signing_key(key: AccessKey, scope: str) -> bytes:
    secret = b"AWS4" + key.secret.get_secret_value().encode()
    for part in scope.split("/"):
        secret = _digest(secret, part)
    return secret


def _digest(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _text(element: ElementTree.Element, name: str) -> str:
    """Return the text of an element's child, whatever the namespace."""
    return element.findtext(f"{{*}}{name}", "")
