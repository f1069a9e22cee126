import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.mzs3.export.report.plots import Markup, join, tag, text


@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_stays_text(inner, attribute):
    element = ET.fromstring(tag("p", inner, title=attribute))
    assert list(element) == []
    assert list(element.attrib) == ["title"]


def test_markup_is_kept_and_text_escaped():
    assert tag("p", tag("b", "1 < 2"), " & ") == "<p><b>1 &lt; 2</b> &amp; </p>"
    assert join("<", Markup("<br/>")) == "&lt;<br/>"


def test_attributes_are_escaped_and_left_out_when_none():
    assert tag("p", class_='"x"', id=None, aria_label="<y>") == (
        '<p class="&quot;x&quot;" aria-label="&lt;y&gt;"></p>'
    )


def test_only_elements_without_content_close_themselves():
    assert tag("rect", x=1) == '<rect x="1"/>'
    assert tag("span") == "<span></span>"


def test_what_cannot_be_shown_or_reorders_text_is_replaced():
    assert text("a\x00b\x1b[31m\u202ec\ud800\n") == "a\ufffdb\ufffd[31m\ufffdc\ufffd\n"
