"""Our events and warnings in dbt's log. A warning that is an error by dbt's flags fails its node
or operation at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from dbt.adapters.events import adapter_types_pb2
from dbt.adapters.events.base_types import InfoLevel
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.base_types import EventLevel
from dbt_common.events.contextvars import get_node_info
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import EventCompilationError
from google.protobuf import descriptor_pb2, message_factory, struct_pb2  # type: ignore[import-untyped]

from dbt.adapters.mzs3.errors import Mzs3Error
from dbt.adapters.mzs3.events import CopyEvent

logger = AdapterLogger("mzs3")

AS_ERRORS = "a warning is an error here, by --warn-error or warn_error_options"


def _message_type() -> Any:
    """A protobuf message like those of dbt's events, but its data is a JSON object."""
    template, data = adapter_types_pb2.AdapterEventInfoMsg.DESCRIPTOR, struct_pb2.Struct.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(
        name="dbt_mzs3/copy_log_event.proto", package="dbt_mzs3", syntax="proto3"
    )
    file.dependency.extend([template.file.name, data.file.name])
    message = file.message_type.add()
    template.CopyToProto(message)
    message.name = "CopyLogEventMsg"
    message.field[1].type_name = f".{data.full_name}"
    pool = template.file.pool
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("dbt_mzs3.CopyLogEventMsg"))


_Message = _message_type()


class CopyLogEvent(InfoLevel):
    """An event of an export in dbt's log.

    With `--log-format json`, `data` has its `name`, such as `mzs3.copy.progress`, its fields, the
    message as `msg`, and dbt's `node_info`. Numbers are doubles, as in all JSON of protobuf.
    """

    # dbt finds the two protobuf types of an event here, by the name of its class.
    PROTO_TYPES_MODULE = SimpleNamespace(  # type: ignore[assignment]
        CopyLogEvent=struct_pb2.Struct,
        CopyLogEventMsg=_Message,
        AdapterEventWarning=struct_pb2.Struct,
        AdapterEventWarningMsg=_Message,
    )

    def code(self) -> str:
        """The event's code, which none of dbt's own events has."""
        return "MZS3"

    def message(self) -> str:
        """The line of the log."""
        return str(self.pb_msg["msg"])


class AdapterEventWarning(CopyLogEvent):
    """A warning of an export. In `warn_error_options`, all warnings of adapters have this name."""


class Warnings:
    """Logs warnings, and collects those that are errors by dbt's flags; thread-safe.

    With `--warn-error` or `warn_error_options`, dbt raises an error when a warning is logged; that
    would interrupt an export or its clean-up.
    """

    def __init__(self) -> None:
        self.errors: list[str] = []

    def warn(self, text: str) -> None:
        """Logs a warning."""
        self._fire(partial(logger.warning, text), text)

    def tell(self, event: CopyEvent) -> None:
        """Logs an event; on a terminal, progress has a bar."""
        message = event.message_with_bar if sys.stdout.isatty() else event.message
        node = get_node_info()
        about = {"node_info": node} if node.get("node_name") else {}
        kind = AdapterEventWarning if event.level == "warn" else CopyLogEvent
        logged = kind(name=event.name, msg=message, **event.fields, **about)
        self._fire(partial(fire_event, logged, level=EventLevel(event.level)), message)

    def _fire(self, fire: Callable[[], None], text: str) -> None:
        try:
            fire()
        except EventCompilationError:
            self.errors.append(text)


@contextmanager
def warnings_of(what: str) -> Iterator[Warnings]:
    """Yields Warnings for a block; raises Mzs3Error at its end if some are errors by dbt's flags.
    If the block fails itself, they are logged instead."""
    warnings = Warnings()
    try:
        yield warnings
    except BaseException:
        for text in warnings.errors:
            logger.error(text)  # noqa: TRY400 - dbt shows the failure
        raise
    if warnings.errors:
        raise Mzs3Error("\n".join([*warnings.errors, f"{what}: {AS_ERRORS}; what was done stays"]))
