"""Globs over keys, checked against a matcher that tries everything."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dbt.adapters.mzs3.source.executor.pattern import Pattern

keys = st.text("ab/*.", max_size=6)


@pytest.mark.parametrize(
    ("pattern", "takes", "leaves"),
    [
        ("**", ["a", "a/b.csv", ".hidden", "a\nb"], []),
        ("*", ["a", ""], ["a/b"]),
        ("*.csv", ["a.csv", ".csv"], ["a/b.csv", "a.csv.gz", "aXcsv"]),
        ("**/*.csv", ["a.csv", "x/a.csv", "x/y/a.csv"], ["a.txt", "x/a.csv/b"]),
        ("2024/**", ["2024/a", "2024/b/c"], ["2024", "2023/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "a/b/c"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("***", ["abc"], ["a/b"]),
        ("?.csv", ["a.csv", "é.csv"], [".csv", "ab.csv", "/.csv"]),
        ("{a,b}.csv", ["a.csv", "b.csv"], ["c.csv", "{a,b}.csv"]),
        ("x{,.gz}", ["x", "x.gz"], ["x."]),
        ("{a,b{c,d}}", ["a", "bc", "bd"], ["b", "ac"]),
        ("{**/,}a", ["a", "x/a"], ["xa"]),
        ("*{,x}*", ["ab", "axb"], ["a/b"]),
        ("[ab]1", ["a1", "b1"], ["c1", "ab1"]),
        ("[!ab]1", ["c1"], ["a1", "b1", "/1"]),
        ("[a-c]", ["b"], ["d", "-"]),
        ("[!a-c]", ["d"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[]]", ["]"], ["a"]),
        ("[!]]", ["a"], ["]"]),
        ("a[/]b", [], ["a/b"]),
        ("[*][?][[][{]", ["*?[{"], ["aaaa"]),
        ("a,b", ["a,b"], ["a"]),
        ("a+(b)^$.csv", ["a+(b)^$.csv"], ["aab.csv"]),
        ("A", ["A"], ["a"]),
        ("ä/*.csv", ["ä/ö.csv"], ["a/ö.csv"]),
    ],
)
def test_what_a_pattern_takes(pattern, takes, leaves):
    compiled = Pattern(pattern)
    assert [key for key in takes if not compiled.matches(key)] == []
    assert [key for key in leaves if compiled.matches(key)] == []


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        ("**", ""),
        ("a/b.csv", "a/b.csv"),
        ("2024/**/*.csv", "2024/"),
        ("a?c", "a"),
        ("a[*]b*", "a*b"),
        ("a[bc]", "a"),
        ("x/{2023,2024}/*", "x/202"),
        ("{ab,b}", ""),
    ],
)
def test_the_literal_prefix(pattern, prefix):
    assert Pattern(pattern).literal_prefix == prefix


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "is empty; leave it out to take every object"),
        ("/a", "starts with /; it is matched against the key below the location"),
        ("a{b", "has a { at character 2 that is not closed"),
        ("{a,{b}", "has a { at character 1 that is not closed"),
        ("a}", "has a } at character 2 without its opening bracket; write [}] for the character "
               "itself"),
        ("a[b", "has a [ at character 2 that is not closed"),
        ("[]", "has a [ at character 1 that is not closed"),
        ("a]", "has a ] at character 2 without its opening bracket; write []] for the character "
               "itself"),
        ("[z-a]", "has the range z-a in the set at character 1, which runs backwards"),
        ("a\\*", "has a backslash at character 2, which escapes nothing here; write a special "
                 "character in brackets, such as [*]"),
        ("{a,b}" * 11, "stands for more than 1024 patterns"),
    ],
)  # fmt: skip
def test_what_is_no_pattern(pattern, says):
    with pytest.raises(ValueError) as raised:
        Pattern(pattern)
    assert str(raised.value) == says


pieces = st.sampled_from(
    ["a", "b", "/", "*", "?", "**", "**/", "/**", "[ab]", "[!a]", "[*]", "{a,b}", "{,/**}",
     "{a*,b/}", ".", "{[ab],?{/,}}"]
)  # fmt: skip


@given(st.lists(pieces, min_size=1, max_size=5).map("".join), keys)
@example("*{,/**}*/", "a/b/")
def test_it_takes_what_a_slow_matcher_takes(pattern, key):
    if pattern.startswith("/"):
        return
    compiled = Pattern(pattern)
    taken = any(_slow(plain, key, at_start=True) for plain in _braces(pattern))
    assert compiled.matches(key) == taken
    if taken:
        assert key.startswith(compiled.literal_prefix)


@given(st.text("ab/.é ", min_size=1, max_size=8).filter(lambda text: text[0] != "/"))
def test_a_pattern_without_special_characters_takes_itself(key):
    compiled = Pattern(key)
    assert compiled.matches(key)
    assert compiled.literal_prefix == key


def _braces(pattern):
    """Innermost braces first, one alternative at a time."""
    # A brace in brackets is none: the pieces above have none.
    close = pattern.find("}")
    if close < 0:
        return [pattern]
    start = pattern.rfind("{", 0, close)
    options = pattern[start + 1 : close].split(",")
    return [
        plain
        for option in options
        for plain in _braces(_joined(_joined(pattern[:start], option), pattern[close + 1 :]))
    ]


def _joined(left, right):
    """Stars on both sides of a brace are a run of any name: as three are, and two are not."""
    return f"{left}*{right}" if left.endswith("*") and right.startswith("*") else left + right


def _slow(pattern, key, at_start):
    if not pattern:
        return not key
    if pattern[0] == "*":
        rest = pattern.lstrip("*")
        if len(pattern) - len(rest) == 2 and at_start and not rest:
            return True
        if len(pattern) - len(rest) == 2 and at_start and rest[0] == "/":
            skips = [i + 1 for i, char in enumerate(key) if char == "/"]
            return any(_slow(rest[1:], key[i:], at_start=True) for i in [0, *skips])
        run = key.partition("/")[0]
        return any(_slow(rest, key[i:], at_start=False) for i in range(len(run) + 1))
    if not key:
        return False
    if pattern[0] == "[":
        inside, _, rest = pattern[1:].partition("]")
        member = key[0] != "/" and (
            key[0] not in inside[1:] if inside[0] == "!" else key[0] in inside
        )
        return member and _slow(rest, key[1:], at_start=False)
    same = key[0] != "/" if pattern[0] == "?" else key[0] == pattern[0]
    return same and _slow(pattern[1:], key[1:], at_start=pattern[0] == "/")
