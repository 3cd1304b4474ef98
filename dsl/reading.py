"""From a path to text: every way in which a file can be unreadable, each as one clear sentence."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dsl.quick_class import dataclass

MAX_BYTES = 5_000_000
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SAVE_AS_UTF8 = "save it as UTF-8"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why there is no text."""

    message: str
    hint: str | None = None


def read_bytes(path: Path) -> bytes | Unreadable:
    """Reads a file of at most MAX_BYTES."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            return Unreadable("this is a directory, not a file", "name a .wf file in it")
        if not stat.S_ISREG(found.st_mode):
            return Unreadable("this is not a regular file")
        if found.st_size > MAX_BYTES:
            return _too_large(found.st_size)
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Unreadable("there is no such file", "check the path")
    except (OSError, ValueError) as error:
        return Unreadable(f"the file cannot be read: {_reason(error)}")


def decode(text: str | bytes) -> str | Unreadable:
    """Returns the text with its byte-order mark dropped and line ends as LF."""
    if isinstance(text, bytes):
        if len(text) > MAX_BYTES:
            return _too_large(len(text))
        found = _decode_bytes(text)
        if isinstance(found, Unreadable):
            return found
        text = found
    if len(text) > MAX_BYTES:
        return _too_large(len(text))
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode_bytes(data: bytes) -> str | Unreadable:
    if data[:2] in _UTF16_MARKS:
        return Unreadable("the file is UTF-16, not UTF-8", _SAVE_AS_UTF8)
    if b"\0" in data:
        if data[1:2] == b"\0" or data[:1] == b"\0":
            return Unreadable("the file seems to be UTF-16, not UTF-8", _SAVE_AS_UTF8)
        return Unreadable("the file is binary, not text", "name a .wf file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, line = data[error.start], data.count(b"\n", 0, error.start) + 1
        where = f"byte 0x{byte:02x} at offset {error.start} (line {line})"
        return Unreadable(f"the file is not UTF-8: {where}", _SAVE_AS_UTF8)


def _too_large(size: int) -> Unreadable:
    return Unreadable(
        f"the file has {size / 1_000_000:.1f} MB, and at most {MAX_BYTES // 1_000_000} MB are read",
        "split it into several files; `import` shares their types",
    )


def _reason(error: OSError | ValueError) -> str:
    """The system's reason without the path, which the message names already."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return "the path is not valid"
