"""Hides secrets in logs, errors, artifacts and tables, by replacing them with a mask.

Options are declared as secret with `option(…, secret=True)`; `options/option.py` returns their
values. Every ConfigError and SparkJobError calls `hide_logins`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

HIDDEN = "*****"
"""The mask that replaces a secret, the same as in dbt's own log."""

_SECRET_SETTING = re.compile(r"secret|password|token|credential|access\W?key", re.IGNORECASE)
_NO_SECRET_SETTING = re.compile(r"(provider(\.path)?|enabled|ratio)$", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_WORD = re.compile(r"[A-Za-z0-9_-]{1,80}")
# A URL: one or more schemes, and the text up to a character that ends the URL. Each character is
# matched once, so that the time is linear in the text's length.
_URL = re.compile(r"((?:\b[a-z][a-z0-9+.-]{0,20}://)+)([^\s\"'`<>()\[\]{},;|\\]+)", re.I)
# Texts before an @ that are no logins: a host and a slash come first, or a bucket's ARN.
_NO_LOGIN = re.compile(r"arn:|[^:]*[/?#]|[^:]*:[0-9]{1,5}[/?#]")
_LOGIN_OF_URL = re.compile(r"\A((?:[a-z][a-z0-9+.-]*://)+)(?!/).*@", re.I | re.S)


def secret_settings(conf: Mapping[str, str]) -> list[str]:
    """The values of Spark's settings whose names look like those of secrets."""
    return [
        value
        for key, value in conf.items()
        if value and _SECRET_SETTING.search(key) and not _NO_SECRET_SETTING.search(key)
    ]


def hide_secrets(secrets: Iterable[str], text: str) -> str:
    """The text with each secret hidden."""
    # The longest first, as a secret may begin with another one.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def hide_in_error(secrets: Collection[str], error: BaseException) -> None:
    """Hides each secret in the text of an error. If the error's causes show a secret, the error
    has none any more."""
    error.args = tuple(hide_secrets(secrets, a) if isinstance(a, str) else a for a in error.args)
    cause = error.__cause__ or error.__context__
    while cause is not None:
        text = _ESCAPE.sub(lambda e: chr(int(e[1], 16)) if e[1] else e[2], str(cause))
        if any(secret in form for secret in secrets for form in (text, str(cause))):
            error.__cause__ = error.__context__ = None
            return
        cause = cause.__cause__ or cause.__context__


def quoted_word(given: Any) -> str:
    """Quotes a user's value in a message if it is one word; other texts may contain a password."""
    is_word = isinstance(given, str) and _WORD.fullmatch(given)
    return repr(given) if is_word else "a text that is not shown, as it may hold a password"


def hide_logins(text: str) -> str:
    """Hides the users and passwords of the URLs in a text.

    Passwords with a space, a quote, a bracket, a comma or the like are not hidden completely, as
    these characters end a URL. Text after the first slash of a URL is kept, and so are users
    without a password, except with http and https, where they may be tokens.
    """
    return _URL.sub(_hide_login_of_url, text) if "@" in text else text


def _hide_login_of_url(url: re.Match[str]) -> str:
    schemes, after_schemes = url.groups()
    login, at, host = after_schemes.rpartition("@")
    may_be_login = ":" in login or schemes.lower().endswith(("http://", "https://"))
    if not at or not may_be_login or _NO_LOGIN.match(login):
        return url[0]
    return f"{schemes}{HIDDEN}@{host}"


def hide_login(url: str) -> str:
    """Hides a possible login in a setting that is one URL: all text before its last @."""
    return _LOGIN_OF_URL.sub(rf"\g<1>{HIDDEN}@", url)
