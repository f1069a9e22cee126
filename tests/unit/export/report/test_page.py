import re
import xml.etree.ElementTree as ET
from datetime import timedelta

import pytest
from support.export.report_runs import NOW, failed, run, weeks_of_runs

from dbt.adapters.mzs3.export.report.page import render_report
from dbt.adapters.mzs3.export.report.units import NBSP


def page_of(runs, **options):
    page = render_report(runs, now=NOW, **options)
    assert page.startswith("<!DOCTYPE html>\n")
    return ET.fromstring(page)


def words(element):
    return " ".join("".join(element.itertext()).replace(NBSP, " ").split())


def by_class(root, name):
    return [each for each in root.iter() if name in each.get("class", "").split()]


def headline(root):
    found = {}
    for tile in by_class(root, "headline")[0]:
        name, value, more = (words(each) for each in tile)
        found[name] = (value, more)
    return found


@pytest.mark.parametrize(
    ("native", "said"), [(True, " · native"), (False, " · not native"), (None, "")]
)
def test_the_latest_export_was_native_or_not(native, said):
    page = page_of([run(native=native)])
    [latest] = [text for text in map(words, page.iter("dd")) if "1,000 rows" in text]
    assert latest.endswith(" 4 kB" + said)


def test_the_headline_is_what_was_put_in():
    runs = [run(rows=600_000, bytes=1 << 20, seconds=30), run("b", rows=1, bytes=1, seconds=90)]
    runs += [failed(), failed(status="cancelled")]
    assert headline(page_of(runs)) == {
        "Exports": ("4", "of 2 models"),
        "Succeeded": ("50 %", "1 failed, 1 cancelled"),
        "Median duration": ("1 min", "of those that succeeded"),
        "Rows": ("600 k", "600,001 exported"),
        "Size": ("1 MB", "1,048,577 bytes"),
    }


def test_the_table_of_days_is_what_was_put_in():
    yesterday = NOW - timedelta(days=1)
    runs = [run(rows=5, bytes=2048), failed(), run(started=yesterday, rows=3, bytes=1)]
    body = by_class(page_of(runs), "overall")[0].find(".//tbody")
    assert [[words(cell) for cell in row] for row in body] == [
        ["21 Nov 2026", "1", "1", "0", "5", "2 kB"],
        ["20 Nov 2026", "1", "0", "0", "3", "1 B"],
    ]


def test_a_tick_for_each_run_says_how_it_went():
    runs = [
        failed(started=NOW - timedelta(hours=1), error="denied"),
        run(started=NOW - timedelta(hours=2), rows=7, bytes=2048, seconds=12),
        failed(started=NOW - timedelta(hours=3), status="cancelled", error=None),
    ]
    strip = by_class(page_of(runs), "strip")[0]
    ticks = [each for each in strip.iter("rect") if each.get("class") != "none"]
    assert [each.get("class") for each in ticks] == ["cancelled", "ok", "error"]
    assert [words(each) for each in ticks] == [
        "21 Nov 2026, 16:50 · cancelled · 1 min",
        "21 Nov 2026, 17:50 · succeeded · 12 s · 7 rows · 2 kB",
        "21 Nov 2026, 18:50 · failed · 1 min denied",
    ]
    assert "1 succeeded, 1 failed, 1 cancelled" in words(strip.find("desc"))
    # Not by colour alone: a failure is higher.
    assert float(ticks[2].get("height")) > float(ticks[1].get("height"))


def test_the_page_needs_nothing_from_elsewhere():
    page = render_report(weeks_of_runs(), now=NOW)
    assert re.findall(r"""(?:src|href)="(?!#)[^"]*""", page) == []
    assert re.findall(r"url\((?!#)", page) == []
    assert "@import" not in page
    assert "<script" not in page
    assert "default-src 'none'" in page


def test_every_id_is_there_once_and_every_reference_leads_to_one():
    root = page_of([*weeks_of_runs(), *(run(f"m{number}") for number in range(12))])
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    for each in root.iter():
        wanted = each.get("aria-labelledby", "").split()
        wanted += [each.get("href")[1:]] if each.get("href") else []
        assert set(wanted) <= set(ids)


def test_every_plot_has_a_title_and_a_description():
    plots = [each for each in page_of(weeks_of_runs()).iter("svg") if each.get("role") == "img"]
    assert len(plots) == 2 + 3 * 4
    assert all(words(each.find("title")) and words(each.find("desc")) for each in plots)


