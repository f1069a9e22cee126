"""Made-up runs for the report: a few models over some weeks, the same at every call."""

import random
from datetime import datetime, timedelta, timezone

from dbt.adapters.mzs3.export.report.summary import ReportedRun

NOW = datetime(2026, 11, 21, 19, 50, tzinfo=timezone.utc)
DENIED = (
    "model.shop.{name}: the export to {location} failed: opening an upload was denied "
    "(AccessDenied); the policy of arn:aws:iam::123456789012:role/exporter needs s3:PutObject "
    "on it. Nothing of this export is visible, and no upload is left open"
)
TAKEN = (
    "model.shop.{name}: {location} is not empty: it holds part-00001.csv and 3 more objects; "
    "choose another location, or say on_existing: overwrite"
)
LOST = (
    "model.shop.{name}: the export to {location} failed: Job aborted due to stage failure: task "
    "17 in stage 4.0 failed 4 times, most recent failure: lost task 17.3 in stage 4.0 "
    "(executor 3): the executor was killed for running beyond its memory.\n"
    + "\n".join(
        f"  at step {number} of the plan: Exchange, Sort, MapInArrow" for number in range(16)
    )
    + "\nNothing of this export is visible, and no upload is left open"
)


def run(model="model.shop.orders", **changes):
    """A run that succeeded; anything about it can be said otherwise, `seconds` included."""
    seconds = changes.pop("seconds", 60.0)
    started = changes.pop("started", NOW - timedelta(hours=1))
    values = {
        "model": model,
        "location": f"s3://lake/{model.rpartition('.')[2]}/",
        "started": started,
        "ended": None if seconds is None else started + timedelta(seconds=seconds),
        "as_of": 1,
        "status": "rows",
        "rows": 1000,
        "bytes": 4096,
        "files": 1,
        "error": None,
        "invocation_id": "",
        "format": "csv",
        "on_existing": "",
    }
    return ReportedRun(**{**values, **changes})


def failed(model="model.shop.orders", **changes):
    """A run that failed and wrote nothing."""
    said = {"status": "error", "rows": None, "bytes": None, "files": None, "error": "no"}
    return run(model, **{**said, **changes})


def weeks_of_runs(days=60):
    """Newest first: a steady daily export, one that grows and fails at times, a bursty hourly."""
    dice = random.Random(7)
    runs = []
    for day in range(days):
        midnight = (NOW - timedelta(days=days - 1 - day)).replace(hour=0, minute=0)
        runs.append(_daily(dice, midnight, day))
        if midnight.weekday() < 5:
            runs.append(_growing(dice, midnight, day))
        runs += [_hourly(dice, midnight, hour, day) for hour in range(6, 19, 4)]
    return sorted((each for each in runs if each.started <= NOW), key=_started, reverse=True)


def _started(each):
    return each.started


def _daily(dice, midnight, day):
    rows = int(2_400_000 * dice.gauss(1, 0.03))
    return _finish(
        "customers", midnight + timedelta(hours=2, minutes=4), rows, 118, rows / 90_000, day
    )


def _growing(dice, midnight, day):
    rows = int(700_000 * 1.018**day * dice.gauss(1, 0.06))
    error = {22: DENIED, 23: DENIED, 24: DENIED, 41: LOST}.get(day)
    slow = 6 if day == 34 else 1
    started = midnight + timedelta(hours=3, minutes=30)
    return _finish("order_items", started, rows, 204, rows / 26_000 * slow, day, error)


def _hourly(dice, midnight, hour, day):
    rows = max(0, int(dice.lognormvariate(9.2, 0.7))) if dice.random() > 0.05 else 0
    error = TAKEN if dice.random() < 0.03 or (day >= 59 and hour > 12) else None
    started = midnight + timedelta(hours=hour, minutes=dice.randrange(9))
    is_stopped = error is None and dice.random() < 0.012
    return _finish("web_events", started, rows, 310, 9 + rows / 2_000, day, error, is_stopped)


def _finish(name, started, rows, width, seconds, day, error=None, is_stopped=False):
    location = f"s3://lake/exports/{name}/{started:%Y-%m-%d}/{started:%H}/"
    said = {
        "location": location,
        "started": started,
        "seconds": seconds,
        "invocation_id": f"{day:08x}-5d0c-4c8e-9a51-0f5b8c0f3e21",
        "on_existing": "fail",
    }
    if error or is_stopped:
        text = error.format(name=name, location=location) if error else "the run was cancelled"
        status = "cancelled" if is_stopped else "error"
        return failed(
            f"model.shop.{name}", **{**said, "seconds": 21.4, "error": text, "status": status}
        )
    files = max(1, rows // 500_000)
    return run(f"model.shop.{name}", **said, rows=rows, bytes=rows * width, files=files)
