"""Which token a worker uses, and how it gets another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.played_gateway import Answer, Asked, Played, playing, problem
from wfsql.worker.enrolment import Credentials, Enrolment, new_token, read_secret
from wfsql.worker.gateway_source import GatewayAddress, GatewaySource
from wfsql.worker.state import Identity, StateFolder


@pytest.fixture
def played() -> Iterator[Played]:
    with playing() as made:
        made.answer = lambda _asked: Answer(body={"actions": []})
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    made = StateFolder.open(tmp_path / "state")
    assert isinstance(made, StateFolder)
    return made


def enrolment(played: Played, folder: StateFolder, **given: Any) -> Enrolment:
    return Enrolment(GatewayAddress(played.url), Credentials(**given), folder, 60)


def identity(played: Played, **changes: Any) -> Identity:
    made = {
        "worker_id": "w1", "token": "kept", "gateway": played.url, "capabilities": ("a",),
        "max_concurrency": 2,
    }  # fmt: skip
    return Identity(**{**made, **changes})


def enrol(played: Played, made: Enrolment, capabilities: list[str], concurrency: int = 2) -> None:
    source = GatewaySource(GatewayAddress(played.url), made.worker_id, made.token(), 60)
    assert made.enrol(source, capabilities, concurrency) is None
    source.close()


def test_a_new_worker_makes_up_name_and_token_and_keeps_them(
    played: Played, folder: StateFolder
) -> None:
    made = enrolment(played, folder, key="the-key")
    enrol(played, made, ["a"])
    [asked] = played.asked
    assert asked.headers["Authorization"] == "Bearer the-key"
    kept = folder.identity()
    assert kept is not None
    assert asked.json == {
        "worker_id": kept.worker_id,
        "worker_token": kept.token,
        "capabilities": ["a"],
        "max_concurrency": 2,
    }
    assert enrolment(played, folder).worker_id == kept.worker_id


def test_what_is_enrolled_already_is_not_enrolled_again(
    played: Played, folder: StateFolder
) -> None:
    folder.keep(identity(played))
    enrol(played, enrolment(played, folder, key="the-key"), ["a"])
    assert played.asked == []


@pytest.mark.parametrize(("capabilities", "concurrency"), [(["a", "b"], 2), (["a"], 3)])
def test_a_change_is_enrolled_under_the_same_token(
    played: Played, folder: StateFolder, capabilities: list[str], concurrency: int
) -> None:
    folder.keep(identity(played))
    enrol(played, enrolment(played, folder, key="the-key"), capabilities, concurrency)
    assert played.asked[0].json["worker_token"] == "kept"


def test_without_a_key_it_is_bound_to_what_it_is_enrolled_for(
    played: Played, folder: StateFolder
) -> None:
    folder.keep(identity(played))
    made = enrolment(played, folder)
    assert made.problem() is None
    assert made.kept_capabilities == ("a",)
    enrol(played, made, ["a", "b"])
    assert played.asked == []


@pytest.mark.parametrize("changes", [{"gateway": "https://other"}, {"worker_id": "w2"}])
def test_an_identity_of_another_is_not_used(
    played: Played, folder: StateFolder, changes: Any
) -> None:
    folder.keep(identity(played, **changes))
    made = enrolment(played, folder, worker_id="w1")
    assert made.problem() is not None
    assert made.token() != "kept"


def test_a_given_token_is_used_and_not_kept(played: Played, folder: StateFolder) -> None:
    made = enrolment(played, folder, worker_id="w1", token="given", key="the-key")
    enrol(played, made, ["a"])
    assert made.token() == "given"
    assert played.asked == []
    assert folder.identity() is None
    assert made.renewed() is None


def test_a_refused_token_of_a_file_is_read_again(
    played: Played, folder: StateFolder, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("one\nmore\n")
    made = enrolment(played, folder, worker_id="w1", token_file=path)
    assert made.token() == "one"
    path.write_text("two\n")
    assert made.renewed() == "two"
    path.unlink()
    assert made.renewed() is None


def test_a_refused_token_is_replaced_under_the_key(played: Played, folder: StateFolder) -> None:
    folder.keep(identity(played))
    made = enrolment(played, folder, key="the-key")
    enrol(played, made, ["a"])
    token = made.renewed()
    assert token not in {None, "kept"}
    assert played.asked[-1].json["worker_token"] == token
    kept = folder.identity()
    assert kept is not None
    assert kept.token == token


def test_a_refused_key_gives_no_token(played: Played, folder: StateFolder) -> None:
    folder.keep(identity(played))
    made = enrolment(played, folder, key="the-key")
    enrol(played, made, ["a"])
    played.answer = lambda _asked: problem(401, 20001, "no")
    assert made.renewed() is None
    kept = folder.identity()
    assert kept is not None
    assert kept.token == "kept"


def test_actions_are_asked_under_the_token_when_the_key_may_not(
    played: Played, folder: StateFolder
) -> None:
    folder.keep(identity(played))
    made = enrolment(played, folder, key="the-key")
    rows = {"actions": [{"action": "x", "capability": "a"}]}

    def answer(asked: Asked) -> Answer:
        is_key = asked.headers["Authorization"] == "Bearer the-key"
        return problem(403, "role", "no") if is_key else Answer(body=rows)

    played.answer = answer
    source = GatewaySource(GatewayAddress(played.url), "w1", "kept", 60)
    assert made.actions(source) == {"x": "a"}
    source.close()


def test_an_empty_file_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(OSError, match="is empty"):
        read_secret(tmp_path / "token")


def test_tokens_have_the_form_that_they_are_looked_up_by() -> None:
    head, identifier, secret = new_token().split("_", 2)
    assert (head, len(identifier), len(secret)) == ("wf", 12, 43)