def test_utc_is_said_once():
    assert words(page_of(weeks_of_runs()).find("body")).count("UTC") == 1


def test_an_empty_history_says_what_to_do():
    root = page_of([], since=NOW - timedelta(days=90), subject="Schema analytics")
    said = words(root.find("body"))
    assert "No exports since 23 Aug 2026" in said
    assert "copy_to_s3" in said
    assert "dbt run-operation copy_report" in said
    assert "No exports yet" in words(page_of([]).find("body"))


def test_the_lead_names_models_in_trouble():
    assert words(by_class(page_of([run(), run("b")]), "lead")[0]) == (
        "The latest export of every model succeeded."
    )
    root = page_of([run(), failed("model.b." + "x" * 99), failed("model.a.orders.v2")])
    lead = by_class(root, "lead")[0]
    assert words(lead) == (
        f"The latest export of 2 of 3 models did not succeed: orders.v2, {'x' * 60}…."
    )


def test_a_success_that_left_old_files_says_so():
    error = "files of the one before it are still there"
    root = page_of([run(error=error), run("b"), failed("c", started=NOW - timedelta(days=1))])
    assert words(by_class(root, "lead")[0]) == (
        "The latest export of 1 of 3 models did not succeed: c. 1 of those that succeeded left "
        "files of the export before it, for whoever lists the location."
    )
    card = next(each for each in by_class(root, "card") if "model.shop.orders" in words(each))
    badges = {words(badge) for badge in by_class(card, "badge")}
    assert badges == {"● succeeded, old files left"}
    (section,) = (each for each in root.iter("section") if each.get("id") == "failures")
    assert words(section.find("h2")) == "Failed, cancelled or with old files left"
    first, second = (words(entry) for entry in by_class(section, "failures")[0])
    assert "succeeded, old files left" in first
    assert error in first
    assert "failed" in second
    assert headline(root)["Succeeded"] == ("66.6 %", "1 failed, 0 cancelled")
    assert words(by_class(page_of([run(error=error)]), "lead")[0]) == (
        "The latest export succeeded. It left files of the export before it, for whoever lists "
        "the location."
    )


def test_the_same_failure_again_is_said_once():
    runs = [failed(error="denied", started=NOW - timedelta(hours=n)) for n in range(4)]
    other = failed("other", error="denied", started=NOW - timedelta(days=1))
    entries = by_class(page_of([*runs, other]), "failures")[0]
    first, second = (words(each) for each in entries)
    assert "and 3 times before, since 21 Nov 2026, 16:50" in first
    assert "before" not in second


def test_a_long_error_is_folded_and_whole():
    error = "first line\n" + "more of it " * 200
    entry = by_class(page_of([failed(error=error)]), "failures")[0].find("li")
    assert words(entry.find(".//summary")) == "first line"
    assert entry.find(".//details/pre").text == error.strip()


@pytest.mark.parametrize(
    "runs",
    [
        [run()],
        [run(rows=0, bytes=0, seconds=0)],
        [run(seconds=None, rows=None, bytes=None, files=None)],
        [failed(started=NOW - timedelta(days=number)) for number in range(40)],
        [run(seconds=1), *(run(seconds=10) for _ in range(9)), run(seconds=1e6, bytes=1 << 60)],
        [run("", location="")],
        [run("...")],
        [run(started=NOW + timedelta(days=2))],
    ],
    ids=["one", "zeros", "unknowns", "failures", "outlier", "nameless", "dots", "tomorrow"],
)
def test_odd_histories_have_a_page(runs):
    root = page_of(runs)
    assert headline(root)["Exports"][0] == str(len(runs))
    for each in root.iter():
        assert not re.search(r"\b(nan|inf|None)\b", " ".join(each.attrib.values()))


def test_many_models_are_folded_and_bounded():
    runs = [run(f"model.shop.m{number:03}") for number in range(310)]
    root = page_of(runs)
    cards = by_class(root, "card")
    assert len(cards) == 300
    assert sum(words(each) == "Plots" for card in cards for each in card.iter("summary")) == 276
    assert len(by_class(root, "index")[0].find("ul")) == 300
    assert "10 models more" in words(root)


def test_the_page_grows_with_models_and_days_not_with_runs():
    def size(per_day):
        step = timedelta(days=1) / per_day
        runs = (run(started=NOW - number * step) for number in range(60 * per_day))
        return len(render_report(runs, now=NOW))

    assert size(50) < 1.5 * size(2)
