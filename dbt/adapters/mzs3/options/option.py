"""Options of any feature: each is declared once, as the field of a dataclass.

The field has the option's converter, its default, and whether it is secret; the text below the
field is its row in `docs/options.md`. Reading options, `did you mean` hints, the docs' tables and
hiding secrets all use this declaration. A field without an Option is no option.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from dbt.adapters.mzs3.errors import ConfigError
from dbt.adapters.mzs3.secrets import HIDDEN
from dbt.adapters.mzs3.text import did_you_mean

T = TypeVar("T")
_OPTION, _GROUP, _CHECKED, _VARIANTS = "option", "group", "checked", "variants"


@dataclass(frozen=True)
class Option:
    """An option's declaration. `convert` raises ValueError; errors show its text after the key.

    `default` is MISSING if the option is required. `blank` replaces a missing or wrong value while
    problems are gathered; None stands for the default. `key` is what users write, if not the
    field's name. `like` is another key, whose value is used if the option has none. In the docs'
    tables, the option comes after the option `after`, and `shown`, if not empty, is its default.
    `spell` converts a value to what users write. The `formats` have the option; all, if empty. A
    source keeps the first value of a `pinned` option.
    """

    convert: Callable[[Any], Any]
    default: Any = MISSING
    blank: Any = None
    secret: bool = False
    like: str = ""
    after: str = ""
    shown: str = ""
    spell: Callable[[Any], Any] = lambda value: list(value) if isinstance(value, tuple) else value
    formats: tuple[str, ...] = ()
    pinned: bool = False
    key: str = ""
    field: str = ""
    owner: type = object
    title: str = ""


def option(
    convert: Callable[[Any], Any],
    default: Any = MISSING,
    *,
    kw_only: Any = MISSING,
    **declared: Any,
) -> Any:
    """The field of an option; the arguments are those of `Option`. Reprs leave out secrets."""
    opt = Option(convert, default, **declared)
    value: Any = {"default_factory": dict} if default == {} else {"default": default}
    return field(**value, repr=not opt.secret, kw_only=kw_only, metadata={_OPTION: opt})


def group(kind: type[T], /, *, checked: bool = True, **defaults: Any) -> Any:
    """The field of a group of options, the dataclass `kind`; `defaults` replace the group's own.

    With `checked=False`, its `problems` are not gathered: the class with this field does that.
    """
    metadata = {_GROUP: (kind, defaults), _CHECKED: checked}
    return field(default_factory=lambda: kind(**defaults), metadata=metadata)


def variant(kinds: Mapping[str, type], **declared: Any) -> Any:
    """The field of an option that chooses among classes of options; the first is the default."""
    first = next(iter(kinds))

    def convert(value: Any) -> str:
        if not isinstance(value, str) or value not in kinds:
            raise ValueError(f"must be one of {', '.join(kinds)}, not {value!r}")
        return value

    opt = Option(convert, first, **declared)
    return field(default_factory=kinds[first], metadata={_OPTION: opt, _VARIANTS: kinds})


def options_of(kind: Any) -> Mapping[str, Option]:
    """All options of a class, its groups and its variants, by key, in the order of the docs."""
    return _options_of(kind)


@functools.cache
def _options_of(kind: Any) -> Mapping[str, Option]:
    options: dict[str, Option] = {}
    for opt in _all_options(kind):
        options.setdefault(opt.key, opt)
    for opt in list(options.values()):
        if opt.after in options:
            keys = [key for key in options if key != opt.key]
            keys.insert(keys.index(opt.after) + 1, opt.key)
            options = {key: options[key] for key in keys}
    return MappingProxyType(options)


def _all_options(kind: Any) -> Iterator[Option]:
    for each in fields(kind):
        if (opt := each.metadata.get(_OPTION)) is not None:
            yield replace(opt, key=opt.key or each.name, field=each.name, owner=kind)
        if _GROUP in each.metadata:
            inner, defaults = each.metadata[_GROUP]
            for opt in _all_options(inner):
                yield replace(opt, default=defaults.get(opt.key, opt.default))
        for inner in each.metadata.get(_VARIANTS, {}).values():
            yield from (replace(opt, title=inner.title) for opt in _all_options(inner))


def as_config(options: Any) -> dict[str, Any]:
    """The values of the options by key, as users write them; `read` reads them back."""
    config: dict[str, Any] = {}
    for each in fields(options):
        value, opt = getattr(options, each.name), each.metadata.get(_OPTION)
        if _GROUP in each.metadata:
            config |= as_config(value)
        elif _VARIANTS in each.metadata:
            config |= {each.name: value.name, **as_config(value)}
        elif opt is not None:
            config[opt.key or each.name] = value if value is None else opt.spell(value)
    return {key: config[key] for key in options_of(type(options)) if key in config}


def secret_values(options: Any) -> tuple[str, ...]:
    """The values of secret options that are set."""
    values = (getattr(options, o.field) for o in options_of(type(options)).values() if o.secret)
    return tuple(value for value in values if value)


def mask_secrets(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values of a class's options, with secrets hidden."""
    secret = {key for key, opt in options_of(kind).items() if opt.secret}
    return {
        key: HIDDEN if key in secret and value is not None else value
        for key, value in given.items()
    }


