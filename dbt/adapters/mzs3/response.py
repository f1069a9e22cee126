"""What dbt is told of an operation: its response, events, and what an interrupted run left."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events import adapter_types_pb2
from dbt.adapters.events.base_types import InfoLevel
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    message_factory,
    struct_pb2,
)

from dbt.adapters.mzs3.events import CopyEvent

INTERRUPTED = "interrupted by the user"


@dataclass
class CopyResponse(AdapterResponse):
    """An export that is committed: the log shows `COPY n`, n the rows in S3.

    Its fields arrive in `adapter_response` of run_results.json.
    `location` and `manifest` are S3 URIs, `as_of` is the run's start in ms since the epoch.
    """

    location: str | None = None
    manifest: str | None = None
    files_written: int | None = None
    bytes_written: int | None = None
    as_of: int | None = None


def _message_type() -> Any:
    """A message of dbt's log whose data is any JSON object: dbt's own have fixed fields."""
    common = adapter_types_pb2.AdapterEventInfoMsg.DESCRIPTOR.fields_by_name["info"].message_type
    fields = {"info": common, "data": struct_pb2.Struct.DESCRIPTOR}
    file = descriptor_pb2.FileDescriptorProto(
        name="dbt_mzs3/copy_log_event.proto", package="dbt_mzs3", syntax="proto3"
    )
    message = file.message_type.add(name="CopyLogEventMsg")
    for number, (name, kind) in enumerate(fields.items(), start=1):
        file.dependency.append(kind.file.name)
        message.field.add(
            name=name,
            number=number,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
            type_name=f".{kind.full_name}",
        )
    common.file.pool.AddSerializedFile(file.SerializeToString())
    found = common.file.pool.FindMessageTypeByName("dbt_mzs3.CopyLogEventMsg")
    return message_factory.GetMessageClass(found)


class CopyLogEvent(InfoLevel):
    """An event of an export in dbt's log.

    With `--log-format json`, `data` has its `name`, such as `mzs3.copy.progress`, its fields, the
    message as `msg`, and dbt's `node_info`. Numbers are doubles, as in all JSON of protobuf.
    """

    # dbt looks the two types of an event up here, by the name of its class.
    PROTO_TYPES_MODULE = SimpleNamespace(  # type: ignore[assignment]
        CopyLogEvent=struct_pb2.Struct, CopyLogEventMsg=_message_type()
    )

    @classmethod
    def of(cls, event: CopyEvent, message: str) -> CopyLogEvent:
        """The event, to be shown as `message`."""
        node = get_node_info()
        about = {"node_info": node} if node.get("node_name") else {}
        return cls(name=event.name, msg=message, **event.fields(), **about)

    def code(self) -> str:
        """dbt's events all have one; letters tell adapters' from its own."""
        return "MZS3"

    def message(self) -> str:
        """What people read."""
        return str(self.pb_msg["msg"])


class Remains:
    """What is left of the jobs of an interrupted run; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[str] = []
        self._said: list[str] = []

    @contextmanager
    def running(self, job: str) -> Iterator[None]:
        """Put around a job, to know whether it had the time to end."""
        with self._lock:
            self._running.append(job)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(job)

    def say(self, text: str) -> None:
        """What a job that was cancelled has left, which dbt itself would not show."""
        with self._lock:
            if text not in self._said:
                self._said.append(text)

    def raise_if_interrupted(self) -> None:
        """To call where dbt tidies up: raises all that was said, in the place of an interrupt.

        Of an interrupt dbt shows the stack trace, of this the text.
        """
        with self._lock:
            cut_off = [f"{job} was cut off before it had ended" for job in self._running]
            said, self._said = [*self._said, *cut_off], []
        interrupt = sys.exc_info()[1]
        if isinstance(interrupt, KeyboardInterrupt):
            raise DbtRuntimeError("\n".join([INTERRUPTED, *said])) from interrupt
