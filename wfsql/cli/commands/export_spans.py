"""`wf export-spans`: sends the traces of ended instances to an OpenTelemetry collector."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from runtime_sql.connection import RuntimeClient
from runtime_sql.failures import ApiError, DatabaseProblem
from wfsql.cli.collector import check_collector
from wfsql.cli.database import INSTANCES_HINT, good, open_client
from wfsql.cli.main import CommandError, wrong_use
from wfsql.cli.operating import MOST_ID, add_limit, integer, operator_parser
from wfsql.cli.output import counted, say, write_json
from wfsql.gateway.keys import bad_span, expiry
from wfsql.spans import Span, spans_of

NO_OTEL = 'run pip install "wfsql[otel]"'


def run(arguments: Sequence[str]) -> int:
    """Sends one span for each instance, node and attempt."""
    parser = operator_parser(
        "export-spans",
        "[ID…]",
        "Send the traces of ended instances to an OpenTelemetry collector: a span for the\n"
        "instance, each of its nodes and each attempt. Ids are worked out from those of the\n"
        "database, so what is sent twice is the same twice.",
        "wf export-spans --ended-since 5m --otlp http://collector:4318",
    )
    parser.add_argument("ids", nargs="*", type=integer(1, MOST_ID), metavar="ID")
    parser.add_argument(
        "--ended-since", metavar="TIME", help="All that have ended within this time, as 5m or 2h."
    )
    parser.add_argument(
        "--otlp",
        metavar="URL",
        help="The collector, for OTLP over HTTP; without it OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    parser.add_argument(
        "--without-attempts",
        action="store_true",
        help="No spans of attempts: the workers send theirs themselves.",
    )
    add_limit(parser, 10_000, "instances")
    options = parser.parse_args(arguments)
    if bool(options.ids) == (options.ended_since is not None):
        raise wrong_use("which instances are meant?", "give their ids, or --ended-since 5m")
    check_collector(options.otlp)
    return _export(options, _within(options.ended_since))


def _within(text: str | None) -> float | None:
    """Returns a span of time in seconds."""
    if text is None:
        return None
    now = datetime.now(UTC)
    ends = expiry(text, now)
    if ends is None:
        raise wrong_use(*bad_span("--ended-since", text))
    return (ends - now).total_seconds()


def _export(options: argparse.Namespace, seconds: float | None) -> int:
    try:
        from wfsql.otlp import exporter_to, send
    except ImportError as error:
        raise CommandError(f"a package is not installed: {error.name}", NO_OTEL) from error
    client = open_client(options.url)
    exporter = exporter_to(options.otlp)
    instances = sent = 0
    for instance_id in options.ids or _ended(client, seconds or 0.0, options.limit):
        spans = _spans(client, instance_id, with_attempts=not options.without_attempts)
        if not spans:
            say(f"instance {instance_id} has not ended; it has no spans yet")
            continue
        taken = send(spans, exporter)
        if taken < len(spans):
            raise CommandError(
                f"the collector did not take the spans of instance {instance_id}",
                "check --otlp, and that it takes OTLP over HTTP; the same call may be made again",
            )
        instances += 1
        sent += taken
    client.close()
    if options.json:
        write_json({"instances": instances, "spans": sent})
    else:
        say(f"sent {counted(sent, 'span')} of {counted(instances, 'instance')}")
    return 0


def _ended(client: RuntimeClient, seconds: float, limit: int) -> list[int]:
    from datetime import timedelta

    # By the runtime's own clock, which is that of the times in the rows.
    since = good(client.now()) - timedelta(seconds=seconds)
    return good(client.ended_since(since, limit))


def _spans(client: RuntimeClient, instance_id: int, *, with_attempts: bool) -> tuple[Span, ...]:
    instance = client.get_instance(instance_id)
    if isinstance(instance, ApiError | DatabaseProblem):
        good(instance, INSTANCES_HINT)
        raise AssertionError
    attempts = good(client.attempt_spans(instance_id)) if with_attempts else []
    return spans_of(
        good(client.database_id()), instance, good(client.execution_spans(instance_id)), attempts
    )
