"""The delivery loop: it claims due deliveries, signs them, sends them, and records the outcomes.

    claim ─→ Claimed ─ sign ─→ Post ─ send ─→ Ended ─→ record
                         └──── cancelled, or no secret ───┘

Commits wake the loop. Between commits it polls twice a second for expired leases and due retries. Many deliveries share
one transaction: each round records all that have ended and claims one for each free slot. A delivery's deadline starts
when it is claimed, so a long queue causes no timeouts. `storage.webhooks.outbox` decides how clients share the slots.
If the process is killed, the leases expire and the same bytes are sent again.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final, ParamSpec, TypeVar
from uuid import UUID, uuid4

import aiohttp

from assets.webhooks import sending
from assets.webhooks.sending import Failure, Post
from pipelines.vocabulary.errors import Corrupt, Unavailable
from pipelines.webhooks.events import sign_attempt
from storage.core import leases
from storage.core.changes import Changes
from storage.core.database import Database
from storage.core.heartbeat import watched_loop
from storage.core.models import DeliveryStatus
from storage.core.store import Store
from storage.core.vault import Vault
from storage.webhooks import outbox
from storage.webhooks.outbox import Attempt, Claimed, Ended, Pause
from storage.webhooks.subscriptions import open_secret
from storage.webhooks.turns import SLOTS

LEASE_MARGIN_S: Final = 15.0  # beyond the deadline, for signing, recording and a busy machine
POLL_AGAIN_S: Final = 0.5  # without a commit: for expired leases, due retries and `stop`
RETRY_DATABASE_S: Final = 1.0
DRAIN_S: Final = 5.0  # at a stop, for deliveries in progress; the rest is given back

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("tidemark.delivery")


def run(store: Store, stop: threading.Event, holder: UUID | None = None) -> None:
    """Deliver until `stop` is set. This blocks; it has its own event loop and threads.

    Args:
        holder: the id under which to claim, by default a new one. A caller that passes the id of a process that is
            certainly dead takes over that process's deliveries, which are sent at once.
    """
    asyncio.run(_Sender(store, holder or uuid4()).deliver_until(stop))


def deliver_due(store: Store, limit: int, deadline_s: float) -> int:
    """Deliver at most `limit` due deliveries, and start none after `deadline_s` seconds. Return how many were claimed.

    It returns when all of them are recorded, at most one timeout of a receiver after the deadline.
    """
    return asyncio.run(_Sender(store, uuid4()).deliver_up_to(limit, time.monotonic() + deadline_s))


def sign(claimed: Claimed, vault: Vault, now: datetime) -> Post | Ended:
    """Return the request to send, or the delivery's end if its subscription is gone or its secret can't be opened."""
    if claimed.webhook_url is None or claimed.sealed_secret is None:
        return Ended(claimed.delivery_id, DeliveryStatus.CANCELLED, None)
    try:
        secret = open_secret(vault, claimed.subscription_id, claimed.sealed_secret)
    except Corrupt:
        return _as_ended(claimed, sending.attempt_without_sending(Failure.SECRET))
    return Post(claimed.webhook_url, claimed.body, sign_attempt(claimed.event_id, claimed.body, secret, now))


def _as_ended(claimed: Claimed, attempt: Attempt) -> Ended:
    status = DeliveryStatus.DELIVERED if sending.has_succeeded(attempt) else DeliveryStatus.FAILED
    return Ended(claimed.delivery_id, status, attempt)


def _log_pause(pause: Pause) -> None:
    log.warning(
        "webhook subscription %s of client %s is paused after %d failures in a row: see tidemark subscriptions list",
        pause.subscription_id,
        pause.client_id,
        pause.failures,
    )


class _Sender:
    """The delivery slots of one process."""

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder
        self._timeout_s = store.settings.webhook_timeout_s
        self._in_progress: set[asyncio.Task[None]] = set()
        self._ended: list[Ended] = []  # not recorded yet
        self._news = asyncio.Event()  # a delivery ended, or something was committed
        self._database = ThreadPoolExecutor(1, "tidemark-outbox")

    async def deliver_until(self, stop: threading.Event) -> None:
        """Deliver until `stop` is set, however often the database is unavailable."""
        async with self._client() as client:
            with _watching(self._store.db, self._waker()):
                await self._try(self._in_thread, self._give_back)
                with watched_loop("deliveries") as report_round:
                    while not stop.is_set():
                        report_round()
                        if not await self._try(self._round, client, SLOTS):
                            await self._wait_for_news()
                await self._drain()

    async def deliver_up_to(self, limit: int, deadline: float) -> int:
        """Deliver what is due: claim at most `limit`, and none after `deadline` (monotonic). Return how many."""
        claimed = 0
        async with self._client() as client:
            while True:
                new = await self._round(client, limit - claimed if time.monotonic() < deadline else 0)
                claimed += new
                if not (new or self._ended or self._in_progress):
                    return claimed
                if not new:
                    await self._wait_for_news()

    async def _round(self, client: aiohttp.ClientSession, max_claims: int) -> int:
        """Record ended deliveries, and start due ones as far as slots are free. Return how many were started."""
        self._news.clear()
        ended = self._ended.copy()
        claimed = await self._in_thread(self._exchange, ended, max_claims, SLOTS - len(self._in_progress))
        del self._ended[: len(ended)]
        for delivery in claimed:
            task = asyncio.create_task(self._deliver(client, delivery))
            self._in_progress.add(task)
            task.add_done_callback(self._in_progress.discard)
        return len(claimed)

    async def _deliver(self, client: aiohttp.ClientSession, claimed: Claimed) -> None:
        try:
            signed = sign(claimed, self._store.vault, datetime.now(UTC))
        except Unavailable:
            log.exception("a signing secret can't be opened now: the delivery is retried after its lease expires")
            return
        if isinstance(signed, Post):
            self._ended.append(_as_ended(claimed, await sending.send(client, signed, self._timeout_s)))
        else:
            self._ended.append(signed)
        self._news.set()

    async def _wait_for_news(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), POLL_AGAIN_S)

    async def _drain(self) -> None:
        """Wait a while for deliveries in progress; then record those that ended and give the rest back."""
        if self._in_progress:
            await asyncio.wait(self._in_progress, timeout=DRAIN_S)
        for task in self._in_progress:
            task.cancel()
        await asyncio.gather(*self._in_progress, return_exceptions=True)
        try:
            await self._in_thread(self._exchange, self._ended, 0, 0)
            await self._in_thread(self._give_back)
        except Exception:
            log.exception("deliveries in progress could not be recorded; they are sent again when their leases expire")

    def _exchange(self, ended: Sequence[Ended], max_claims: int, free: int) -> list[Claimed]:
        """Record ended deliveries, and claim at most `max_claims` due ones for `free` slots.

        Deliveries whose lease has expired, or whose retry is due, become due first. All this is one transaction; if
        there is nothing to do, none is begun.
        """
        now = leases.clock(self._store.db)
        if not ended and not self._has_work(max_claims, free, now):
            return []
        with self._store.db.writing() as w:
            pauses = outbox.record(w, self._holder, ended)
            outbox.release_expired(w, now)
            outbox.make_retries_due(w, now)
            claimed = outbox.claim_due(w, self._holder, max_claims, self._timeout_s + LEASE_MARGIN_S, now, free)
        for pause in pauses:
            _log_pause(pause)
        return claimed

    def _has_work(self, max_claims: int, free: int, now: datetime) -> bool:
        with self._store.db.reading() as r:
            becomes_due = outbox.has_expired(r, now) or outbox.has_retry_due(r, now)
            return becomes_due or (min(max_claims, free) > 0 and outbox.has_due(r, free))

    def _give_back(self) -> None:
        with self._store.db.writing() as w:
            outbox.give_back(w, self._holder)

    async def _try(self, step: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Do a step. If it fails (the database may be unavailable), log that, wait a little and return None."""
        try:
            return await step(*args, **kwargs)
        except Exception:
            log.exception("a step of the delivery loop failed; trying again")
            await asyncio.sleep(RETRY_DATABASE_S)
            return None

    async def _in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        bound = partial(call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._database, bound)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Yield the HTTP client. It looks names up in as many threads as slots, so a slow look-up delays no other."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(SLOTS, "tidemark-names"))
        with self._database:
            async with sending.session(self._store.settings) as client:
                yield client

    def _waker(self) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(self._news.set)

        return wake


@contextmanager
def _watching(db: Database, wake: Callable[[], None]) -> Iterator[None]:
    """Call `wake` from a thread after every commit to the database, until the end of the block."""
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(db, wake, ended), name="tidemark-outbox-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(db: Database, wake: Callable[[], None], ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            with Changes(db) as changes:
                while not ended.is_set():
                    if changes.wait(POLL_AGAIN_S):
                        wake()
        except Exception:
            log.exception("watching the database for due deliveries failed; starting again")
            ended.wait(RETRY_DATABASE_S)
