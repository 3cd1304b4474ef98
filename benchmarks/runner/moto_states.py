"""Runs a shape on moto's interpreter of Amazon States Language: `moto_states.py SHAPE COUNT`.

Its states are Pass, which do less than a handler of ours: a Task would call a function in a
container. The interpreter runs in this process; nothing leaves the machine.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import boto3  # type: ignore[import-not-found]
from moto import mock_aws  # type: ignore[import-not-found]
from taken import print_sample, taken_by  # type: ignore[import-not-found]

ROLE = "arn:aws:iam::123456789012:role/bench"


def definition(shape: str, count: int) -> dict[str, object]:
    """Returns a state machine of `count` states that do nothing."""
    if shape == "chain":
        names = [f"a{number}" for number in range(count)]
        states: dict[str, object] = {
            name: {"Type": "Pass", "Next": following}
            for name, following in itertools.pairwise(names)
        }
        return {"StartAt": names[0], "States": {**states, names[-1]: {"Type": "Pass", "End": True}}}
    inner = {"StartAt": "a", "States": {"a": {"Type": "Pass", "End": True}}}
    each = {
        "Type": "Map",
        "ItemsPath": "$.items",
        "MaxConcurrency": 1 if shape == "foreach" else 0,
        "ItemProcessor": inner,
        "End": True,
    }
    return {"StartAt": "each", "States": {"each": each}}


def main(shape: str, count: int) -> None:
    os.environ.update(
        AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION="us-east-1"
    )
    given = {} if shape == "chain" else {"items": list(range(count))}
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        client = boto3.client("stepfunctions")
        machine = client.create_state_machine(
            name="w", definition=json.dumps(definition(shape, count)), roleArn=ROLE
        )

        def run() -> None:
            started = client.start_execution(
                stateMachineArn=machine["stateMachineArn"], input=json.dumps(given)
            )
            while True:
                found = client.describe_execution(executionArn=started["executionArn"])
                if found["status"] != "RUNNING":
                    break
                time.sleep(0.005)
            assert found["status"] == "SUCCEEDED", found

        print_sample(taken_by(run, count))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
