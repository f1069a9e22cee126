"""Options of any feature: each is declared once, as the field of a dataclass.

The field has the option's converter, its default, and whether it is secret; the text below the
field is its row in `docs/options.md`. Reading, `did you mean` hints, the docs' tables and hiding
secrets all use this declaration. A field that is declared in another way is no option.
"""

from __future__ import annotations

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
    """An option's declaration. `convert` raises ValueError, whose texts are shown after the key.

    `default` is MISSING for a required option, whose value is `blank` while problems are gathered.
    `key` is what users write, if it is not the name of the field. Without a value, the option has
    the value of the key `like`, if that is given. The docs' tables have it after the option
    `after`, with `shown` as its default if that is not empty. `spell` converts a value to what
    users write. Only the `formats` have the option, all if empty. `pinned` options of a source
    keep their first value.
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
    """The field of an option; the arguments are those of `Option`. No repr shows a secret."""
    one = Option(convert, default, **declared)
    value: Any = {"default_factory": dict} if default == {} else {"default": default}
    return field(**value, repr=not one.secret, kw_only=kw_only, metadata={_OPTION: one})


def group(kind: type[T], /, *, checked: bool = True, **defaults: Any) -> Any:
    """The field of a group of options, `kind`; `defaults` replace the group's own.

    With `checked=False` its `problems` are not checked, as the class around it does that.
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

    one = Option(convert, first, **declared)
    return field(default_factory=kinds[first], metadata={_OPTION: one, _VARIANTS: kinds})


def options_of(kind: Any) -> dict[str, Option]:
    """All options of a class by their keys, those of its groups and variants too; in order."""
    found: dict[str, Option] = {}
    for one in _flat(kind):
        found.setdefault(one.key, one)
    for one in list(found.values()):
        if one.after in found:
            keys = [key for key in found if key != one.key]
            keys.insert(keys.index(one.after) + 1, one.key)
            found = {key: found[key] for key in keys}
    return found


def _flat(kind: Any) -> Iterator[Option]:
    for each in fields(kind):
        if (one := each.metadata.get(_OPTION)) is not None:
            yield replace(one, key=one.key or each.name, field=each.name, owner=kind)
        if _GROUP in each.metadata:
            inner, defaults = each.metadata[_GROUP]
            for one in _flat(inner):
                yield replace(one, default=defaults.get(one.key, one.default))
        for inner in each.metadata.get(_VARIANTS, {}).values():
            yield from (replace(one, title=inner.title) for one in _flat(inner))


def as_config(options: Any) -> dict[str, Any]:
    """The options' values by their keys, as users write them; `read` reads them back."""
    found: dict[str, Any] = {}
    for each in fields(options):
        value, one = getattr(options, each.name), each.metadata.get(_OPTION)
        if _GROUP in each.metadata:
            found |= as_config(value)
        elif _VARIANTS in each.metadata:
            found |= {each.name: value.name, **as_config(value)}
        elif one is not None:
            found[one.key or each.name] = value if value is None else one.spell(value)
    return {key: found[key] for key in options_of(type(options)) if key in found}


def secret_values(options: Any) -> tuple[str, ...]:
    """The values of secret options that are set."""
    found = (getattr(options, o.field) for o in options_of(type(options)).values() if o.secret)
    return tuple(value for value in found if value)


def mask_secrets(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values of a class's options, with secrets hidden."""
    secret = {key for key, one in options_of(kind).items() if one.secret}
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
    """Reads the given options; a key without a value counts as left out.

    In messages, `of` is the name of what has the options, and `within` the text before each key,
    such as `external.`. `refused` has the problem of each key that is wrong whatever its value is;
    `beside` are values of fields that are no options. Raises ConfigError with all problems at
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
    key: str, one: Option | None, given: Mapping[str, Any], problems: list[str]
) -> Any | None:
    """The converted value; the option's `blank` if there is none, or if it is wrong."""
    if one is None:
        return None
    key = one.key or key
    value = given.get(key)
    if value is None and (value := given.get(one.like)) is None:
        return one.blank
    try:
        return one.convert(value)
    except ValueError as exc:
        if key in given:
            several = type(exc) is ValueError and len(exc.args) > 1
            texts = map(str, exc.args if several else [exc])
            problems += (f"{key}{text if text.startswith(':') else f' {text}'}" for text in texts)
        return one.blank


def _problems(options: Any, given: Mapping[str, Any]) -> Iterator[str]:
    """What the class and its groups find wrong."""
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
