"""How Celery is configured, as far as no broker is needed to see it."""

import pytest

from assets.workers.broker import make_app
from storage.core.brokers import queue_name
from storage.core.models import Queue
from storage.core.settings import LONGEST_RUN_S, Settings


def test_variables_of_other_celery_applications_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "amqp://elsewhere:1//")
    monkeypatch.setenv("CELERY_RESULT_BACKEND", "redis://elsewhere:1/0")
    app = make_app(Settings(broker_url="amqp://rabbit:5672/lending"))
    for connection in (app.connection_for_read(), app.connection_for_write()):
        assert (connection.hostname, connection.virtual_host) == ("rabbit", "lending")


def test_a_run_may_take_longer_than_the_longest_before_it_is_delivered_again() -> None:
    on_rabbitmq = Settings(broker_url="amqp://rabbit", broker_prefix="lender")
    queues = make_app(on_rabbitmq).amqp.queues
    assert set(queues) == {queue_name(on_rabbitmq, queue) for queue in Queue}
    for queue in queues.values():
        assert queue.queue_arguments["x-queue-type"] == "quorum"
        assert queue.queue_arguments["x-consumer-timeout"] > LONGEST_RUN_S * 1_000
    on_redis = make_app(Settings(broker_url="redis://redis:6379/1?visibility_timeout=100000"))
    assert on_redis.conf.broker_transport_options == {"visibility_timeout": 100_000, "unacked_restore_interval": 1}
    assert on_redis.connection_for_read().virtual_host == "1"
