"""A location as its readers see it, and a reader who looks whenever something changes there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from typing import Any

from support.s3.faulty import Request
from support.s3.real_stores import is_closed

MANIFEST, COMMITTING = "x/_manifest.json", "x/_committing.json"
CHANGES = {"CompleteMultipartUpload", "PutObject", "DeleteObject"}

Sums = dict[str, str]


class Location:
    """The location `x/` of a bucket, as readers see it."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self.s3 = s3
        self.bucket = bucket
        self.uri = f"s3://{bucket}/x"
        self._sums: dict[tuple[str, str], str] = {}
        with contextlib.suppress(s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(Bucket=bucket)

    def listed(self) -> dict[str, str]:
        """The ETag of every object by its key, all at one moment; without closed claims."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        found = {e["Key"]: e["ETag"] for page in pages for e in page.get("Contents", [])}
        return {key: etag for key, etag in found.items() if not is_closed(self.read, key)}

    def read(self, key: str) -> bytes | None:
        try:
            found: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            return None
        return found

    def sum_of(self, key: str, etag: str) -> str | None:
        """The SHA-256 of an object, read once for each of its ETags; None if it is gone."""
        if (key, etag) not in self._sums:
            body = self.read(key)
            if body is None:
                return None
            self._sums[key, etag] = hashlib.sha256(body).hexdigest()
        return self._sums[key, etag]

    def follow_manifest(self) -> Sums | None:
        """The files that the manifest names, each compared with it; None without a manifest.

        A reader who comes late finds a file missing, and reads the manifest again.
        """
        while (content := self.read(MANIFEST)) is not None:
            there = self.listed()
            named = {e["url"].split("/", 3)[3]: e["meta"] for e in json.loads(content)["entries"]}
            sums = {key: self.sum_of(key, there[key]) for key in named if key in there}
            if len(sums) == len(named) and None not in sums.values():
                assert sums == {key: meta["sha256"] for key, meta in named.items()}
                return {key: str(found) for key, found in sums.items()}
            assert content != self.read(MANIFEST), f"named, but missing: {set(named) - set(sums)}"
        return None

    def open_uploads(self) -> dict[str, str]:
        """Keys by upload id."""
        found = self.s3.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])
        return {upload["UploadId"]: upload["Key"] for upload in found}

    def reset(self, objects: dict[str, bytes]) -> None:
        """These objects, and nothing else."""
        for key in [*self.listed(), COMMITTING]:
            self.s3.delete_object(Bucket=self.bucket, Key=key)
        for upload_id, key in self.open_uploads().items():
            self.s3.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
        for key, body in objects.items():
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)


class Onlooker:
    """Looks at a location before every request that changes what is visible there.

    What the manifest names has to be one of `whole`; without a manifest, nothing may be visible
    but what a commit that is under way has made so.
    """

    def __init__(self, location: Location, whole: list[Sums], must_exist: bool) -> None:
        self._location = location
        self._whole = whole
        self._must_exist = must_exist
        self.problems: list[str] = []
        self.looks = 0

    def before(self, request: Request) -> None:
        if request.action in CHANGES:
            self.look(f"before {request.action} {request.key}")

    def look(self, moment: str) -> None:
        """Collects what is wrong, as it is called on a server's threads."""
        self.looks += 1
        try:
            there = self._location.listed()
            data = [key for key in there if "/_" not in key]
            if MANIFEST not in there and (self._must_exist or (data and COMMITTING not in there)):
                self.problems.append(f"{moment}: only {sorted(there)} is visible")
            followed = self._location.follow_manifest()
            if followed is not None and canonical(followed) not in self._whole:
                self.problems.append(f"{moment}: neither export, but {sorted(followed)}")
        except Exception as exc:
            self.problems.append(f"{moment}: {exc!r}")


def without_run_id(manifest: bytes) -> bytes:
    """A manifest but for the ids of commits, which differ whenever one is made."""
    return re.sub(rb'"run_id": "[0-9a-f]{32}"', b'"run_id": ""', manifest)


def canonical(sums: Sums) -> Sums:
    """By names that do not tell which overwrite it was: numbers begin at 1."""
    number = re.compile(r"(\d{4,})(?=\.csv$)")
    found = [int(match[1]) for match in map(number.search, sums) if match]
    first = min(found, default=1)
    return {
        number.sub(lambda m: f"{int(m[1]) - first + 1:04d}", key): sum_
        for key, sum_ in sums.items()
    }