def read(
    kind: type[T],
    given: Mapping[str, Any],
    subject: str,
    *,
    of: str,
    within: str = "",
    refused: Mapping[str, str] = MappingProxyType({}),
    check: Callable[[T], Iterable[str]] = lambda _: (),
    **beside: Any,
) -> T:
    """Reads the given options; a key whose value is None counts as left out.

    In messages, `of` is the name of what has the options, and `within` the text before each key,
    such as `external.`. `refused` has a problem for each key that is wrong with any value;
    `beside` has values of fields that are no options. Raises ConfigError with all problems at
    once: unknown keys, wrong values, and what the class, its groups (`problems`) and `check` find.
    """
    problems = [*_unknown(given, options_of(kind), of), *refused.values()]
    given = {k: value for k, value in given.items() if value is not None and k not in refused}
    options = convert(kind, given, problems, **beside)
    problems += _problems(options, given)
    problems = [*(f"{within}{problem}" for problem in problems), *check(options)]
    if problems:
        raise ConfigError(subject, problems)
    return options


def convert(kind: type[T], given: Mapping[str, Any], problems: list[str], **beside: Any) -> T:
    """The options of the class with the given values; adds a problem for each wrong value.

    Ignores keys that the class does not have.
    """
    arguments = dict(beside)
    for each in fields(kind):  # type: ignore[arg-type]
        value = _value(each.name, each.metadata.get(_OPTION), given, problems)
        if _GROUP in each.metadata:
            inner, defaults = each.metadata[_GROUP]
            value = convert(inner, given, problems, **defaults)
        elif _VARIANTS in each.metadata:
            kinds = each.metadata[_VARIANTS]
            value = convert(kinds[value or next(iter(kinds))], given, problems)
        if value is not None:
            arguments[each.name] = value
    return kind(**arguments)


def _value(
    key: str, opt: Option | None, given: Mapping[str, Any], problems: list[str]
) -> Any | None:
    """The converted value; the option's `blank` if the value is missing or wrong."""
    if opt is None:
        return None
    key = opt.key or key
    value = given.get(key)
    if value is None and (value := given.get(opt.like)) is None:
        return opt.blank
    try:
        return opt.convert(value)
    except ValueError as exc:
        if key in given:
            has_several = type(exc) is ValueError and len(exc.args) > 1
            texts = map(str, exc.args if has_several else [exc])
            problems += (f"{key}{text if text.startswith(':') else f' {text}'}" for text in texts)
        return opt.blank


def _problems(options: Any, given: Mapping[str, Any]) -> Iterator[str]:
    """The problems that the class and its groups find."""
    for each in fields(options):
        if _VARIANTS in each.metadata or each.metadata.get(_CHECKED):
            yield from _problems(getattr(options, each.name), given)
        for other in each.metadata.get(_VARIANTS, {}).values():
            chosen = getattr(options, each.name)
            for key in options_of(other).keys() - options_of(chosen).keys() & given.keys():
                yield (
                    f"{key} is an option of {other.title}; {each.name} is {chosen.name}, so "
                    "leave it out"
                )
    if hasattr(options, "problems"):
        yield from options.problems(given)


def _unknown(given: Iterable[str], known: Mapping[str, Option], of: str) -> Iterator[str]:
    for key in given:
        if key not in known:
            meant = did_you_mean(str(key), known).rstrip() or f"known are {', '.join(known)}"
            yield f"{key} is not an option of {of}; {meant}"
