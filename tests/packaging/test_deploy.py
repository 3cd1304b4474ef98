"""The image and the compose file: sound, and their commands are ours.

There is no Docker here: the commands of the compose file run as processes, with addresses and
folders of this machine in the place of those of the containers.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.worker.conftest import free_port
from wfsql.cli.main import COMMANDS, run_command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
SETUP = (DEPLOY / "setup.sh").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("gateway", "worker-1", "worker-2")


def accepted(words: list[str]) -> dict[str, Any]:
    """Lets the parser of a `wf` command read a line; returns what its function would get."""
    command = max(
        (c for c in COMMANDS if words[: len(c.name.split())] == c.name.split()),
        key=lambda c: len(c.name),
    )
    module = import_module(f"wfsql.cli.commands.{command.module}")
    got: dict[str, Any] = {}

    @wraps(module.command)
    def note(**options: Any) -> int:
        got.update(options)
        return 0

    assert run_command(note, command, words[len(command.name.split()) :]) == 0
    return got


# The image ---------------------------------------------------------------------------------------


def test_the_image_is_built_of_the_packages_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    copied = re.findall(r"^COPY (\w+) (\w+)$", DOCKERFILE, re.MULTILINE)
    assert copied == [(name, name) for name in packages]
    assert all((ROOT / name).is_dir() for name in packages)


def test_the_image_has_extras_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    [extras] = re.findall(r"'\.\[(.*)\]'", DOCKERFILE)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])
    assert {"postgres", "gateway", "worker"} <= set(extras.split(","))


def test_the_image_does_not_run_as_root() -> None:
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001"]


# The compose file --------------------------------------------------------------------------------


def test_every_volume_is_declared_or_a_path_that_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
            else:
                assert source in COMPOSE["volumes"]


def test_every_service_waits_for_one_that_is_there_and_can_be_waited_for() -> None:
    for service in SERVICES.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
            else:
                assert SERVICES[name]["restart"] == "no"


def test_folders_of_volumes_belong_to_the_user_of_the_image() -> None:
    for name in ("setup", *OURS):
        for volume in SERVICES[name].get("volumes", ()):
            source, target = volume.split(":")[:2]
            if not source.startswith("."):
                assert target in DOCKERFILE


def test_nothing_is_published_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8470:8470"]


def test_no_password_stands_in_the_files() -> None:
    for service in SERVICES.values():
        for name, value in (service.get("environment") or {}).items():
            assert "PASSWORD" not in name or value.startswith("${")


def test_workers_differ_in_nothing_but_their_folders() -> None:
    one, two = SERVICES["worker-1"], SERVICES["worker-2"]
    assert one["command"] == two["command"]
    assert one["volumes"] != two["volumes"]


@pytest.mark.parametrize("name", OURS)
def test_the_command_of_a_service_is_one_of_ours(name: str) -> None:
    assert accepted(SERVICES[name]["command"])


def test_the_handlers_of_the_workers_are_there() -> None:
    named = accepted(SERVICES["worker-1"]["command"])["handlers"]
    assert named
    assert all((ROOT / path).is_file() for path in named)


@pytest.mark.parametrize("line", re.findall(r"^ *(wf .*)$", SETUP, re.MULTILINE))
def test_the_commands_of_the_setup_are_ours(line: str) -> None:
    words = shlex.split(line.split(">")[0])[1:]
    options = accepted(words)
    assert words[0] != "deploy" or (ROOT / options["file"]).is_file()


def test_a_command_that_is_not_ours_is_noticed() -> None:
    with pytest.raises(Exception, match="there is no option --no-such"):
        accepted(["gateway", "--no-such"])


# All of it, as processes -------------------------------------------------------------------------


class Place:
    """Runs the commands of the compose file on this machine."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._port = free_port()
        self._running: list[subprocess.Popen[bytes]] = []
        (folder / "bin").mkdir()
        (folder / "keys").mkdir()
        program = folder / "bin" / "wf"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wfsql "$@"\n')
        program.chmod(0o755)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("WF_", "OTEL_"))}
        path = f"{folder / 'bin'}:{kept['PATH']}"
        self._bare = {**kept, "PYTHONPATH": str(ROOT), "PATH": path}
        self._database = {**self._bare, "WF_URL": url}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _here(self, words: list[str], name: str) -> list[str]:
        changes = {
            "0.0.0.0:8470": f"127.0.0.1:{self._port}",
            "http://gateway:8470": self.url,
            "/var/lib/wfsql/keys": str(self._folder / "keys"),
            "/var/lib/wfsql/worker": str(self._folder / name),
        }
        for old, new in changes.items():
            words = [word.replace(old, new) for word in words]
        return words

    def _environment(self, name: str) -> dict[str, str]:
        is_given = "WF_URL" in SERVICES[name].get("environment", {})
        return self._database if is_given else self._bare

    def setup(self) -> None:
        words = self._here(SERVICES["setup"]["entrypoint"], "setup")
        done = subprocess.run(
            words, cwd=ROOT, env=self._environment("setup"), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def start(self, name: str) -> None:
        with open(self._folder / f"{name}.log", "wb") as log:
            self._running.append(
                subprocess.Popen(
                    ["wf", *self._here(SERVICES[name]["command"], name)],
                    cwd=ROOT,
                    env=self._environment(name),
                    executable=str(self._folder / "bin" / "wf"),
                    stderr=log,
                )
            )

    def wf(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._folder / "bin" / "wf"), *arguments],
            cwd=ROOT, env=self._database, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def wait(self, condition: Callable[[], bool], name: str) -> None:
        give_up_at = time.monotonic() + 60
        while not condition():
            assert all(p.poll() is None for p in self._running), self.log(name)
            assert time.monotonic() < give_up_at, self.log(name)
            time.sleep(0.05)

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> list[int]:
        for process in reversed(self._running):
            with suppress(OSError):
                process.terminate()
            process.wait(30)
        codes = [process.returncode for process in self._running]
        self._running.clear()
        return codes


@pytest.fixture
def place(empty_pg_url: str, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, empty_pg_url)
    yield made
    made.stop()


@pytest.mark.more
def test_what_compose_starts_runs_an_example_to_its_end(place: Place, tmp_path: Path) -> None:
    place.setup()
    key = tmp_path / "keys" / "enroll"
    assert key.stat().st_mode & 0o077 == 0
    written = key.read_text()
    place.setup()
    assert key.read_text() == written
    place.start("gateway")
    place.wait(place.is_ready, "gateway")
    for name in ("worker-1", "worker-2"):
        place.start(name)
        place.wait(lambda name=name: "claims" in place.log(name), name)  # type: ignore[misc]
    done = place.wf(
        "start", "order_fulfilment", "--wait",
        "--context-file", "examples/order_fulfilment/inputs/happy.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert written.strip() not in place.log("gateway") + place.log("worker-1")
    assert place.stop() == [0, 0, 0]
