"""The generated modules of the Python client are what the OpenAPI document says today."""

import pytest

from clients.generate import PACKAGE, modules, openapi_document


def test_modules_are_up_to_date(subtests: pytest.Subtests) -> None:
    for name, text in modules(openapi_document()).items():
        with subtests.test(name):
            assert (PACKAGE / name).read_text("utf-8") == text, "run `make generated`"
