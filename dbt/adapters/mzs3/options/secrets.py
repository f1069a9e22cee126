"""Keeps secrets out of what is shown: an option says that it is one (`option(…, secret=True)`).

Users and passwords in URLs are taken out by `text.without_logins`, which every ConfigError and
SparkJobError calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.mzs3.options.option import options_of

HIDDEN = "***"
_SECRET_SETTING = re.compile(r"secret|password|token|credential|access\W?key", re.IGNORECASE)


def secret_values(options: Any) -> tuple[str, ...]:
    """The values of secret options, as far as there are any."""
    found = (getattr(options, o.field) for o in options_of(type(options)).values() if o.secret)
    return tuple(value for value in found if value)


def masked(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given for the options of a class, with secrets hidden."""
    secret = {key for key, one in options_of(kind).items() if one.secret}
    return {
        key: HIDDEN if key in secret and value is not None else value
        for key, value in given.items()
    }


def secret_settings(conf: Mapping[str, str]) -> Iterable[str]:
    """The values of Spark's settings whose names say that they are secret."""
    return [value for key, value in conf.items() if value and _SECRET_SETTING.search(key)]


def without(secrets: Iterable[str], text: str) -> str:
    """The text with each secret replaced."""
    for secret in secrets:
        text = text.replace(secret, "*****")
    return text
