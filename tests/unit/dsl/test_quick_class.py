"""What the quick decorator makes of a class: what the standard one would, but for its time."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError

import pytest

from dsl.nodes import Block, KeyStep, Name, Sequence
from dsl.quick_class import dataclass, field, replace
from dsl.source import SourceFile, Span

NAME = Name(text="pack", span=Span(1, 5))


def test_the_place_takes_no_part_in_equality_and_hash() -> None:
    moved = Name(text="pack", span=Span(7, 11))
    assert (moved == NAME, hash(NAME) == hash(moved)) == (True, True)


def test_another_value_or_class_is_unequal() -> None:
    assert Name(text="send", span=NAME.span) != NAME
    assert KeyStep(key="pack", span=NAME.span) != NAME


def test_nothing_can_be_assigned_or_deleted() -> None:
    with pytest.raises(FrozenInstanceError):
        NAME.text = "send"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del NAME.text


def test_a_field_without_a_default_must_be_given() -> None:
    with pytest.raises(TypeError, match="span"):
        Name(text="pack")  # type: ignore[call-arg]


def test_defaults_are_filled_in() -> None:
    body = Block(variables=(), statements=(), span=Span(0, 2))
    node = Sequence(key=None, body=body, span=Span(0, 2))
    assert (node.attributes, node.on_error, body.collects) == ((), None, ())


def test_there_are_slots_and_no_dict() -> None:
    assert not hasattr(NAME, "__dict__")


def test_a_copy_equals_its_original() -> None:
    copied = copy.deepcopy(NAME)
    assert (copied, copied.span) == (NAME, NAME.span)
    assert copied is not NAME


def test_it_is_shown_with_its_fields() -> None:
    assert repr(NAME) == "Name(text='pack', span=Span(start=1, end=5))"


@dataclass(slots=True)
class _Basket:
    owner: str
    things: list[str] = field(default_factory=list)
    price: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.price = len(self.things)


def test_each_value_has_a_default_of_its_own() -> None:
    first, second = _Basket("a"), _Basket("b")
    first.things.append("egg")
    assert second.things == []


def test_a_field_that_is_not_given_is_filled_in_afterwards() -> None:
    assert _Basket("a", ["egg"]).price == 1
    with pytest.raises(TypeError, match="price"):
        _Basket("a", price=3)  # type: ignore[call-arg]


def test_a_value_that_can_change_has_no_hash() -> None:
    basket = _Basket("a")
    basket.owner = "b"
    assert basket == _Basket("b")
    with pytest.raises(TypeError, match="unhashable"):
        hash(basket)


def test_positions_match_in_a_pattern() -> None:
    match Span(1, 5):
        case Span(start, end):
            assert (start, end) == (1, 5)


def test_replace_makes_another_value() -> None:
    assert replace(NAME, text="send") == Name(text="send", span=NAME.span)
    assert replace(_Basket("a", ["egg"]), owner="b") == _Basket("b", ["egg"])


def test_the_standard_functions_know_its_fields() -> None:
    assert [f.name for f in dataclasses.fields(NAME)] == ["text", "span"]
    assert dataclasses.replace(NAME, text="send") == replace(NAME, text="send")
    assert dataclasses.asdict(Span(1, 5)) == {"start": 1, "end": 5}


@pytest.mark.parametrize("value", [NAME, Span(1, 5), _Basket("a", ["egg"])])
def test_it_can_be_pickled(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_source_can_be_copied_with_what_it_worked_out() -> None:
    copied = copy.copy(SourceFile("x.wf", "a\nb"))
    assert copied.position(2) == SourceFile("x.wf", "a\nb").position(2)
