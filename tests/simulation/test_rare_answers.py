"""Exports whose requests arrive late, are answered in ways that are rare, or list in pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.export.explored import exploration
from support.export.scenes import EXPIRED_OF_TWO, LATE, OLD, ONE_FILE, OVER, Scene
from support.export.simulated import recovering, simulated
from support.interleavings import DECLINED, GIVEN_UP, SENT_TWICE, Request
from support.s3.model import DENIED, SLOW_DOWN, Bucket, S3Model

from dbt.adapters.mzs3.export.commit.intent import read_intent
from dbt.adapters.mzs3.export.commit.protocol import Commit
from dbt.adapters.mzs3.store.failures import StoreError
from dbt.adapters.mzs3.store.prefix import Prefix
from dbt.adapters.mzs3.upload import pending

CHANGES = frozenset({"abort", "complete", "delete", "put", "put intent", "delete intent"})
OVER_ONE = Scene((replace(OVER[0], parts=1),), (replace(OLD, parts=1),), (recovering,))


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    with simulated():
        yield


# How a client ends a request of which an attempt is still under way, or was done.
GIVING_UP = {
    "without an answer": S3Model().lost,
    "after 503s": SLOW_DOWN,
    "as a repetition is denied": DENIED.after_retries,
}


@pytest.mark.parametrize("answer", GIVING_UP)
def test_a_request_that_takes_effect_after_it_was_given_up(answer: str, tell: Any) -> None:
    store = S3Model(late=CHANGES | {"claim"}, lost=GIVING_UP[answer])
    switches = 2 if answer == "without an answer" else 1
    tell(exploration(OVER_ONE, store, [GIVEN_UP, "lost"]).exhaustively(1, switches))


def test_an_attempt_that_takes_effect_after_the_one_that_was_answered(tell: Any) -> None:
    store = S3Model(late=CHANGES)
    tell(exploration(OVER_ONE, store, [SENT_TWICE]).exhaustively(1, most_switches=2))


@pytest.mark.slow
@pytest.mark.parametrize("scene", LATE)
def test_a_request_that_was_given_up_beside_two_later_exports(scene: str, tell: Any) -> None:
    store = S3Model(late=CHANGES | {"claim"})
    tell(exploration(LATE[scene], store, [GIVEN_UP]).exhaustively(1, most_switches=0))


def test_listings_in_pages_between_which_others_act(tell: Any) -> None:
    store = S3Model(page=1)
    tell(exploration(EXPIRED_OF_TWO["an overwrite"], store).exhaustively(0, most_switches=1))


def test_a_store_that_answers_a_second_completion_as_the_first(tell: Any) -> None:
    store = S3Model(remembers=True)
    tell(exploration(ONE_FILE, store, ["crash", "refused"]).exhaustively(1, most_switches=2))


class Hollow(S3Model):
    """Answers a completion with 200 and no ETag, whether it was done or not."""

    def declined(self, state: Bucket, request: Request) -> Mapping[str, tuple[Bucket, Any]]:
        if request[0] != "complete":
            return {}
        done, _ = self.apply(state, 0, request)
        return {"not done, and nothing said": (state, ""), "done, and nothing said": (done, "")}


def test_a_completion_that_is_answered_with_nothing(tell: Any) -> None:
    tell(exploration(OVER_ONE, Hollow(), [DECLINED]).exhaustively(2, most_switches=2))


class TestWhatIsAssumed:
    """Of attempts that the client has repeated: the docs say that these are not late."""

    def test_no_attempt_of_a_claim_takes_effect_once_its_commit_is_over(self) -> None:
        found = exploration(OVER_ONE, S3Model(late=frozenset({"claim"})), [SENT_TWICE])
        with pytest.raises(AssertionError, match="Nothing of this export is visible"):
            found.exhaustively(1, most_switches=3)

    @pytest.mark.parametrize("scene", [[*LATE.values()][-1], EXPIRED_OF_TWO["an overwrite"]])
    def test_no_attempt_of_a_deletion_takes_effect_once_a_name_is_used_again(
        self, scene: Scene
    ) -> None:
        found = exploration(scene, S3Model(late=frozenset({"delete"})), [SENT_TWICE])
        with pytest.raises(AssertionError, match="the manifest names"):
            found.exhaustively(1, most_switches=0)


class TestAProtocolThatIsWrong:
    def test_a_claim_is_looked_for_before_the_uploads_are_aborted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def looks_first(commit: Any, exc: BaseException) -> bool:
            if (found := read_intent(commit._prefix)) and found.intent.run_id == commit._writer:
                commit._continue_from(found)
            return commit._version is not None

        monkeypatch.setattr(Commit, "_find_claim", looks_first)
        with pytest.raises(AssertionError, match="Nothing of this export is visible"):
            test_a_request_that_takes_effect_after_it_was_given_up("without an answer", print)

    def test_retries_are_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        is_client_error = property(lambda exc: 0 < exc.status < 500 and exc.status != 409)
        monkeypatch.setattr(StoreError, "is_certain_refusal", is_client_error)
        with pytest.raises(AssertionError, match="the manifest names"):
            test_a_request_that_takes_effect_after_it_was_given_up(
                "as a repetition is denied", print
            )

    def test_whatever_is_answered_is_a_refusal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        is_answered = property(lambda exc: exc.status != 409 and exc.has_response)
        monkeypatch.setattr(StoreError, "is_certain_refusal", is_answered)
        with pytest.raises(AssertionError, match="the manifest names"):
            test_a_request_that_takes_effect_after_it_was_given_up("after 503s", print)

    def test_only_the_first_page_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def objects(prefix: Prefix, below: str = "") -> Any:
            return iter(next(prefix.store.pages(prefix.key(below))).objects)

        monkeypatch.setattr(Prefix, "objects", objects)
        with pytest.raises(AssertionError):
            test_listings_in_pages_between_which_others_act(print)

    def test_a_commit_that_goes_back_is_tried_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        recover = Commit.recover

        def tries_again(commit: Any) -> bool:
            found = commit._version
            commit._version = replace(found, intent=replace(found.intent, state="open"))
            return recover(commit)

        monkeypatch.setattr(Commit, "recover", tries_again)
        with pytest.raises(AssertionError, match="the manifest names"):
            test_a_store_that_answers_a_second_completion_as_the_first(print)

    def test_a_completion_without_an_etag_is_taken_for_done(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        once = pending._complete_once_free
        monkeypatch.setattr(pending, "_complete_once_free", lambda *given: once(*given) or '"?"')
        with pytest.raises(AssertionError, match="the manifest names"):
            test_a_completion_that_is_answered_with_nothing(print)
