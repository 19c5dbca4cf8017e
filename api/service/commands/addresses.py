"""Ports and readiness of a service on this machine."""

import socket
import subprocess
import time

import requests
import typer

from api.core.commands.console import err

POLL_EVERY_S = 0.1


def choose_port(port: int) -> int:
    """Return the port, or a free one for 0."""
    if port:
        return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free: int = probe.getsockname()[1]
        return free


def wait_until_ready(base_url: str, process: subprocess.Popen[bytes], within_s: float) -> None:
    """Wait until `GET /health/ready` responds with 200.

    Raises:
        typer.Exit: The process ended, or the time ran out.
    """
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            err.print(f"tidemark: the service ended with status {process.returncode}")
            raise typer.Exit(1)
        if is_ready(base_url):
            return
        time.sleep(POLL_EVERY_S)
    err.print(f"tidemark: the service was not ready within {within_s:.0f} s")
    raise typer.Exit(1)


def is_ready(base_url: str) -> bool:
    with requests.Session() as http:
        http.trust_env = False
        try:
            return http.get(f"{base_url}/health/ready", timeout=5).status_code == 200
        except requests.RequestException:
            return False


def pause() -> None:
    time.sleep(3600)
