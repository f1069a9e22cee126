"""Every order in which the requests of several runs can reach one store, with faults.

A *program* is ordinary code that gets a function `ask` and sends all its requests through it. It
must be deterministic: what it asks next depends only on the answers it had. So a program need not
be suspended: to learn what it asks after some answers, it is run again from its beginning with
these answers, and stopped at the first request that has none. That is done once for each list of
answers, whatever the others did in between.

A *store* holds a state, which is any hashable value, and says what a request makes of it.

What a run can suffer, each before or at any of its requests:

- a stall of any length: all orders are tried;
- a crash: its requests end;
- a request that fails without effect, as the store could not, or would not;
- a lost answer: the request takes effect, and the program gets a time-out;
- a repeated request: it takes effect, its answer is lost, and the client sends it again by itself;
- a late request: the program gets a time-out, and the request takes effect at any time after that,
  or never;
- a late attempt: the request takes effect, and once more at any time after that, as the client had
  sent it twice.
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)
Request = tuple[Any, ...]
Ask = Callable[..., Any]
Program = Callable[[Ask], Any]

CRASHED = "crashed"
ALL_FAULTS = ("crash", "refused", "lost", "repeated")
GIVEN_UP, SENT_TWICE = "given up", "sent twice"
"""The last two, for stores whose `can_be_late` says of which requests."""
DECLINED = "declined"
"""For stores that say in which words: `declined` has what becomes of a request."""


@dataclass(frozen=True)
class Failed:
    """An answer that is raised in the program."""

    error: Exception

    @functools.cached_property
    def key(self) -> str:
        """The same for answers that programs can't tell from each other."""
        return f"{self.error!r} {vars(self.error)}"

    @functools.cached_property
    def after_retries(self) -> Failed:
        """The answer if the client has asked before by itself."""
        error: Any = copy.copy(self.error)
        if not getattr(error, "retries", 1):
            error.retries = 1
        return Failed(error)


class Store(Protocol[State]):
    """What requests are sent to.

    A *private* request is one whose place among the requests of others makes no difference to
    anybody: it is sent as soon as it is reached, and no fault befalls it.
    """

    refused: Failed
    lost: Failed

    def is_private(self, request: Request) -> bool:
        """Whether it can be sent at once."""

    def changes(self, request: Request) -> bool:
        """Whether it may have an effect, so that a lost answer is not the same as a refusal."""

    def apply(self, state: State, actor: int, request: Request) -> tuple[State, Any]:
        """The state after a request, and its answer, which is a `Failed` to be raised."""


class _Paused(BaseException):
    """No error: the program has no answer yet."""


@dataclass(eq=False)
class Step:
    """Where a program is: at a request, or at its end with an outcome."""

    number: int
    answers: tuple[Any, ...]
    request: Request | None
    outcome: Any = None
    after: dict[Any, Step] = field(default_factory=dict)


