"""The benchmark of the console measures every page, also those that are added later."""

import pytest

from benchmarks.console import NOT_MEASURED, QUERIES, choose_addresses
from benchmarks.filled_console import list_pages
from storage.core.settings import Settings
from tests.conftest import open_store


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    store = open_store(Settings(home=tmp_path_factory.mktemp("home"), database_url=""))
    found = list_pages(store)
    store.close()
    return found


def test_every_page_is_measured_or_it_is_said_why_not(pages: list[str]) -> None:
    measured = {address.partition("?")[0] for address in choose_addresses(pages)}
    assert len(measured) > 50
    assert measured | NOT_MEASURED.keys() == set(pages)
    assert measured & NOT_MEASURED.keys() == set()


def test_queries_are_of_pages_that_are_measured(pages: list[str]) -> None:
    assert QUERIES.keys() <= set(pages) - NOT_MEASURED.keys()
