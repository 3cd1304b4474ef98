"""`wf start`: makes an instance of a deployed workflow and starts it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from compiler import json_values
from runtime_sql.connection import InputRow, Instance, RuntimeClient
from runtime_sql.failures import ApiError
from wfsql.cli.context import ContextFileOption, ContextOption, read_context
from wfsql.cli.database import JsonOption, UrlOption, good, open_client
from wfsql.cli.inputs import right_form, unknown_keys
from wfsql.cli.main import CommandError
from wfsql.cli.output import did_you_mean, say, write, write_json
from wfsql.cli.views import ENDED, instance_json, say_outcome

_FIRST_LOOK_SECONDS = 0.02
_LAST_LOOK_SECONDS = 1.0
_UNCLAIMED_SECONDS = 3.0
_INPUT_MISFIT = 10015
_KEY_TAKEN = 20010
_UNKNOWN = 20002


def command(
    workflow: Annotated[
        str, typer.Argument(metavar="WORKFLOW", help="The workflow's name.", show_default=False)
    ],
    url: UrlOption = None,
    context: ContextOption = None,
    context_file: ContextFileOption = None,
    business_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Your own name for the instance; a repeat finds the first."
        ),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            min=1, max=2**31 - 1, metavar="N", help="Start this version, not the active one."
        ),
    ] = None,
    priority: Annotated[
        int,
        typer.Option(
            min=-(2**31),
            max=2**31 - 1,
            metavar="N",
            help="The priority of its tasks; higher is claimed first.",
        ),
    ] = 0,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the instance has ended; write its output.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Start an instance of a deployed workflow and write its id.

    With --wait the exit code is 1 when the instance did not succeed.

    Example:  wf start order_fulfilment --context '{"order_id": "A1"}' --wait
    """
    given = read_context(context, context_file)
    client = open_client(url)
    answer = client.create_and_start(
        workflow,
        json_values.dumps(given),
        version=version,
        business_key=business_key,
        priority=priority,
    )
    if isinstance(answer, ApiError) and answer.code == _INPUT_MISFIT:
        raise _misfit(answer, given, good(client.inputs(workflow, version)))
    if isinstance(answer, ApiError) and answer.code == _KEY_TAKEN:
        hint = "use another business key, or leave the context as it was"
        raise CommandError(f"{answer.message} ({answer.code})", hint)
    if isinstance(answer, ApiError) and answer.code == _UNKNOWN:
        raise _unknown(answer, workflow, good(client.workflow_names()))
    made = good(answer)
    names = [row.name for row in good(client.inputs(workflow, version))]
    for line in unknown_keys(given, names):
        say(f"note: {line}")
    if not made.created:
        say(f"instance {made.instance_id} of this business key was there already")
    if wait:
        return _wait_and_report(client, workflow, made.instance_id, json)
    if json:
        found = good(client.get_instance(made.instance_id))
        names = good(client.output_names(made.instance_id))
        write_json(instance_json(found, names) | {"created": made.created})
    else:
        write(str(made.instance_id))
    return 0


def _unknown(failure: ApiError, workflow: str, names: Sequence[str]) -> CommandError:
    others = [name for name in names if name != workflow]
    near = None if workflow in names else did_you_mean(workflow, others)
    hint = near or 'put it there with "wf deploy FILE"; names are exact'
    return CommandError(f"{failure.message} ({failure.code})", hint)


def _misfit(
    failure: ApiError, given: Mapping[str, Any], inputs: Sequence[InputRow]
) -> CommandError:
    """Returns the error for inputs that do not fit, with what the workflow takes."""
    hint = "; ".join(unknown_keys(given, [row.name for row in inputs])) or right_form(given, inputs)
    return CommandError(f"{failure.message} ({failure.code})", hint)


def _wait_and_report(client: RuntimeClient, workflow: str, instance_id: int, as_json: bool) -> int:
    say(f"{workflow} {instance_id}: started, waiting for its end")
    try:
        found = _wait(client, instance_id)
    except KeyboardInterrupt:
        say(f'{workflow} {instance_id} goes on; see it with "wf show {instance_id}"')
        raise
    names = good(client.output_names(instance_id))
    if as_json:
        write_json(instance_json(found, names))
    else:
        say_outcome(found, names)
    return 0 if found.status == "SUCCEEDED" else 1


def _wait(client: RuntimeClient, instance_id: int) -> Instance:
    pause = _FIRST_LOOK_SECONDS
    warn_at: float | None = time.monotonic() + _UNCLAIMED_SECONDS
    while True:
        found = good(client.get_instance(instance_id))
        if found.status in ENDED:
            return found
        if warn_at is not None and time.monotonic() >= warn_at:
            warn_at = None
            _say_what_waits(good(client.waiting_capabilities(instance_id)))
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST_LOOK_SECONDS)


def _say_what_waits(capabilities: list[str]) -> None:
    if not capabilities:
        return
    say(f"no worker has claimed its tasks yet; they need: {', '.join(capabilities)}")
    say("hint: start a worker with: wf worker --handlers MODULE")
