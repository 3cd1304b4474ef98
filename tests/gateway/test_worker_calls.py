"""What workers call, through a gateway that listens on a socket."""

from __future__ import annotations

from tests.gateway.conftest import Running


def test_a_worker_claims_submits_and_the_workflow_ends(gateway: Running) -> None:
    instance = gateway.start(context={"amount": 3})

    first = gateway.claim()
    answer = gateway.call(first, "submit", result_code=0, output={"paid": True})
    second = gateway.claim()
    end = gateway.call(second, "submit", result_code=0)

    assert first["instance_id"] == instance
    assert first["node_key"] == "first"
    assert first["action"] == "t.do"
    assert first["input"] == {"amount": 3}
    assert first["attempt"] == 1
    assert answer.json() == {
        "accepted": True,
        "reason": "OK",
        "instance_status": "RUNNING",
        "next_ready_count": 1,
    }
    assert end.json()["instance_status"] == "SUCCEEDED"
