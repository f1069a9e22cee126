"""What a source is to come to, in plain Python: the rules of docs/s3-csv-source, object by object.

There are no epochs here, no tables and no queries: of each object what a user may know of it, and
what each thing that happens makes of that. A run is the steps of it that came to their end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

Rows = list[tuple[int, str]]
"""The records of one version of an object: their numbers from 1, and the value of each."""

Step = Callable[[str], None]
"""Raises Died if the run was killed before the end of that step."""

SETTLED = ("fetched", "skipped", "retracted", "ignored")
WAITING = ("listed", "retried")


class Failed(Exception):
    """The run, or the run-operation, ends in an error."""


class Died(Exception):
    """The run was killed before the step that comes next."""


@dataclass(frozen=True)
class Settings:
    """What the source declares."""

    scan: bool = True
    queue: bool = False
    on_overwrite: str = "fail"
    skips: bool = False
    rejects: bool = False
    deletes: bool = False
    max_objects: int | None = None
    max_bytes: int | None = None


@dataclass
class Known:
    """One object, as the source knows it.

    `batches` are its visible rows, `etag_of_rows` that of the latest of them. `state` and `etag`
    are what was settled last, or what is waited for since `since`. `tried` is the ETag with which
    a run that failed had planned the object after that.
    """

    batches: list[Rows] = field(default_factory=list)
    etag_of_rows: str | None = None
    state: str | None = None
    etag: str | None = None
    since: int = 0
    tried: str | None = None
    due: bool = False

    @property
    def visible(self) -> bool:
        return bool(self.batches)

    @property
    def waits(self) -> bool:
        return self.state in WAITING

    @property
    def is_open(self) -> bool:
        return self.waits or self.tried is not None

    @property
    def is_looked_at(self) -> bool:
        """It failed, or is to be taken again; what only waits for its turn is not."""
        return self.tried is not None or self.state == "retried"

    @property
    def shown_etag(self) -> str | None:
        return self.etag if self.tried is None else self.tried

    @property
    def shown_states(self) -> set[str | None]:
        """A run fails on one object, and not always on the same one."""
        return {self.state} if self.tried is None else {"failed", "listed"}

    def settle(self, state: str, etag: str | None) -> None:
        self.state, self.etag, self.tried = state, etag, None


@dataclass(frozen=True)
class Task:
    """An object that a run is to take: with which ETag, and whether in place of its rows."""

    name: str
    etag: str
    size: int
    replaces: bool


@dataclass(frozen=True)
class Report:
    """What a run did: objects fetched and skipped, and those left for later."""

    objects: int = 0
    skipped: int = 0
    waiting: int = 0


def etag_of(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


class SourceModel:
    """A source of one column, `id`, whose header is declared; and the bucket it is over."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.bucket: dict[str, str] = {}
        self.texts: dict[str, str] = {}  # of every ETag there ever was
        self.objects: dict[str, Known] = {}
        self.clock = 0
        self.has_committed = False

    def put(self, name: str, text: str) -> None:
        self.bucket[name] = self.texts[etag_of(text)] = text

    # What is to be seen.

    def rows(self) -> list[tuple[str, int, str]]:
        return sorted(
            (name, number, value)
            for name, known in self.objects.items()
            for batch in known.batches
            for number, value in batch
        )

    # Run-operations.

    def retry(self, name: str) -> None:
        """The next run takes it as it is then, in place of the rows it has."""
        known = self._object(name)
        if known.shown_etag is None or not (known.visible or known.state != "removed"):
            raise Failed
        self.clock += 1
        known.settle("retried", known.shown_etag)
        known.since = self.clock

    def skip(self, name: str) -> None:
        """What has failed or waits is not taken as it is now; rows from before stay."""
        known = self._object(name)
        if not known.is_open:
            raise Failed
        known.settle("skipped", known.shown_etag)

    def retract(self, name: str) -> None:
        """Its rows are out, and it is not taken again as it is now."""
        known = self._object(name)
        if not known.visible:
            raise Failed
        known.batches, known.etag_of_rows = [], None
        known.settle("retracted", known.shown_etag)

    def _object(self, name: str) -> Known:
        if name not in self.objects:
            raise Failed
        return self.objects[name]

    # Runs.

    def run(self, told: Mapping[str, str], ended: Collection[str], died: bool) -> Report:
        """A run to which a queue told of these objects that they were `put` or `removed`.

        Raises Failed or Died, whatever `died` says, after the steps that had come to their end.
        """

        def step(name: str) -> None:
            if died and name not in ended:
                raise Died

        if self.settings.queue:
            step("receive")
            if not self.settings.scan:
                # What no message tells of again is looked at as if one did.
                again = {name: "put" for name, one in self.objects.items() if one.is_looked_at}
                told = {**again, **told}
            self._hear(told)
        tasks, notes, refused = self._decide(told)
        if refused:
            self._refuse(refused, tasks, step)
        self.clock += 1
        waiting_now = self._throttled(tasks)
        waiting = len(tasks) - len(waiting_now)
        if notes or (waiting and any(not self._is_noted(task) for task in tasks)):
            step("note")
            self._note(notes, tasks if waiting else [])
        report = Report(waiting=waiting)
        if waiting_now:
            step("plan")
            report = self._take(waiting_now, waiting, step)
        if self.settings.queue:
            step("acknowledge")
        if self.settings.deletes:
            step("after commit")
            self._delete_due()
        return report

    def _hear(self, told: Mapping[str, str]) -> None:
        """Of what is gone the rows stay; what else was wanted of it is done with."""
        for name, kind in told.items():
            if name in self.bucket:
                continue
            known = self.objects.get(name)
            if known is None:
                if kind == "put":
                    self.objects[name] = Known(state="removed")
            elif known.visible or known.is_open:
                if known.state in SETTLED:
                    known.tried = None
                elif known.visible:
                    known.settle("fetched", known.etag_of_rows)
                else:
                    known.settle("removed", known.etag or known.tried)

    def _decide(self, told: Mapping[str, str]) -> tuple[list[Task], dict[str, Known], list[Task]]:
        """What to take, what is to be noted as settled, and what is overwritten and an error."""
        names = set(self.bucket) if self.settings.scan else set(told) & set(self.bucket)
        tasks: list[Task] = []
        notes: dict[str, Known] = {}
        refused: list[Task] = []
        for name in sorted(names | set(self.objects)):
            known = self.objects.get(name, Known())
            if name in names:
                etag = etag_of(self.bucket[name])
            elif known.is_open and not self.settings.scan:
                assert known.shown_etag is not None
                etag = known.shown_etag
            else:
                if known.is_open:
                    notes[name] = self._gone(known)
                continue
            task = Task(name, etag, len(self.texts[etag]), known.visible)
            mode = self.settings.on_overwrite
            if known.state in SETTLED and known.etag == etag:
                if known.is_open:
                    notes[name] = Known(state=known.state, etag=etag)
            elif known.state == "retried":
                tasks.append(task)
            elif known.visible and known.etag_of_rows == etag:
                if known.is_open:
                    notes[name] = Known(state="fetched", etag=etag)
            elif not known.visible or mode == "replace":
                tasks.append(task)
            elif mode == "append":
                tasks.append(Task(name, etag, task.size, replaces=False))
            elif mode == "ignore":
                notes[name] = Known(state="ignored", etag=etag)
            else:
                refused.append(task)
        return tasks, notes, refused

    def _gone(self, known: Known) -> Known:
        if known.state in SETTLED:
            return Known(state=known.state, etag=known.etag)
        if known.visible:
            return Known(state="fetched", etag=known.etag_of_rows)
        return Known(state="removed", etag=known.etag or known.tried)

    def _refuse(self, refused: list[Task], tasks: list[Task], step: Step) -> None:
        """With the rest of what was to be taken: no message tells of it again."""
        forgotten = [task for task in tasks if not self._is_remembered(task)]
        if forgotten and not self.settings.scan:
            self.clock += 1
            step("note")
            self._note({}, forgotten)
        if any(self.objects[task.name].tried != task.etag for task in refused):
            step("fail")
            for task in refused:
                self.objects[task.name].tried = task.etag
        raise Failed

    def _throttled(self, tasks: list[Task]) -> list[Task]:
        """The longest waiting first, by their keys, as far as the limits go; one at least."""

        def turn(task: Task) -> tuple[int, str]:
            known = self.objects.get(task.name, Known())
            return (known.since if known.waits else self.clock, task.name)

        taken: list[Task] = []
        limits = self.settings
        for task in sorted(tasks, key=turn)[: limits.max_objects]:
            total = sum(one.size for one in taken) + task.size
            if taken and limits.max_bytes is not None and total > limits.max_bytes:
                break
            taken.append(task)
        return taken

    def _is_noted(self, task: Task) -> bool:
        known = self.objects.get(task.name, Known())
        return known.waits and known.etag == task.etag

    def _is_remembered(self, task: Task) -> bool:
        known = self.objects.get(task.name, Known())
        return self._is_noted(task) or (known.is_open and known.shown_etag == task.etag)

    def _note(self, notes: Mapping[str, Known], backlog: list[Task]) -> None:
        for name, noted in notes.items():
            assert noted.state is not None
            self.objects[name].settle(noted.state, noted.etag)
        for task in backlog:
            if not self._is_noted(task):
                known = self.objects.setdefault(task.name, Known())
                known.settle("retried" if known.state == "retried" else "listed", task.etag)
                known.since = self.clock

    def _take(self, tasks: list[Task], waiting: int, step: Step) -> Report:
        read = {task.name: self._read(task) for task in tasks}
        if any(rows is None for rows in read.values()) or (
            not self.has_committed and self._is_of_no_use(tasks, read)
        ):
            step("fail of an object")
            for task in tasks:
                self.objects.setdefault(task.name, Known()).tried = task.etag
            raise Failed
        step("commit")
        self.has_committed = True
        skipped = 0
        for task in tasks:
            known = self.objects.setdefault(task.name, Known())
            rows = read[task.name]
            if isinstance(rows, str):
                known.settle("skipped", task.etag)
                skipped += 1
                continue
            assert rows is not None
            known.batches = [rows] if task.replaces else [*known.batches, rows]
            known.etag_of_rows = task.etag
            known.due = self.settings.deletes
            known.settle("fetched", task.etag)
        return Report(len(tasks) - skipped, skipped, waiting)

    def _is_of_no_use(self, tasks: list[Task], read: Mapping[str, Rows | str | None]) -> bool:
        """Whether a first run would do nothing but skip objects, or reject records."""
        taken = [task for task in tasks if read[task.name] != "skipped"]
        rows = sum(len(read[task.name] or ()) for task in taken)
        records = sum(len(self.texts[task.etag].splitlines()[1:]) for task in taken)
        return not taken or (records > rows == 0)

    def _read(self, task: Task) -> Rows | str | None:
        """The object's records; `skipped`; or None for an error."""
        text = self.bucket.get(task.name)
        if text is None or etag_of(text) != task.etag:
            return None
        if not text:
            return []
        header, *records = text.splitlines()
        if header != "id":
            return "skipped" if self.settings.skips else None
        good = [(n, record) for n, record in enumerate(records, 1) if "," not in record]
        return good if len(good) == len(records) or self.settings.rejects else None

    def deletable(self) -> set[str]:
        """Objects that may be deleted: their rows are visible, and nothing else is wanted."""
        return {
            name
            for name, known in self.objects.items()
            if known.due
            and known.visible
            and not known.is_open
            and name in self.bucket
            and etag_of(self.bucket[name]) == known.etag_of_rows
        }

    def _delete_due(self) -> None:
        for name in self.deletable():
            del self.bucket[name]
        for known in self.objects.values():
            known.due = False
