"""How a bucket is asked for lists. What is listed: `tests.storage.operations.test_personal_data`."""

from datetime import UTC, datetime, timedelta

import pytest
import requests
from pydantic import SecretStr

from storage.core.bucket import connect
from storage.core.bucket_listing import locate, sign
from storage.core.settings import AccessKey, Settings

# "Signature Calculations for the Authorization Header" in the reference of Amazon S3's API: its two GETs of a bucket.
KEY = AccessKey("AKIAIOSFODNN7EXAMPLE", SecretStr("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "")
SIGNED = {
    "lifecycle=": "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    "max-keys=2&prefix=J": "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
}


@pytest.mark.parametrize("query", SIGNED)
def test_requests_are_signed(query: str) -> None:
    request = requests.Request("GET", f"https://examplebucket.s3.amazonaws.com/?{query}").prepare()
    sign(request, KEY, "us-east-1", datetime(2013, 5, 24, tzinfo=UTC))
    assert request.headers["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        f"SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature={SIGNED[query]}"
    )


ADDRESSES = {
    "on AWS": ({}, "https://lender.s3.eu-west-1.amazonaws.com/"),
    "on AWS, in the path": ({"s3_path_style": True}, "https://s3.eu-west-1.amazonaws.com/lender"),
    "elsewhere, in the path": (
        {"s3_path_style": True, "s3_endpoint": "http://minio:9000"},
        "http://minio:9000/lender",
    ),
    "elsewhere, in the host": ({"s3_endpoint": "https://lender.minio"}, "https://lender.minio/"),
}


@pytest.mark.parametrize("given", ADDRESSES)
@pytest.mark.parametrize("prefix", ["", "production/lake"])
def test_a_bucket_is_located_as_the_library_does(given: str, prefix: str) -> None:
    style, address = ADDRESSES[given]
    lake = {"lake_url": f"s3://lender/{prefix}", "s3_region": "eu-west-1"}
    key = {"s3_access_key_id": "key", "s3_secret_access_key": "secret"}
    library = connect(Settings.model_validate(lake | key | style), timedelta(seconds=1), 0)
    assert locate(library, f"{prefix}/" if prefix else "") == (address, "eu-west-1")


def test_the_access_key_is_that_of_the_settings_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert Settings().s3_access_key is None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-role")
    assert Settings().s3_access_key is None
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    assert Settings().s3_access_key == AccessKey("of-the-role", SecretStr("secret"), "token")
    own = Settings(s3_access_key_id="own", s3_secret_access_key="its secret")
    assert own.s3_access_key == AccessKey("own", SecretStr("its secret"), "token")
