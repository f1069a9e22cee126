"""Keeps secrets out of logs, errors, artifacts and tables: the mask, and all that puts it there.

An option says that it is secret (`option(…, secret=True)`): `options/option.py` has the values of
those. Users and passwords in URLs are hidden by `hide_logins`, which every ConfigError and
SparkJobError calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "*****"
"""What stands for a secret, in dbt's own log too."""

_SECRET_SETTING = re.compile(r"secret|password|token|credential|access\W?key", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_-]{1,80}")
# The schemes of a URL, which may be several, and what follows them up to where a text goes on. All
# of a URL is looked at once, so that the time is that of the text's length.
_URL = re.compile(r"((?:\b[a-z][a-z0-9+.-]{0,20}://)+)([^\s\"'`<>()\[\]{},;|\\]+)", re.I)
# After the name of a host, or of a bucket that is an ARN.
_NO_LOGIN = re.compile(r"arn:|[^:]*[/?#]|[^:]*:[0-9]{1,5}[/?#]")
_LOGIN_OF_URL = re.compile(r"\A((?:[a-z][a-z0-9+.-]*://)+)(?!/).*@", re.I | re.S)


def secret_settings(conf: Mapping[str, str]) -> list[str]:
    """The values of Spark's settings whose names say that they are secret."""
    return [value for key, value in conf.items() if value and _SECRET_SETTING.search(key)]


def hide_secrets(secrets: Iterable[str], text: str) -> str:
    """The text with each secret hidden."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def quoted_word(given: Any) -> str:
    """What a user has given, if it is a word; any other text may hold a password."""
    is_word = isinstance(given, str) and _WORD.fullmatch(given)
    return repr(given) if is_word else "a text that is not shown, as it may hold a password"


def hide_logins(text: str) -> str:
    """A text that quotes others', with the users and passwords of the URLs in it hidden.

    As far as a text tells where a URL ends: a password with a space, a quote, a bracket, a comma
    or the like is not found whole. What follows the first slash of a URL is left alone, as are
    users without a password, but for those of http and https, which may be tokens.
    """
    return _URL.sub(_hide_login_of_url, text) if "@" in text else text


def _hide_login_of_url(url: re.Match[str]) -> str:
    schemes, rest = url.groups()
    login, at, host = rest.rpartition("@")
    may_be_one = ":" in login or schemes.lower().endswith(("http://", "https://"))
    if not at or not may_be_one or _NO_LOGIN.match(login):
        return url[0]
    return f"{schemes}{HIDDEN}@{host}"


def hide_login(url: str) -> str:
    """A setting that is one URL, with what may be a login hidden: all before its last @."""
    return _LOGIN_OF_URL.sub(rf"\g<1>{HIDDEN}@", url)
