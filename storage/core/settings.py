"""Settings, read once at a process's start from the environment, a `.env` file or the home's `tidemark.toml`.

Precedence: environment, then `.env` in the working directory, then `tidemark.toml` in the home, then the defaults
below. No other module reads the environment.
"""

import base64
import os
import re
import secrets
import socket
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipelines.vocabulary import nearest
from pipelines.webhooks.addresses import USUAL_PORTS, Ports, Reach
from storage.core import durable, own_addresses

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
KEY_BYTES = 32
PREFIX = "tidemark_"  # of environment variables, in capitals or not
NO_SETTINGS = {"base_url"}  # variables that are no settings: `tidemark up` sets them for the processes that it starts
DEFAULT_ZONE = "Australia/Sydney"
LONGEST_RUN_S = 24 * 3_600  # of the portfolio, until Dagster ends it; our judgement
REDELIVER_AFTER_S = LONGEST_RUN_S + 3_600  # a broker that waits less delivers a run again while it still executes
FLEET_LEASE_S = 7.0  # so that the jobs of a dead worker start again within ten seconds
SAFE_REDIS = {"visibility_timeout": REDELIVER_AFTER_S, "unacked_restore_interval": 1}  # options of the transport
# Twice the longest time between looking a file up and reading it (storage.operations.retention).
SHORTEST_RETENTION = timedelta(hours=2)


class Environment(StrEnum):
    SANDBOX = "sandbox"
    PRODUCTION = "production"


class LogFormat(StrEnum):
    AUTO = "auto"  # text on a terminal, else JSON
    TEXT = "text"
    JSON = "json"


class SettingsError(Exception):
    """A setting that can't be used. The message is one line for the operator."""


