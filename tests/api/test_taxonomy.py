from pipelines.enrich.taxonomy import TAXONOMY
from tests.api.conftest import Client


def test_the_taxonomy_is_served_whole(client: Client) -> None:
    shown = client.get("/v1/taxonomy").json()["data"]
    assert shown["version"] == TAXONOMY.version
    assert [category["slug"] for category in shown["categories"]] == list(TAXONOMY.categories)
    assert shown["categories"][0].keys() == {"slug", "name", "group", "meaning", "sign", "countsAsRevenue"}
