"""What is wrong with an object, and where; the layer above turns this into its own error."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

MAX_SHOWN = 80

NOT_READ = "unread"
"""The object could not be fetched; its content may be good."""
GONE = "gone"
"""The version that was listed is no longer there."""
OF_RUN = "run"
"""All objects of a run together are the problem, as with too many rejects."""
HEADER = "header"
"""The object's header, or a record's keys, could be read, but differ from the source's."""
UNCLEAR = "unclear"
"""A range of the object can't be read by itself; reading the whole object shows the problem."""


@dataclass(eq=False, repr=False)
class ObjectError(Exception):
    """One problem of one object: what is wrong, at which record, and what to do next.

    `line` is the 1-based line in the object on which the record starts, `byte` the 0-based
    offset of the record's first byte in the decompressed object, in its own encoding; `record`
    is its number from 1, in formats without lines. All are None if the problem is not one
    record's. `cause` is one of the constants above, or empty for any other fault of the object.
    """

    problem: str
    advice: str
    _: KW_ONLY
    line: int | None = None
    byte: int | None = None
    record: int | None = None
    cause: str = ""

    def __post_init__(self) -> None:
        super().__init__(self.problem)

    def text(self, uri: str, source: str) -> str:
        """The whole message, such as `lake.orders: object s3://b/k, line 3, byte 24: …`."""
        where = f", {self.place}" if self.place else ""
        stop = "" if self.problem.endswith("?") else "."
        subject = f"{source}: object {uri}{where}"
        return f"{subject}: {self.problem}{stop} {self.advice}"

    @property
    def place(self) -> str:
        """Where in the object, such as `line 3, byte 24`; empty if it is not one record's."""
        if self.line is not None:
            return f"line {self.line}, byte {self.byte}"
        return "" if self.record is None else f"record {self.record}"


class HeaderProblem(ObjectError):
    """A header that is not the pinned one, or can't be read: the whole object can be skipped."""


FIX_OBJECT = "Correct the object or remove it, then run again"


def excerpt(value: str | bytes, *, quoted: bool = True) -> str:
    """Text or bytes of an object for a message: escaped, and cut if long."""
    text = repr(value[: MAX_SHOWN + 1])
    if not quoted:
        text = text[1:-1]
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def not_of_type(column: str, value: str, data_type: str) -> str:
    """The message for a value, as `excerpt` returned it, that is not of its column's type."""
    article = "an" if data_type == "int" else "a"
    return f"column {column}: {value} is not {article} {data_type}"
