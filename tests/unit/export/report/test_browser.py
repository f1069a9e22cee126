"""The page in a real browser: nothing sticks out at any width, and the console stays silent."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import pytest
from support.export.report_runs import NOW, failed, run, weeks_of_runs

from dbt.adapters.mzs3.export.report.page import render_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = (360, 768, 1280)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--hide-scrollbars",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
    "--dump-dom",
]
# Frames of each width, which obey media queries as windows do. What scrolls in itself may stick
# out of its box.
MEASURE = """
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, width = page.documentElement.clientWidth;
    page.querySelectorAll("details").forEach((each) => { each.open = true; });
    const out = [...page.body.querySelectorAll("*")].filter((each) => {
      const box = each.getBoundingClientRect();
      return !each.closest(".scroll table") && (box.right > width + 0.5 || box.left < -0.5);
    });
    return {
      width: width,
      scrolls: page.documentElement.scrollWidth,
      out: out.map((each) => each.outerHTML.slice(0, 120)),
    };
  });
  document.getElementById("found").textContent = JSON.stringify(found);
});
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")


def look_at(page, folder):
    """What the frames hold, and what the browser's console says."""
    frames = "".join(
        f'<iframe width="{width}" height="900" style="border:0" srcdoc="{escape(page)}"></iframe>'
        for width in WIDTHS
    )
    harness = folder / "harness.html"
    harness.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre>{frames}'
        f"<script>{MEASURE}</script>",
        encoding="utf-8",
    )
    shown = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", harness.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, re.DOTALL)
    console = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(found[1])), console


def awkward_runs():
    """Names, places and errors that are long and without a place to break."""
    name = "model.shop." + "a_very_long_name_" * 9
    runs = [run(name, rows=10**15, bytes=1 << 61, seconds=1e7), failed(name, error="x" * 3000)]
    runs += [failed(name, error="y" * 500, location="s3://" + "z" * 300), failed("m" * 200)]
    return runs + [run(f"model.shop.m{number}") for number in range(40)]


@pytest.mark.parametrize(
    "runs", [weeks_of_runs(), awkward_runs(), []], ids=["weeks", "awkward", "empty"]
)
def test_nothing_sticks_out_and_the_console_is_silent(runs, tmp_path):
    found, console = look_at(render_report(runs, now=NOW), tmp_path)
    assert console == []
    assert found == [{"width": width, "scrolls": width, "out": []} for width in WIDTHS]


def test_what_is_looked_for_would_be_seen(tmp_path):
    page = render_report([], now=NOW)
    page = page.replace("<main>", '<main><p style="width:800px">wide</p><script>1</script>')
    found, console = look_at(page, tmp_path)
    assert [bool(each["out"]) for each in found] == [True, True, False]
    assert any("Content Security Policy" in line for line in console)
