"""Sequences of what can happen to a source, done to it and to the model of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote_plus

import pytest

from dbt.adapters.mzs3.errors import SourceError
from dbt.adapters.mzs3.ledger import compaction
from dbt.adapters.mzs3.ledger.lease import SourceLock
from dbt.adapters.mzs3.source.operations.object_actions import ObjectAction, act
from dbt.adapters.mzs3.source.queue import inbox
from dbt.adapters.mzs3.source.queue.inbox import Inbox
from support.source.drawn_sequences import END, Operation
from support.source.model import Died as ModelDied
from support.source.model import Failed, Known, Report, Settings, SourceModel

WRITES = ("INSERT", "CREATE", "DROP", "ALTER")


class Died(BaseException):
    """What no code catches: from here on the run does nothing any more.

    `handles` are those of the messages that it had in its hands.
    """

    def __init__(self) -> None:
        self.handles: list[str] = []


@contextmanager
def dead_runs_leave_everything() -> Iterator[None]:
    """A run that ends in Died puts nothing in order: not its lock, and not its messages.

    For all threads, as are some settings by which small sequences get far.
    """
    give_lock_back, give_messages_back = SourceLock.__exit__, Inbox.close

    def leave_lock(lock: Any, *of: Any) -> None:
        if isinstance(sys.exc_info()[1], Died):
            lock._ended.set()
            lock._thread.release()
        else:
            give_lock_back(lock, *of)

    def leave_messages(box: Any) -> None:
        exc = sys.exc_info()[1]
        if isinstance(exc, Died):
            box._stop_hiding()
            exc.handles += box._handles.values()
        else:
            give_messages_back(box)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceLock, "__exit__", leave_lock)
        patch.setattr(Inbox, "close", leave_messages)
        patch.setattr(inbox, "WAIT_S", 0)
        patch.setattr(compaction, "COMPACT_AFTER", 5)
        patch.setattr(compaction, "KEEP_MS", 0)
        yield


@dataclass
class Message:
    """S3's news of one change to an object; `sequencer` grows with each change."""

    name: str
    kind: str
    sequencer: int

    def body(self, bucket: str) -> str:
        event = "ObjectCreated:Put" if self.kind == "put" else "ObjectRemoved:Delete"
        found = {"key": quote_plus(f"orders/{self.name}"), "sequencer": f"{self.sequencer:08X}"}
        record = {"eventSource": "aws:s3", "eventName": f"s3:{event}", "eventTime": "now"}
        record["s3"] = {"bucket": {"name": bucket}, "object": found}  # type: ignore[assignment]
        return json.dumps({"Records": [record]})


