"""What `@node` makes of a class: what the standard decorator would, but for the time it takes."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError

import pytest

from dsl.nodes import Block, KeyStep, Name, Sequence
from dsl.source import Span

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
