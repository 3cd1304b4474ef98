"""`--watch`: shows the same thing again and again, until Ctrl-C or until it cannot change any more.

On a terminal the picture is drawn over; in a pipe it is written again when it has changed. What is
shown writes to stdout and stderr as ever: both are caught here, by a file that says of itself what
stdout would say, so that widths and colours are the same.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

Draw = Callable[[], bool]
"""Writes the picture once; returns whether it may still change."""


class _Caught(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def show(draw: Draw, seconds: float | None) -> int:
    """Draws once, or every so many seconds; returns the exit code."""
    if seconds is None:
        draw()
        return 0
    try:
        if sys.stdout.isatty():
            _over_and_over(draw, seconds)
        else:
            _when_changed(draw, seconds)
    except KeyboardInterrupt:
        # That is how watching ends.
        return 0
    return 0


def _over_and_over(draw: Draw, seconds: float) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(
        console=Console(),
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
        while True:
            caught = _Caught(is_terminal=True)
            with redirect_stdout(caught), redirect_stderr(caught):
                goes_on = draw()
            text = Text.from_ansi(caught.getvalue().rstrip("\n"), no_wrap=True)
            if goes_on:
                text.append(f"\nevery {seconds:g} s; Ctrl-C ends it", style="dim")
            live.update(text, refresh=True)
            if not goes_on:
                return
            time.sleep(seconds)


def _when_changed(draw: Draw, seconds: float) -> None:
    last: tuple[str, str] | None = None
    while True:
        out, err = _Caught(is_terminal=False), _Caught(is_terminal=False)
        with redirect_stdout(out), redirect_stderr(err):
            goes_on = draw()
        now = (out.getvalue(), err.getvalue())
        if now != last:
            sys.stdout.write(now[0])
            sys.stdout.flush()
            sys.stderr.write(now[1])
            sys.stderr.flush()
            last = now
        if not goes_on:
            return
        time.sleep(seconds)