class Trial:
    """One source with its bucket and its queue, and the model of it; they go side by side."""

    def __init__(self, lake: Any, sqs: Any, settings: Settings) -> None:
        self.lake, self.sqs = lake, sqs
        self.model = SourceModel(settings)
        self.url = sqs.create_queue(QueueName=f"{lake.bucket}-events")["QueueUrl"]
        self.pending: list[Message] = []  # what S3 has not sent yet
        self.sent: list[Message] = []  # what a run would receive
        self.hidden: list[Message] = []  # what killed runs have received
        self.handles: list[str] = []  # of those
        self.changes = 0
        self.exists = False
        self.log: list[str] = []

    def do(self, operation: Operation) -> None:
        kind, *arguments = operation
        line = f"{kind} {' '.join(map(repr, arguments))}"
        self.log.append(line)
        told: str | None = getattr(self, f"_{kind.replace(' ', '_')}")(*arguments)
        self.log[-1] = f"{line}: {told}" if told else line

    # What happens in S3, and what a queue tells of it.

    def _put(self, name: str, text: str, news: str) -> None:
        self.lake.put(name, text)
        self.model.put(name, text)
        self._changed(name, "put")
        if news == "told":
            self._send(self.pending.pop())

    def _delete(self, name: str) -> None:
        if self.model.bucket.pop(name, None) is not None:
            self.lake.remove(name)
            self._changed(name, "removed")

    def _changed(self, name: str, kind: str) -> None:
        self.changes += 1
        self.pending.append(Message(name, kind, self.changes))

    def _notify(self, which: int) -> None:
        """Whichever of the pending ones: they arrive late, and in any order."""
        if self.pending:
            self._send(self.pending.pop(which % len(self.pending)))

    def _double(self, which: int) -> None:
        if self.pending:
            self._send(self.pending[which % len(self.pending)])

    def _lose(self, which: int) -> None:
        if self.pending:
            self.pending.pop(which % len(self.pending))

    def _send(self, message: Message) -> None:
        self.sqs.send_message(QueueUrl=self.url, MessageBody=message.body(self.lake.bucket))
        self.sent.append(message)

    def _come_back(self) -> None:
        """What killed runs had received is visible again."""
        for handle in self.handles:
            self.sqs.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=handle, VisibilityTimeout=0
            )
        self.sent += self.hidden
        self.hidden, self.handles = [], []

    # What a user does.

    def _declare(self, key: str, value: Any) -> None:
        changed = replace(self.model.settings, **{key: value})
        if changed.scan or changed.queue:
            self.model.settings = changed

    def _retry(self, which: int) -> str:
        return self._act(ObjectAction.RETRY, self.model.retry, lambda known: True, which)

    def _skip(self, which: int) -> str:
        return self._act(ObjectAction.SKIP, self.model.skip, lambda known: known.is_open, which)

    def _retract(self, which: int) -> str:
        return self._act(
            ObjectAction.RETRACT, self.model.retract, lambda known: known.visible, which
        )

    def _act(
        self,
        action: ObjectAction,
        of_model: Callable[[str], None],
        makes_sense: Callable[[Known], bool],
        which: int,
    ) -> str:
        objects = self.model.objects
        fitting = [name for name in sorted(objects) if makes_sense(objects[name])]
        if not self.exists or not fitting:
            return "of nothing"
        name, error = fitting[which % len(fitting)], None
        try:
            self._declared()
            act(self.lake.spark, self.lake.definition(), action, [name])
        except SourceError as exc:
            error = str(exc)
        expected = _outcome(lambda: of_model(name))
        assert (error is None) == (expected is None), f"{error} where {expected!r} was expected"
        self._compare()
        return error or f"done to {name}"

    def _run(self) -> str:
        return self._ingest(None)

    def _kill(self, step: str, which: int | str) -> str:
        return self._ingest((step, which))

    def _ingest(self, moment: tuple[str, int | str] | None) -> str:
        self._declared()
        ended: set[str] = set()
        died, error, report = False, None, None
        with self._dying_at(moment, ended) as on_step:
            try:
                report = self.lake.ingest(on_step=on_step)
            except Died as exc:
                died = True
                self.handles += exc.handles
            except SourceError as exc:
                error = str(exc)
        self.exists = self.exists or "create" in ended
        said = {one.name: one.kind for one in sorted(self.sent, key=lambda one: one.sequencer)}
        outcome: Report | Failed | ModelDied | None = None
        try:
            outcome = self.model.run(said, ended, died)
        except (Failed, ModelDied) as exc:
            outcome = exc
        self._follow_messages(ended, died, error)
        self._follow_deletions(died)
        if error is not None:
            assert isinstance(outcome, Failed), f"{error} where {outcome!r} was expected"
        elif report is not None:
            found = Report(report.objects, report.skipped, report.waiting_objects)
            assert found == outcome, f"{found} where {outcome!r} was expected"
        self._compare(states=not died)
        return error or (f"killed after {sorted(ended)}" if died else str(report))

    def _declared(self) -> None:
        settings = self.model.settings
        ways: list[Any] = ["bucket_scan"] if settings.scan else []
        ways += [{"sqs_notifications": self.url}] if settings.queue else []
        self.lake.external = {
            "header": ["id"],
            "discover": ways,
            "on_overwrite": settings.on_overwrite,
            "on_header_mismatch": "skip_object" if settings.skips else "fail",
            "on_bad_row": "reject" if settings.rejects else "fail",
            "after_commit": "delete" if settings.deletes else "keep",
            "max_objects_per_run": settings.max_objects,
            "max_bytes_per_run": settings.max_bytes,
        }

    @contextmanager
    def _dying_at(
        self, moment: tuple[str, int | str] | None, ended: set[str]
    ) -> Iterator[Callable[[str], None]]:
        """A run in this dies at that moment, with nothing put in order that a dead one leaves.

        Of each step the moments are its begin, 0, each statement that changes something, and its
        end.
        """
        now: dict[str, Any] = {"step": "start", "number": 0}

        def pass_moment(which: int | str) -> None:
            if (now["step"], which) == moment:
                raise Died

        def on_step(name: str) -> None:
            what, _, step = name.partition(" ")
            if what == "begin":
                now.update(step=step, number=0)
                pass_moment(0)
            else:
                ended.add(step)
                pass_moment(END)

        spark = self.lake.spark
        sql = spark.sql

        def watched(statement: str, *arguments: Any, **named: Any) -> Any:
            # How a lock is given back is no part of what a run that ended has done.
            if statement.startswith(WRITES) and not statement.startswith("DROP VIEW"):
                now["number"] += 1
                pass_moment(now["number"])
            return sql(statement, *arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spark, "sql", watched)
            yield on_step

    # What came of it.

    def _follow_messages(self, ended: set[str], died: bool, error: str | None) -> None:
        if not self.model.settings.queue or error is not None:
            return
        if "acknowledge" in ended:
            self.sent = []
        elif died and len(self.handles) > len(self.hidden):
            self.hidden, self.sent = self.hidden + self.sent, []
        assert len(self.handles) == len(self.hidden), "a run has not received every message"

    def _follow_deletions(self, died: bool) -> None:
        client, bucket = self.lake.client, self.lake.bucket
        found = client.list_objects_v2(Bucket=bucket, Prefix="orders/").get("Contents", [])
        there = {one["Key"].removeprefix("orders/") for one in found}
        gone = set(self.model.bucket) - there
        if died:
            assert gone <= self.model.deletable(), f"{gone} deleted"
            for name in gone:
                del self.model.bucket[name]
        assert there == set(self.model.bucket), f"{there} are there, not {self.model.bucket}"

    def _compare(self, *, states: bool = True) -> None:
        if not self.exists:
            return
        found, shown = self._look()
        assert found == self.model.rows(), f"{found} where {self.model.rows()} was expected"
        if states:
            expected = {name: known.shown_states for name, known in self.model.objects.items()}
            assert shown.keys() == expected.keys(), f"{shown} where {expected} was expected"
            assert all(shown[n] in expected[n] for n in shown), f"{shown} where {expected}"

    def _look(self) -> tuple[list[tuple[str, int, str]], dict[str, str]]:
        """The rows, and the state of every object, in one query."""
        relations = self.lake.relations
        seen = self.lake.spark.sql(
            f"SELECT _mz_object AS object, _mz_record AS record, id FROM {relations.source} "
            f"UNION ALL SELECT object, NULL, state FROM {relations.objects}"
        ).collect()
        start = len(f"s3://{self.lake.bucket}/orders/")
        rows = [(r["object"][start:], r["record"], r["id"]) for r in seen if r["record"]]
        return sorted(rows), {r["object"][start:]: r["id"] for r in seen if not r["record"]}


def _outcome(action: Callable[[], None]) -> Failed | None:
    try:
        action()
    except Failed as exc:
        return exc
    return None


def run_sequence(lake: Any, sqs: Any, settings: Settings, operations: list[Operation]) -> None:
    """Raises AssertionError with all that was done, after the first difference."""
    trial = Trial(lake, sqs, settings)
    lake.spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        for operation in operations:
            trial.do(operation)
    except AssertionError as exc:
        done = "\n".join(f"  {line}" for line in trial.log)
        raise AssertionError(f"{exc}\n{settings}\n{done}") from exc
