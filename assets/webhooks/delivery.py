"""The delivery loop: it claims what is due, signs it, sends it, and records how it went.

    claim ─→ Claimed ─ sign ─→ Post ─ send ─→ Ended ─→ record
                         └──── cancelled, or no secret ───┘

It is woken by commits, not by a clock, and many deliveries share one transaction: each round records all that has
ended and claims for the free slots. A slot is won before a delivery is claimed and its deadline starts there, so a long
queue invents no time-outs; how clients share the slots is `storage.webhooks.outbox`'s to say. Killed at any point, the
leases run out and the same bytes go out again.
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
from pipelines.webhooks.events import signatures
from storage.core.changes import Changes
from storage.core.database import Database
from storage.core.heartbeat import watched_loop
from storage.core.models import DeliveryStatus
from storage.core.store import Store
from storage.core.vault import Vault
from storage.webhooks import outbox
from storage.webhooks.outbox import SLOTS, Attempt, Claimed, Ended, Pause
from storage.webhooks.subscriptions import open_secret

LEASE_MARGIN_S: Final = 15.0  # what signing, recording and a busy machine may take beyond the deadline
POLL_AGAIN_S: Final = 0.5  # without news: for leases that ran out, retries whose time has come, the order to stop
RETRY_DATABASE_S: Final = 1.0
DRAIN_S: Final = 5.0  # at a stop, for what is under way; the rest is given back

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("tidemark.delivery")


def run(store: Store, stop: threading.Event, holder: UUID | None = None) -> None:
    """Deliver until `stop` is set. Blocks; it has an event loop and threads of its own.

    Args:
        holder: the id under which to claim, when the caller inherits one from a process that is certainly dead:
            what that process had claimed is sent at once. By default a new one.
    """
    asyncio.run(_Sender(store, holder or uuid4()).until(stop))


def deliver_due(store: Store, limit: int, deadline_s: float) -> int:
    """Deliver up to `limit` due deliveries, and start none after `deadline_s` seconds; how many were claimed.

    Returns when all of them are recorded, so at most a receiver's response time after the deadline.
    """
    return asyncio.run(_Sender(store, uuid4()).up_to(limit, time.monotonic() + deadline_s))


def sign(claimed: Claimed, vault: Vault, now: datetime) -> Post | Ended:
    """The request to send; or, when the subscription is gone or its secret can't be opened, the end."""
    if claimed.webhook_url is None or claimed.sealed_secret is None:
        return Ended(claimed.delivery_id, DeliveryStatus.CANCELLED, None)
    try:
        secret = open_secret(vault, claimed.subscription_id, claimed.sealed_secret)
    except Corrupt:
        return _ended(claimed, sending.unsent(Failure.SECRET))
    return Post(claimed.webhook_url, claimed.body, signatures(claimed.event_id, claimed.body, secret, now))


def _ended(claimed: Claimed, attempt: Attempt) -> Ended:
    status = DeliveryStatus.DELIVERED if sending.succeeded(attempt) else DeliveryStatus.FAILED
    return Ended(claimed.delivery_id, status, attempt)


def _report(pause: Pause) -> None:
    """The notice in the console."""
    log.warning(
        "webhook subscription %s of client %s is paused after %d failures in a row: see tidemark subscriptions list",
        pause.subscription_id,
        pause.client_id,
        pause.failures,
    )


class _Sender:
    """The slots of one process, and the holder of what is claimed for them."""

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder
        self._timeout_s = store.settings.webhook_timeout_s
        self._under_way: set[asyncio.Task[None]] = set()
        self._ended: list[Ended] = []
        self._news = asyncio.Event()
        self._database = ThreadPoolExecutor(1, "tidemark-outbox")

    async def until(self, stop: threading.Event) -> None:
        """Deliver until told to stop; a database that is away for a while is waited for."""
        async with self._client() as client:
            with _watching(self._store.db, self._waker()):
                await self._persistently(self._in_thread, self._give_back)
                with watched_loop("deliveries") as come_around:
                    while not stop.is_set():
                        come_around()
                        if not await self._persistently(self._round, client, SLOTS):
                            await self._rest()
                await self._drain()

    async def up_to(self, limit: int, deadline: float) -> int:
        """Deliver what is due, claiming at most `limit` and nothing after `deadline` (monotonic)."""
        claimed = 0
        async with self._client() as client:
            while True:
                new = await self._round(client, limit - claimed if time.monotonic() < deadline else 0)
                claimed += new
                if not (new or self._ended or self._under_way):
                    return claimed
                if not new:
                    await self._rest()

    async def _round(self, client: aiohttp.ClientSession, most: int) -> int:
        """Record what has ended and start what is due, as far as slots are free; how many were started."""
        self._news.clear()
        ended = self._ended.copy()
        claimed = await self._in_thread(self._exchange, ended, most, SLOTS - len(self._under_way))
        del self._ended[: len(ended)]
        for each in claimed:
            task = asyncio.create_task(self._deliver(client, each))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return len(claimed)

    async def _deliver(self, client: aiohttp.ClientSession, claimed: Claimed) -> None:
        try:
            signed = sign(claimed, self._store.vault, datetime.now(UTC))
        except Unavailable:
            log.exception("a secret can't be opened for now: the delivery is left until its lease runs out")
            return
        if isinstance(signed, Post):
            self._ended.append(_ended(claimed, await sending.send(client, signed, self._timeout_s)))
        else:
            self._ended.append(signed)
        self._news.set()

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), POLL_AGAIN_S)

    async def _drain(self) -> None:
        """Let what is under way end, for a while; then record that and give the rest back."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=DRAIN_S)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        try:
            await self._in_thread(self._exchange, self._ended, 0, 0)
            await self._in_thread(self._give_back)
        except Exception:
            log.exception("what was under way could not be recorded; its leases will run out")

    def _exchange(self, ended: Sequence[Ended], most: int, free: int) -> list[Claimed]:
        """In one transaction: record, take back what others lost, claim `most` at most with `free` slots. Nothing to do
        writes nothing.
        """
        now = datetime.now(UTC)
        if not ended and not self._anything_to_do(most, free, now):
            return []
        with self._store.db.writing() as w:
            pauses = outbox.record(w, self._holder, ended)
            outbox.release_expired(w, now)
            outbox.make_retries_due(w, now)
            claimed = outbox.claim_due(w, self._holder, most, self._timeout_s + LEASE_MARGIN_S, now, free)
        for pause in pauses:
            _report(pause)
        return claimed

    def _anything_to_do(self, most: int, free: int, now: datetime) -> bool:
        with self._store.db.reading() as r:
            passed = outbox.any_expired(r, now) or outbox.any_retry_due(r, now)
            return passed or (min(most, free) > 0 and outbox.any_due(r, free))

    def _give_back(self) -> None:
        with self._store.db.writing() as w:
            outbox.give_back(w, self._holder)

    async def _persistently(self, step: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Take a step; when it fails (the database is away), say so and wait a little. Deliveries must go on."""
        try:
            return await step(*args, **kwargs)
        except Exception:
            log.exception("the outbox could not be worked on; trying again")
            await asyncio.sleep(RETRY_DATABASE_S)
            return None

    async def _in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        work = partial(call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._database, work)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[aiohttp.ClientSession]:
        """The HTTP client, with a thread for each slot's look-up of a name: a slow one must hold nobody up."""
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
    """Calls `wake` from a thread whenever something was committed."""
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
            log.exception("the watch for due deliveries was lost and begins anew")
            ended.wait(RETRY_DATABASE_S)
