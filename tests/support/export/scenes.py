"""What exports to one location may find there, and do to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from support.export.simulated import Run, reading, recovering
from support.interleavings import Ask

SINGLE = {"single_file": "all.csv"}
OTHER_SINGLE = {"single_file": "other.csv"}
PARTITIONS: Any = {"options": {"partition_by": ["d"]}, "parts": 1}


@dataclass(frozen=True)
class Scene:
    """Runs that have uploaded their files over what was there before, and what comes beside.

    If `expires`, an upload of the first run is aborted at any time, as lifecycle rules do.
    """

    runs: tuple[Run, ...]
    before: tuple[Run, ...] = ()
    beside: tuple[Any, ...] = ()
    expires: bool = False


@dataclass(frozen=True)
class Then:
    """Whole runs one after the other; what becomes of the last one is what becomes of all."""

    runs: tuple[Any, ...]

    def __call__(self, ask: Ask) -> Any:
        for run in self.runs[:-1]:
            try:
                run(ask)
            except Exception as exc:
                if "gone" in str(exc):
                    raise
        return self.runs[-1](ask)


FIRST = Run("a"), Run("b", "overwrite")
OVER = Run("a", "overwrite"), Run("b", "overwrite")
OVER_SINGLE = tuple(replace(run, parts=1, options=SINGLE) for run in OVER)
OLD = Run("old")
# Its file has as many bytes as those of the runs that overwrite it.
OLD_SINGLE = Run("o", parts=1, options=SINGLE)
FOLDERS = (
    Run("a", "overwrite", folders=("d=1/", "d=2/"), **PARTITIONS),
    Run("b", "overwrite", folders=("d=2/", "d=3/"), **PARTITIONS),
)
OLD_FOLDERS = Run("old", folders=("d=1/", "d=4/"), **PARTITIONS)
PAIRS = {
    "first exports": Scene(FIRST),
    "overwrites": Scene(OVER, (OLD,)),
    "overwrites of a single file": Scene(OVER_SINGLE, (OLD_SINGLE,)),
    "first exports of a single file": Scene(
        (replace(OVER_SINGLE[0], mode="fail"), OVER_SINGLE[1])
    ),
    "overwrites of partitions": Scene(FOLDERS, (OLD_FOLDERS,)),
    "partitions of which both have one alike": Scene(
        (
            Run("a", "overwrite", folders=("d=1/", "d=2/"), same=("d=1/0",), **PARTITIONS),
            Run("b", "overwrite", folders=("d=1/", "d=3/"), same=("d=1/0",), **PARTITIONS),
        ),
        (Run("old", folders=("d=0/", "d=3/"), **PARTITIONS),),
    ),
    "first exports of which both have one part alike": Scene(
        (Run("a", same=("0",)), Run("b", same=("0",)))
    ),
    "overwrites of a single file with the same rows": Scene(
        tuple(replace(run, same=("0",)) for run in OVER_SINGLE), (OLD_SINGLE,)
    ),
    "a resumed export and the one that it resumes": Scene(
        (Run("a", "resume"), Run("a", "resume", ids="again"))
    ),
}
RECOVERED = {
    name: Scene(scene.runs[:1], scene.before, (recovering,))
    for name, scene in PAIRS.items()
    if "resumed" not in name and "alike" not in name
}
ONE_FILE = Scene((Run("a", parts=1),), beside=(recovering,))
LATE = {
    "a late overwrite": Scene(
        (replace(OVER[0], parts=1),),
        (replace(OLD, parts=1),),
        (Then((Run("b", "overwrite", 1), Run("c", "overwrite", 1))),),
    ),
    "a late first export": Scene(
        (Run("a", parts=1),), (), (Then((Run("b", "overwrite", 1), Run("c", "overwrite", 1))),)
    ),
    "a late overwrite, and a name that is chosen again": Scene(
        (replace(OVER_SINGLE[0], options=OTHER_SINGLE),),
        (OLD_SINGLE,),
        (
            Then(
                (
                    Run("b", "overwrite", 1, options=OTHER_SINGLE),
                    Run("c", "overwrite", 1, options=SINGLE),
                )
            ),
        ),
    ),
}
EXPIRED = {
    "an overwrite of a single file": Scene(
        OVER_SINGLE[:1], (OLD_SINGLE,), (replace(OVER_SINGLE[1], name="b"),), expires=True
    ),
    "an overwrite": Scene(
        (replace(OVER[0], parts=1),), (replace(OLD, parts=1),), (Run("b", "overwrite", 1),), True
    ),
    "a first export": Scene((Run("a", parts=1),), (), (Run("b", parts=1),), expires=True),
}
# The file that is complete by then has a name that the other run chooses, too.
EXPIRED_OF_TWO = {
    "an overwrite": Scene(
        OVER[:1], (replace(OLD, parts=1),), (Run("b", "overwrite"),), expires=True
    ),
    "a first export": Scene(FIRST[:1], (), (Run("b", "overwrite"),), expires=True),
}
READ = {
    "an overwrite": Scene(OVER[:1], (OLD,), (reading,)),
    "an overwrite of a single file": Scene(OVER_SINGLE[:1], (OLD_SINGLE,), (reading,)),
    "an overwrite of partitions": Scene(FOLDERS[:1], (OLD_FOLDERS,), (reading,)),
}
READ_LATE = Scene(
    (Run("b", "overwrite", 1),),
    (replace(OLD, parts=1),),
    (reading, Then((Run("c", "overwrite", 1), Run("d", "overwrite", 1)))),
)
NOTHING_NEW = Scene(
    (
        Run("b", "overwrite", 1, ("d=1/",), PARTITIONS["options"]),
        Run("a", "overwrite", 0, (), PARTITIONS["options"]),
    ),
    (Run("old", folders=("d=0/",), **PARTITIONS),),
    (Then((recovering, Run("c", "overwrite", 1, ("d=1/",), PARTITIONS["options"]))),),
)
