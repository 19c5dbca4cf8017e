"""The sensor counts alerts as open again once their snooze has ended."""

from datetime import UTC, datetime, timedelta

from dagster import build_sensor_context

from assets.work.snoozes import ended_snoozes_sensor
from storage.core.store import Store
from storage.customers import summary_listing
from storage.work import items
from storage.work.items import Action, ItemAction
from tests.storage.examples import a_client, a_customer
from tests.storage.ruleset_evaluations import a_rule, a_ruleset, an_evaluation, apply_evaluation, create_ruleset


def test_alerts_are_counted_again_after_their_snooze(store: Store) -> None:
    now = datetime.now(UTC)
    for until, counted in ((now - timedelta(seconds=1), 1), (now + timedelta(hours=1), 0)):
        client_id = a_client(store, now)
        customer = a_customer(store, client_id, now)
        ruleset = create_ruleset(store, client_id, a_ruleset(a_rule("A")), now)
        [match] = apply_evaluation(store, an_evaluation(store, now, {(customer, ruleset, "A"): True}), now).matches
        with store.db.writing() as w:
            items.act(w, client_id, match.match_id, Action(ItemAction.SNOOZE, until), "dana", now)
        ended_snoozes_sensor(build_sensor_context(resources={"store": store}))
        with store.db.reading() as r:
            assert summary_listing.get(r, customer).open_alerts == counted, until