def duration(text: str) -> timedelta:
    """Parse a duration such as `30s`, `15m`, `12h` or `90d`.

    Raises:
        ValueError: the text has another form.
    """
    match = re.fullmatch("([0-9]{1,6})([smhd])", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write it like 30s, 15m, 12h or 90d")
    return timedelta(seconds=int(match[1]) * SECONDS[match[2]])


@dataclass(frozen=True)
class Quota:
    """A number of requests in a window of some seconds."""

    requests: int
    window_s: int


@dataclass(frozen=True)
class AccessKey:
    """A key of an S3-compatible object store."""

    id: str
    secret: SecretStr
    session_token: str  # empty unless the key is temporary


def _parse_quota(value: object) -> object:
    """Parse text such as `600/1m` as a Quota."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch("([1-9][0-9]{0,8})/([1-9][0-9]{0,5}[smhd])", value)
    if match is None:
        raise ValueError("write it like 600/1m: a number of requests in a window such as 30s, 15m, 12h or 1d")
    return Quota(int(match[1]), int(duration(match[2]).total_seconds()))


def _parse_duration(value: object) -> object:
    """Parse text such as `90d` as a timedelta."""
    return duration(value) if isinstance(value, str) else value


def _require_long_enough(retention: timedelta) -> timedelta:
    if retention < SHORTEST_RETENTION:
        raise ValueError("at least 2h: a process that has looked a file up needs time to read it")
    return retention


def _check_redis_address(url: str) -> str:
    if url and not url.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("write it like redis://127.0.0.1:6379/0, rediss://… or unix://…")
    return url


def _check_broker_url(url: str) -> str:
    """Require RabbitMQ, or a Redis that doesn't lose the run of a killed worker. The address may be empty."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("amqp", "amqps", "redis", "rediss") or not parts.hostname):
        raise ValueError("write it like amqp://user:password@broker.internal:5672/vhost")
    options = parse_qs(parts.query)
    if unknown := options.keys() - (set() if parts.scheme.startswith("amqp") else SAFE_REDIS.keys()):
        raise ValueError(f"there is no option of this name: {', '.join(sorted(unknown))}")
    timeout_s, interval_s = (options.get(name, [str(safe)])[-1] for name, safe in SAFE_REDIS.items())
    if not timeout_s.isdecimal() or int(timeout_s) <= LONGEST_RUN_S or interval_s != "1":
        raise ValueError(
            f"Redis needs a visibility_timeout above the longest run ({LONGEST_RUN_S} s) and "
            "unacked_restore_interval=1: leave both out, and Tidemark sets them"
        )
    return url


def _split_at_commas(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _parse_ports(value: object) -> object:
    """Parse text such as `443,8443,9000-9999` as Ports."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",") if part.strip()]
    return Ports(tuple(map(_parse_port_range, parts))) if parts else USUAL_PORTS


def _parse_port_range(text: str) -> range:
    match = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last < 2**16:
        raise ValueError("write it like 443,8443,9000-9999")
    return range(first, last + 1)


def _check_proxy_address(url: str) -> str:
    """Require `http://name:port`. It may be empty."""
    if url and not re.fullmatch(r"http://([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}/?", url):
        raise ValueError("write it like http://proxy.internal:3128, without credentials")
    return url


def _check_site(url: str) -> str:
    """Require an address without a path, by HTTPS unless it is of this machine. It may be empty."""
    if url and not re.fullmatch(r"(https://[A-Za-z0-9.:\[\]-]+|http://(localhost|127\.0\.0\.1)(:[0-9]+)?)/?", url):
        raise ValueError("write it like https://tidemark.lender.example")
    return url.rstrip("/")


def _check_issuer(url: str) -> str:
    if url and not re.fullmatch(r"(https://|http://(localhost|127\.0\.0\.1)(:[0-9]+)?(/|$))[!-~]*", url):
        raise ValueError("write it like https://login.lender.example, as the provider's documents do")
    return url


def _check_lake_url(url: str) -> str:
    if "://" in url and not re.fullmatch(r"file://.*|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._-]+)*/?", url):
        raise ValueError("write it like /var/lib/tidemark/lake, file:///… or s3://bucket/prefix")
    return url


def _parse_on_or_off(value: object) -> object:
    return {"on": True, "off": False}.get(value.lower(), value) if isinstance(value, str) else value


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError) as error:  # OSError: the name of a folder of zones, such as `Australia`
        raise ValueError(f"{name!r} is not a time zone: write it like {DEFAULT_ZONE}") from error
    return name


def _names_in(source: PydanticBaseSettingsSource) -> Collection[str]:
    """Return the names of settings in the environment or in `.env`."""
    assert isinstance(source, EnvSettingsSource)
    return {name.removeprefix(PREFIX) for name in source.env_vars if name.startswith(PREFIX)}


def _require_known(given: Iterable[str], settings: type[BaseSettings]) -> None:
    """Raise SettingsError for unknown names: a misspelt setting would otherwise be ignored silently."""
    unknown = sorted({*given} - settings.model_fields.keys() - NO_SETTINGS)
    if unknown:
        names = (nearest.suggest(f"{PREFIX}{name}".upper(), _all_names(settings)) for name in unknown)
        raise SettingsError(f"there is no setting of this name: {', '.join(names)}")


def _all_names(settings: type[BaseSettings]) -> list[str]:
    return [f"{PREFIX}{name}".upper() for name in settings.model_fields]


class Settings(BaseSettings):
    """Every setting, with its unit and limits. Environment variables are `TIDEMARK_` plus the name."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=".env", frozen=True, extra="ignore")

    home: Path = Field(Path("./.tidemark"), description="Folder where state lives.")
    database_url: str = Field(
        "",
        description="`postgresql://…` for PostgreSQL, 14 or newer: a database of its own, whose role may create a "
        "schema (`dagster`, for Dagster's tables). Without it, SQLite in the home.",
    )
    lake_url: Annotated[str, AfterValidator(_check_lake_url)] = Field(
        "",
        description="A folder, as a path or `file://…`, or `s3://bucket/prefix` in an S3-compatible object store. "
        "Without it, `lake` in the home.",
    )
    lake_cache_bytes: int = Field(
        10 * 2**30,
        ge=2**20,
        description="Bytes of a bucket's files that are cached in the home, besides those read in the last 15 minutes.",
    )
    s3_endpoint: str = Field("", description="`https://…` of the object store. Without it, that of AWS in the region.")
    s3_region: str = Field("", description="The bucket's region. Without it, `AWS_REGION`, or `us-east-1`.")
    s3_access_key_id: str = Field(
        "", description="Id of the access key. Without it, the usual `AWS_…` variables, or the machine's role."
    )
    s3_secret_access_key: SecretStr = Field(SecretStr(""), description="The access key's secret.")
    s3_path_style: Annotated[bool, BeforeValidator(_parse_on_or_off)] = Field(
        False,
        description="`on`: URLs name the bucket in their path, not in their host; most servers except AWS's want it.",
    )
    s3_timeout_s: float = Field(
        30.0,
        gt=0,
        description="Seconds for a request to the object store. A failed request is repeated for as many seconds.",
    )
    broker_url: Annotated[str, AfterValidator(_check_broker_url)] = Field(
        "",
        description="`amqp://…` or `amqps://…` of RabbitMQ, or `redis://…`: any number of machines share the runs, on "
        "one PostgreSQL and one lake. Without it, only the workers of Dagster's own home execute runs.",
    )
    broker_prefix: str = Field(
        "tidemark",
        pattern="^[a-z0-9][a-z0-9_-]{0,63}$",
        description="Prefix of the broker's queues. Each Tidemark on a shared broker needs one of its own.",
    )
    environment: Environment = Field(
        Environment.SANDBOX,
        description="`sandbox`, or `production`, where keys begin with `tm_live_` and the master key must be given.",
    )
    docs: Annotated[bool | None, BeforeValidator(_parse_on_or_off)] = Field(
        None,
        description="Whether `/docs` and `/openapi.json` are served. Without it, `on` in the sandbox and `off` in "
        "production.",
    )
    timezone: Annotated[str, AfterValidator(_check_zone)] = Field(
        DEFAULT_ZONE, description="Time zone of the days and months of the business."
    )
    master_key: SecretStr = Field(
        SecretStr(""),
        description="32 bytes in Base64. They encrypt the data keys, which encrypt webhook secrets, PDF files and "
        "their passwords. Without it, `master.key` in the home, created if it is missing.",
    )
    new_master_key: SecretStr = Field(
        SecretStr(""),
        description="The key that `tidemark secrets rotate` replaces the master key with.",
    )
    log_format: LogFormat = Field(
        LogFormat.AUTO, description="`text`, `json`, or `auto`: text on a terminal, else JSON."
    )
    min_free_bytes: int = Field(
        64 * 2**20, ge=0, description="Bytes of free disk below which `/health/ready` responds with 503."
    )

    public_url: Annotated[str, AfterValidator(_check_site)] = Field(
        "",
        description="`https://…` at which people reach the console. Needed for sign-in by OpenID Connect.",
    )
    oidc_issuer: Annotated[str, AfterValidator(_check_issuer)] = Field(
        "",
        description="`https://…` of the OpenID Connect provider that people may sign in with. Without it, they use "
        "passwords and links only.",
    )
    oidc_client_id: str = Field("", description="Tidemark's client id at the provider.")
    oidc_client_secret: SecretStr = Field(SecretStr(""), description="Tidemark's client secret at the provider.")

    webhook_allow_cidrs: Annotated[
        tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(_split_at_commas)
    ] = Field((), description="Private networks that webhooks may reach, comma-separated.")
    webhook_ports: Annotated[Ports, NoDecode, BeforeValidator(_parse_ports)] = Field(
        USUAL_PORTS,
        description="Ports that webhooks may reach, like `443,8443,9000-9999`. Without it, 443, and from 1024 on all "
        "but those of internal services.",
    )
    webhook_proxy: Annotated[str, AfterValidator(_check_proxy_address)] = Field(
        "",
        description="`http://name:port` of a proxy that webhooks are sent through. The proxy resolves names itself, so "
        "it must refuse private addresses, too.",
    )
    webhook_ca_bundle: Path | None = Field(
        None, description="File with a further certificate authority to trust for receivers."
    )
    webhook_timeout_s: float = Field(30.0, gt=0, le=30, description="Seconds for a delivery, body included.")

    rate_limit: Annotated[Quota, NoDecode, BeforeValidator(_parse_quota)] = Field(
        Quota(60_000, 60),
        description="Requests of one key in a window of `30s`, `15m`, `12h` or `1d`; then 429. The default is what one "
        "API process can serve: lower it where clients share a process.",
    )
    wrong_key_limit: Annotated[Quota, NoDecode, BeforeValidator(_parse_quota)] = Field(
        Quota(600, 60),
        description="Requests without a good key from one address; then 429. A good key is still served from there.",
    )
    redis_url: Annotated[str, AfterValidator(_check_redis_address)] = Field(
        "",
        description="`redis://…`, `rediss://…` or `unix://…`: all processes count requests together. Without it, and "
        "while Redis is down, each process counts for itself.",
    )
    trusted_proxies: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(_split_at_commas)] = (
        Field(
            (),
            description="Networks, comma-separated, whose `X-Forwarded-For` names the caller. List your reverse proxy: "
            "otherwise everything that it forwards counts as one address.",
        )
    )
    max_requests: int = Field(
        256,
        ge=1,
        description="Requests in progress in one process, and twice as many connections; beyond that 503, while "
        "`/health` still answers. One key may hold 9/16 of them, one client 3/4.",
    )
    client_timeout_s: float = Field(
        10.0,
        gt=0,
        description="Seconds that the service waits for a request's head, and for a body or a response that moves more "
        "slowly than 8 KiB a second.",
    )

    max_transactions: int = Field(50_000, ge=1, le=50_000, description="Rows in a submission.")
    max_json_bytes: int = Field(35 * 2**20, ge=1, description="Bytes of a request's body.")
    max_multipart_bytes: int = Field(
        100 * 2**20, ge=1, description="Bytes of a body with files, which are streamed to the disk."
    )
    max_file_bytes: int = Field(25 * 2**20, ge=1, description="Bytes of a PDF.")

    batch_lease_s: float = Field(
        15.0,
        gt=0,
        description=f"Seconds until a silent worker's batch is given to another worker. With a broker, at most "
        f"{FLEET_LEASE_S:.0f}.",
    )
    batch_max_jobs: int = Field(2_000, ge=1, description="Jobs that one run takes at most.")
    batch_max_rows: int = Field(500_000, ge=1, description="Rows that one run takes at most.")
    job_max_attempts: int = Field(3, ge=1, description="Interrupted attempts before a job fails.")
    job_retry_pause_s: float = Field(
        20, ge=0, description="Seconds before the next attempt, from the second interruption on."
    )

    retention: Annotated[timedelta, BeforeValidator(_parse_duration), AfterValidator(_require_long_enough)] = Field(
        timedelta(days=30), description="How long replaced versions are retained: at least `2h`."
    )
    integrity_bytes_per_s: int = Field(
        50 * 2**20, ge=1, description="Bytes a second that the weekly integrity check reads at most."
    )

    schedules: Annotated[bool, BeforeValidator(_parse_on_or_off)] = Field(
        True,
        description="`off`: nothing runs nightly or weekly unless it is switched on in Dagster's pages.",
    )
    dagster_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas)] = Field(
        (),
        description="Names, comma-separated, under which Dagster's pages are served besides `localhost` and the "
        "address listened on.",
    )
    report_max_age_days: int = Field(
        7, ge=1, description="Days after which reports are refreshed at night, even if nothing new was sent."
    )
    portfolio_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Share of the time that backfill and nightly refresh may work; they rest for the remainder.",
    )
    portfolio_threads: int = Field(
        1, ge=1, description="Threads that the process of backfill and refresh computes with."
    )
    portfolio_slice_rows: int = Field(50_000, ge=1, description="Rows between two rests of backfill and refresh.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        home = Path(os.environ.get("TIDEMARK_HOME", "./.tidemark"))
        toml = TomlConfigSettingsSource(settings_cls, home / "tidemark.toml")
        given = (
            (env_settings, _names_in(env_settings)),
            (dotenv_settings, _names_in(dotenv_settings)),
            (toml, toml.toml_data),
        )
        for _, names in given:
            _require_known(names, settings_cls)
        # An empty source would be asked for every setting nevertheless, which takes most of the time.
        return init_settings, *(source for source, names in given if names)

    @cached_property
    def database(self) -> str:
        """SQLAlchemy URL of Tidemark's tables."""
        return self.database_url or f"sqlite:///{(self.home / 'tidemark.db').resolve()}"

    @cached_property
    def lake(self) -> Path:
        """Root folder of the lake; for a bucket, the folder of local copies."""
        if self.has_bucket:
            return (self.home / "lake-cache").resolve()
        return Path(self.lake_url.removeprefix("file://") or self.home / "lake").resolve()

    @property
    def has_bucket(self) -> bool:
        """Whether the lake is in a bucket."""
        return self.lake_url.startswith("s3://")

    @property
    def s3_access_key(self) -> AccessKey | None:
        """The access key of the settings or, as for the bucket's library, of the usual variables. None: a role's."""
        key_id = self.s3_access_key_id or os.environ.get("AWS_ACCESS_KEY_ID", "")
        secret = self.s3_secret_access_key.get_secret_value() or os.environ.get("AWS_SECRET_ACCESS_KEY", "")
        token = os.environ.get("AWS_SESSION_TOKEN", "")
        return AccessKey(key_id, SecretStr(secret), token) if key_id and secret else None

    @property
    def broker_address(self) -> str:
        """The broker's address without options."""
        return self.broker_url.partition("?")[0]

    @property
    def broker_options(self) -> dict[str, int]:
        """Options of the broker's transport."""
        if self.broker_url.startswith("amqp"):
            return {"confirm_publish": 1}
        given = parse_qs(urlsplit(self.broker_url).query)
        return {name: int(given.get(name, [str(safe)])[-1]) for name, safe in SAFE_REDIS.items()}

    @property
    def run_lease_s(self) -> float:
        """Seconds until a silent worker's run counts as lost."""
        return min(self.batch_lease_s, FLEET_LEASE_S) if self.broker_url else self.batch_lease_s

    @property
    def webhook_reach(self) -> Reach:
        """Where webhooks may be sent."""
        names = (socket.gethostname(),)
        return Reach(self.webhook_allow_cidrs, self.webhook_ports, names, own_addresses.owns)

    @cached_property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def dagster_home(self) -> Path:
        return (self.home / "dagster").resolve()

    @property
    def key_prefix(self) -> str:
        """The first characters of this environment's API keys."""
        return "tm_live_" if self.environment is Environment.PRODUCTION else "tm_sandbox_"

    @property
    def shows_docs(self) -> bool:
        """Whether `/docs` and `/openapi.json` are served."""
        return self.environment is Environment.SANDBOX if self.docs is None else self.docs

    @property
    def master_key_bytes(self) -> bytes:
        """The 32-byte key that encrypts data keys at rest: from the setting (Base64), or the home's `master.key`.

        Raises:
            SettingsError: the key is missing in production, malformed, or in a file that others may read.
        """
        key = self.given_key("master_key")
        if key is None:
            self._make_key_file()
            key = self.key_in(self.key_file)
        if key is None:
            raise SettingsError(f"{self.key_file} is missing")
        return key

    @property
    def keeps_key_file(self) -> bool:
        """Whether the master key is in the home's file, not in the environment."""
        return not self.master_key.get_secret_value()

    @property
    def key_file(self) -> Path:
        return self.home / "master.key"

    def given_key(self, name: Literal["master_key", "new_master_key"]) -> bytes | None:
        """Return the 32 bytes of a setting; None if it is not set.

        Raises:
            SettingsError: the setting is malformed.
        """
        text: str = getattr(self, name).get_secret_value()
        return _decode_key(text, f"TIDEMARK_{name.upper()}") if text else None

    def key_in(self, path: Path) -> bytes | None:
        """Return the 32 bytes in a key file; None if there is no file.

        Raises:
            SettingsError: the file is malformed, or others may read it.
        """
        try:
            mode, text = stat.S_IMODE(path.stat().st_mode), path.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path} can't be read as a master key") from error
        if mode & 0o077:
            raise SettingsError(f"{path} may be read by others: set its mode to 600 (chmod 600)")
        return _decode_key(text.strip(), str(path))

    def _make_key_file(self) -> None:
        if not self.key_file.exists():
            if self.environment is Environment.PRODUCTION:
                raise SettingsError("TIDEMARK_MASTER_KEY is required in production")
            with suppress(FileExistsError):  # another process was first
                durable.create(self.key_file, key_text(new_key()))
        durable.sync(self.home)  # the process that created it may not have synced it yet

    def prepare(self) -> Self:
        """Create the home, the lake and the master key if needed, and return these settings.

        Raises:
            SettingsError: home or lake can't be written to, the master key can't be used, the settings of OpenID
            Connect are incomplete, or there is a broker, but the database or the lake is this home's own.
        """
        self._require_shared()
        _make_writable(self.home)
        _make_writable(self.lake)
        assert self.master_key_bytes
        self._require_openid()
        return self

    def _require_shared(self) -> None:
        """Raise SettingsError if there is a broker, and thus other machines, which can't reach database or lake."""
        if self.broker_url and not self.database_url.startswith("postgresql"):
            raise SettingsError("TIDEMARK_BROKER_URL needs PostgreSQL: set TIDEMARK_DATABASE_URL to postgresql://…")
        if self.broker_url and not self.lake_url:
            raise SettingsError("TIDEMARK_BROKER_URL needs a lake that all machines reach: set TIDEMARK_LAKE_URL")

    def _require_openid(self) -> None:
        """Raise SettingsError unless sign-in by OpenID Connect is either off or configured as a whole."""
        needed = ("oidc_client_id", "oidc_client_secret", "public_url")
        missing = [f"{PREFIX}{name}".upper() for name in needed if not getattr(self, name)]
        if self.oidc_issuer and missing:
            raise SettingsError(f"TIDEMARK_OIDC_ISSUER needs {', '.join(missing)}")


def new_key() -> bytes:
    """Return 32 random bytes."""
    return secrets.token_bytes(KEY_BYTES)


def key_text(key: bytes) -> bytes:
    """Return a key as Base64, its form in files and in the environment."""
    return base64.b64encode(key)


def _decode_key(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise SettingsError(f"{where} is not Base64") from error
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{where} must be {KEY_BYTES} bytes in Base64")
    return key


def _make_writable(folder: Path) -> None:
    """Create a folder durably if it is missing, and check that files can be created in it."""
    try:
        durable.make_folder(folder)
    except OSError as error:
        raise SettingsError(f"{folder} can't be created: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SettingsError(f"{folder} can't be written to: it is read-only, or belongs to another user")
