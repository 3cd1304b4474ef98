"""Options of the processes that make no sense: refused before anything is connected."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Done, Wf, is_one_line_each

GATEWAY = ("gateway", "--url", "postgresql://localhost:1/none")


def refused(done: Done, message: str, hint: str) -> None:
    assert done.code == 2
    assert is_one_line_each(done.err), done.err
    first, second = done.err.splitlines()
    assert first == f"error: {message}"
    assert hint in second


def test_a_port_alone_is_no_address(wf: Wf) -> None:
    refused(
        wf(*GATEWAY, "--listen", "8471"),
        '"8471" is no address to listen on',
        "write it as 127.0.0.1:8471 or",
    )


def test_a_port_alone_is_no_address_for_wf_dev_either(wf: Wf) -> None:
    refused(wf("dev", "--listen", "8471"), '"8471" is no address to listen on', "127.0.0.1:8470")


@pytest.mark.parametrize("name", ["a b", "http://flows.example", "flows.example:8443", ""])
def test_a_host_that_no_request_can_name(wf: Wf, name: str) -> None:
    refused(
        wf(*GATEWAY, "--host", name), f'--host: "{name}" is no name of a host', "as flows.example"
    )


def test_listening_wide_without_tls_is_wrong_use(wf: Wf) -> None:
    refused(
        wf(*GATEWAY, "--listen", "0.0.0.0:8470"),
        "0.0.0.0 can be reached from elsewhere, and tokens would travel unencrypted",
        "--tls-cert and --tls-key, or --behind-proxy",
    )


def test_a_certificate_without_its_key(wf: Wf) -> None:
    refused(
        wf(*GATEWAY, "--tls-cert", "x.pem"), "TLS needs both a certificate and its key", "--tls-key"
    )


@pytest.mark.parametrize("url", ["foo", "collector:4318", "http://", "http://a b", "http://h:x"])
def test_a_collector_that_is_no_url(wf: Wf, url: str) -> None:
    refused(
        wf("export-spans", "1", "--otlp", url),
        f'--otlp: "{url}" is not the URL of a collector',
        "http://collector:4318",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--role", "enroll"), "a key of role enroll needs the capabilities that it may give"),
        (
            ("--role", "event_source", "--source", "shop"),
            "a key of role event_source needs the source and the types of its events",
        ),
        (("--role", "reader", "--capability", "x"), "--capability is for the role enroll"),
        (
            ("--role", "reader", "--source", "shop"),
            "--source and --event-type are for the role event_source",
        ),
        (("--role", "reader", "--expires", "0d"), "--expires 0d is over at once"),
        (
            ("--role", "reader", "--expires", "soon"),
            '--expires: "soon" is no span of time',
        ),
    ],
)
def test_a_key_that_makes_no_sense(wf: Wf, options: tuple[str, ...], message: str) -> None:
    done = wf("key", "create", "ci", "--url", "postgresql://localhost:1/none", *options)
    assert (done.code, done.err.splitlines()[0]) == (2, f"error: {message}")
    assert done.err.splitlines()[1].startswith("hint: ")
