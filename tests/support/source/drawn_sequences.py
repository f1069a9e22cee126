"""Sequences of what can happen to a source, drawn at random: the same for a seed."""

from __future__ import annotations

import random
from typing import Any

from support.source.model import Settings

NAMES = tuple(f"{letter}.csv" for letter in "abcdefgh")
TEXTS = {
    "id\n1\n": 6,
    "id\n2\n3\n": 6,
    "id\n4\n5\n6\n": 6,
    "": 1,
    "no\n1\n": 1,  # with another header
    "id\n7\n8,9\n": 1,  # with a record of two fields
}
STEPS = {
    "start": 1,  # the schema and the lock
    "create": 1,
    "void": 1,
    "compact": 2,
    "receive": 1,
    "note": 2,
    "plan": 2,
    "fetch": 2,
    "commit": 3,
    "fail": 1,
    "acknowledge": 2,
    "after commit": 2,
}
END = "end"
Operation = tuple[Any, ...]


def settings_of(random: random.Random) -> Settings:
    scan, queue = random.choice([(True, False), (False, True), (True, True)])
    return Settings(
        scan=scan,
        queue=queue,
        on_overwrite=random.choice(["fail", "ignore", "append", "replace"]),
        skips=random.random() < 0.3,
        rejects=random.random() < 0.3,
        deletes=random.random() < 0.15,
        max_objects=random.choice([None, None, 2, 4]),
        max_bytes=random.choice([None, None, None, 20]),
    )


EVENTS = {"put": 6, "delete": 1, "notify": 3, "double": 1, "lose": 1, "come back": 0.5}
DECISIONS = {"nothing": 6, "retry": 2, "skip": 2, "retract": 2, "declare": 2}
RUNS = {"run": 3, "kill": 2}


def operations_of(random: random.Random, rounds: int) -> list[Operation]:
    """In each round some things happen in S3, perhaps the user decides something, and there is a
    run, which may be killed; the last one is not."""
    operations: list[Operation] = []
    for number in range(rounds):
        chosen = [one for one in EVENTS if number or one == "put"]
        weights = [EVENTS[one] for one in chosen]
        operations += [
            _operation(random, kind)
            for kind in random.choices(chosen, weights, k=random.randint(2, 9))
        ]
        for kinds in (DECISIONS, RUNS if number + 1 < rounds else {"run": 1}):
            (kind,) = random.choices([*kinds], [*kinds.values()])
            operations.append(_operation(random, kind))
    return [one for one in operations if one != ("nothing",)]


def _operation(random: random.Random, kind: str) -> Operation:
    if kind == "put":
        (text,) = random.choices([*TEXTS], [*TEXTS.values()])
        return kind, random.choice(NAMES), text, random.choice(["told", "told", "not told"])
    if kind == "delete":
        return kind, random.choice(NAMES)
    if kind in ("notify", "double", "lose", "retry", "skip", "retract"):
        return kind, random.randrange(8)
    if kind == "kill":
        (step,) = random.choices([*STEPS], [*STEPS.values()])
        return kind, step, random.choice([0, 1, 1, 2, END])
    if kind == "declare":
        key = random.choice(["on_overwrite", "max_objects", "scan", "queue", "deletes"])
        return kind, key, getattr(settings_of(random), key)
    return (kind,)