class Runner:
    """One program, and every step of it that was ever reached."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._count = 0
        self.first = self._reached(())

    def next(self, step: Step, answer: Any) -> Step:
        """The step that follows when the request of this one is answered so."""
        key = answer.key if isinstance(answer, Failed) else answer
        found = step.after.get(key)
        if found is None:
            found = step.after[key] = self._reached((*step.answers, answer))
        return found

    def _reached(self, answers: tuple[Any, ...]) -> Step:
        waiting: list[Request] = []
        given = iter(answers)

        def ask(*request: Any) -> Any:
            if waiting:
                raise _Paused
            try:
                answer = next(given)
            except StopIteration:
                waiting.append(request)
                raise _Paused from None
            if isinstance(answer, Failed):
                # Else an error that is raised again and again keeps the frames of every time.
                raise answer.error.with_traceback(None)
            return answer

        outcome: Any = None
        try:
            outcome = self._program(ask)
        except _Paused:
            pass
        except Exception as exc:
            outcome = exc.with_traceback(None)
        self._count += 1
        return Step(self._count, answers, waiting[0] if waiting else None, outcome)


@dataclass(frozen=True)
class _Actor:
    """One run in the middle of an exploration; `again` if its last request is to be repeated."""

    step: Step
    again: bool = False
    crashed: bool = False

    @property
    def is_over(self) -> bool:
        return self.crashed or self.step.request is None

    @property
    def outcome(self) -> Any:
        return CRASHED if self.crashed else self.step.outcome

    @property
    def key(self) -> tuple[int, bool, bool]:
        return self.step.number, self.again, self.crashed


class _Budget(NamedTuple):
    """The faults that may still happen, and how often runs may give way; `last` went on last.

    `late` are requests under way that their clients have given up on, by actor.
    """

    faults: int
    switches: int | None = None
    last: int | None = None
    late: tuple[tuple[int, Request], ...] = ()


@dataclass
class Explored:
    """How much was tried: orders of requests, the different situations in them, and ends."""

    orders: int = 0
    situations: int = 0
    ends: int = 0

    def __str__(self) -> str:
        return (
            f"{self.orders:,} interleavings, {self.situations:,} different situations, "
            f"{self.ends:,} ends"
        )


class Exploration(Generic[State]):
    """Runs of programs against one store.

    `check_state` is called with every state that is reached, `check_end` with the state and the
    outcomes once nobody can go on: what a program returned or raised, or `CRASHED`. Both raise
    AssertionError, to which the requests that led there are added.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        store: Store[State],
        start: State,
        check_state: Callable[[State], None],
        check_end: Callable[[State, tuple[Any, ...]], None],
        faults: Sequence[str] = ALL_FAULTS,
    ) -> None:
        self._runners = [Runner(program) for program in programs]
        self._store = store
        self._start = start
        self._check_state = check_state
        self._check_end = check_end
        self._faults = tuple(faults)
        self._numbers: dict[State, int] = {}

    def exhaustively(self, most_faults: int, most_switches: int | None = None) -> Explored:
        """Every order of requests, with up to so many faults in each.

        Situations that are equal, whatever led to them, are looked at once, and counted as often
        as they are reached. With `most_switches`, only orders in which a run gives way to another
        so many times while it could go on.
        """
        explored = Explored()
        orders: dict[Hashable, int] = {}
        actors = tuple(_Actor(runner.first) for runner in self._runners)
        root = (self._start, actors, _Budget(most_faults, most_switches))
        trail: list[_Event] = []
        # By hand instead of by recursion: (situation, its successors yet to visit, orders so far).
        stack: list[list[Any]] = [[self._key(*root), self._successors(*root), 0]]
        self._look(root, trail, explored)
        while stack:
            top = stack[-1]
            following = next(top[1], None)
            if following is None:
                stack.pop()
                if trail:
                    trail.pop()
                orders[top[0]] = max(top[2], 1)
                if stack:
                    stack[-1][2] += orders[top[0]]
                continue
            event, situation = following
            key = self._key(*situation)
            if key in orders:
                top[2] += orders[key]
                continue
            trail.append(event)
            self._look(situation, trail, explored)
            stack.append([key, self._successors(*situation), 0])
        explored.orders = orders[self._key(*root)]
        return explored

    def at_random(self, times: int, most_faults: int, seed: int) -> Explored:
        """So many orders by chance, each with up to so many faults."""
        explored = Explored()
        chance = random.Random(seed)
        seen: set[Hashable] = set()
        for _ in range(times):
            actors = tuple(_Actor(runner.first) for runner in self._runners)
            situation = (self._start, actors, _Budget(chance.randint(0, most_faults)))
            trail: list[_Event] = []
            while True:
                key = self._key(*situation)
                if key not in seen:
                    seen.add(key)
                    self._look(situation, trail, explored)
                following = self._some_successor(chance, *situation)
                if following is None:
                    break
                event, situation = following
                trail.append(event)
            explored.orders += 1
        return explored

    def _some_successor(
        self, chance: random.Random, state: State, actors: tuple[_Actor, ...], left: _Budget
    ) -> Any:
        going = [number for number, actor in enumerate(actors) if not actor.is_over]
        if not going:
            return None
        number = chance.choice(going)
        ways = self._ways(state, actors, number, left, left.faults > 0)
        # Faults in a twentieth of all requests, so that runs get far enough to meet.
        plain = ways[:1] if chance.random() < 0.95 else ways
        return chance.choice(plain)

    def _look(self, situation: Any, trail: list[_Event], explored: Explored) -> None:
        state, actors, _ = situation
        explored.situations += 1
        try:
            self._check_state(state)
            if all(actor.is_over for actor in actors):
                explored.ends += 1
                self._check_end(state, tuple(actor.outcome for actor in actors))
        except AssertionError as exc:
            ends = [f"{n}: {actor.outcome!r}" for n, actor in enumerate(actors) if actor.is_over]
            raise AssertionError("\n".join([str(exc), *map(str, trail), *ends])) from exc

    def _key(self, state: State, actors: tuple[_Actor, ...], left: _Budget) -> Hashable:
        number = self._numbers.setdefault(state, len(self._numbers))
        return number, tuple(actor.key for actor in actors), left

    def _successors(
        self, state: State, actors: tuple[_Actor, ...], left: _Budget
    ) -> Iterator[tuple[_Event, Any]]:
        going = [number for number, actor in enumerate(actors) if not actor.is_over]
        private = [n for n in going if self._store.is_private(self._request(actors[n]))]
        if private:
            yield from self._ways(state, actors, private[0], left, with_faults=False)
            return
        for number in going:
            after = left
            if left.switches is not None:
                gives_way = left.last in going and left.last != number
                if gives_way and left.switches == 0:
                    continue
                after = left._replace(switches=left.switches - gives_way, last=number)
            yield from self._ways(state, actors, number, after, left.faults > 0)
        for at, (number, request) in enumerate(left.late):
            changed, answer = self._store.apply(state, number, request)
            after = left._replace(late=(*left.late[:at], *left.late[at + 1 :]))
            yield _Event(number, request, ", late", answer), (changed, actors, after)

    @staticmethod
    def _request(actor: _Actor) -> Request:
        assert actor.step.request is not None
        return actor.step.request

    def _ways(
        self,
        state: State,
        actors: tuple[_Actor, ...],
        number: int,
        left: _Budget,
        with_faults: bool,
    ) -> list[tuple[_Event, Any]]:
        """What can become of one actor's request: first that all is well, then each fault."""
        actor, runner = actors[number], self._runners[number]
        store: Any = self._store
        request = self._request(actor)
        after, answer = store.apply(state, number, request)

        def then(answer: Any) -> _Actor:
            retried = actor.again and isinstance(answer, Failed)
            return _Actor(runner.next(actor.step, answer.after_retries if retried else answer))

        def way(
            fault: str, changed: State, actor: _Actor, spent: int = 1, is_late: bool = False
        ) -> tuple[_Event, Any]:
            others = (*actors[:number], actor, *actors[number + 1 :])
            late = (*left.late, (number, request)) if is_late else left.late
            budget = left._replace(faults=left.faults - spent, late=late) if spent else left
            shown = None if spent else answer
            return _Event(number, request, fault, shown), (changed, others, budget)

        ways = [way("", after, then(answer), spent=0)]
        if not with_faults:
            return ways
        if "crash" in self._faults:
            ways.append(way(" not sent: crashed", state, _Actor(actor.step, crashed=True)))
        if "refused" in self._faults:
            ways.append(way(" refused", state, then(store.refused)))
        if not store.changes(request):
            return ways
        if DECLINED in self._faults:
            for word, (changed, declined) in store.declined(state, request).items():
                ways.append(way(f" {word}", changed, then(declined)))
        if "lost" in self._faults:
            ways.append(way(", answer lost", after, then(store.lost)))
        if "repeated" in self._faults and not actor.again:
            ways.append(way(", to be repeated", after, _Actor(actor.step, again=True)))
        if GIVEN_UP in self._faults and store.can_be_late(request):
            ways.append(way(", given up", state, then(store.lost), is_late=True))
        if SENT_TWICE in self._faults and store.can_be_late(request):
            ways.append(way(", sent twice", after, then(answer), is_late=True))
        return ways


class _Event(NamedTuple):
    """What became of one request, to be shown."""

    actor: int
    request: Request
    fault: str
    answer: Any

    def __str__(self) -> str:
        shown = " ".join(str(part)[:160] for part in self.request)
        failed = f" -> {self.answer.error}" if isinstance(self.answer, Failed) else ""
        return f"{self.actor}: {shown}{failed}{self.fault}"


def run_alone(program: Any, store: Any, state: Any, actor: int = 9) -> tuple[Any, Any]:
    """A program run to its end while nobody else does anything: the state, and its outcome."""

    def ask(*request: Any) -> Any:
        nonlocal state
        state, answer = store.apply(state, actor, request)
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    try:
        outcome = program(ask)  # first, as it changes the state
    except Exception as exc:
        outcome = exc
    return state, outcome
