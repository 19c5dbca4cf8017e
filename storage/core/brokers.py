"""Whether a fleet's broker can be reached. `assets.workers.broker` sends and receives runs."""

from storage.core.settings import Settings

CONNECT_WITHIN_S = 3.0


def find_problem(settings: Settings) -> str | None:
    """Connect to the broker once. Return what is wrong in one sentence, or None."""
    from kombu import Connection  # noqa: PLC0415  # which only a fleet needs
    from kombu.exceptions import KombuError  # noqa: PLC0415

    with Connection(settings.broker_address, connect_timeout=CONNECT_WITHIN_S) as connection:
        try:
            connection.ensure_connection(max_retries=1, interval_start=0)
        except (KombuError, *connection.connection_errors, *connection.channel_errors) as error:
            return f"{connection.as_uri()} can't be used: {type(error).__name__}"
    return None
