"""Names, keys and errors are not ours: whatever is in them, the page shows it as text."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.export.report_runs import NOW, failed, run

from dbt.adapters.mzs3.export.report.page import render_report

EVIL = (
    "</title></pre></style><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\x00"
    "{{ 7 * 7 }}{% include 'page.html' %}"
)
SEEN = EVIL.replace("\x00", "\ufffd")


def page_of_text(text):
    """A page with the text wherever there is room for one."""
    said = {"location": text, "invocation_id": text, "on_existing": text}
    runs = [failed(text, error=text, **said), failed(text, error=(text or "?") * 800, **said)]
    runs += [run(f"{text}{number}", error=text, **said) for number in range(9)]
    return render_report(runs, now=NOW, title=text, subject=text)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen |= {tag, *(name for name, _ in attrs)}


def of_xml(page):
    elements = list(ET.fromstring(page).iter())
    return {each.tag for each in elements} | {name for each in elements for name in each.attrib}


def of_html(page):
    tags = Tags()
    tags.feed(page)
    return tags.seen


@pytest.mark.parametrize("names", [of_xml, of_html])
def test_no_text_becomes_markup(names):
    found = names(page_of_text(EVIL))
    assert {"svg", "details", "href"} <= found
    assert found <= names(page_of_text("model.shop.plain"))


def test_text_is_shown_as_it_is():
    root = ET.fromstring(page_of_text(EVIL))
    assert root.find(".//h1").text == root.find("head/title").text == SEEN
    assert SEEN in [each.text for each in root.iter("pre")]
    regions = [each.get("aria-label") for each in root.iter("div")]
    assert f"Latest exports of {SEEN}" in regions


@given(st.text(st.characters(), max_size=20))
def test_any_text_stays_text(text):
    assert of_xml(page_of_text(text)) <= of_xml(page_of_text("model.shop.plain"))


def test_what_cannot_be_shown_or_reorders_text_is_replaced():
    root = ET.fromstring(render_report([], now=NOW, title="a\x00b\x1b[31m\u202ec\ud800d"))
    assert root.find(".//h1").text == "a\ufffdb\ufffd[31m\ufffdc\ufffdd"
