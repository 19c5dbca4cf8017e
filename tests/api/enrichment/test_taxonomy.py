"""The taxonomy over HTTP has every category."""

from pipelines.vocabulary.taxonomy import TAXONOMY
from tests.api.conftest import Client


def test_the_taxonomy_is_served_whole(client: Client) -> None:
    shown = client.get("/v1/taxonomy").json()["data"]
    assert shown["version"] == TAXONOMY.version
    assert [category["slug"] for category in shown["categories"]] == list(TAXONOMY.categories)
    assert {category["group"] for category in shown["categories"]} == {group["slug"] for group in shown["groups"]}
    assert shown["categories"][0] == {
        "slug": "card_settlement",
        "name": "Card settlement",
        "group": "revenue",
        "meaning": "Card takings paid out by a merchant facility, usually net of fees",
        "sign": "credit",
        "line": "revenue",
        "countsAsRevenue": True,
        "essential": False,
    }
