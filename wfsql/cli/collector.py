"""The --otlp option of `wf worker` and `wf export-spans`: where a collector of traces is."""

from __future__ import annotations

from urllib.parse import urlsplit

from wfsql.cli.main import wrong_use


def check_collector(url: str | None) -> None:
    """Ends the command when `--otlp` names no collector."""
    if url is None:
        return
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname)
        parts.port  # noqa: B018  (raises ValueError)
    except ValueError:
        is_right = False
    if not is_right or any(c.isspace() for c in url):
        raise wrong_use(
            f'--otlp: "{url}" is not the URL of a collector', "write it as http://collector:4318"
        )
