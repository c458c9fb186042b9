#!/usr/bin/env python3
"""Opens rendered reports in a headless Chromium and looks at what is there.

usage: browser_test.py RENDERER [UNITTEST-ARGS]

RENDERER is called as `RENDERER FILE.json FILE.html`. Exits with 77, skipped, where there is no
Chromium, no driver or no Selenium.
"""

import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
]
CHARTS_PER_GROUP = 7
HOSTILE = "</script><script>window.injected=1</script><img src=x onerror='window.injected=1'><b>&"
RENDERER = None

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None

# Counts the painted pixels of every canvas and the colours among them. Reads a copy: Chromium
# complains about a canvas that is read repeatedly and was not made for it.
PAINTED = """
const copy = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
return [...document.querySelectorAll("canvas")].map((canvas) => {
  const {width, height} = canvas;
  Object.assign(copy.canvas, {width, height});
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, width, height).data;
  const colours = new Set();
  let painted = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] === 0) continue;
    ++painted;
    colours.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
  }
  return {chart: canvas.closest(".card").dataset.chart, width, height, painted,
          colours: colours.size, label: canvas.getAttribute("aria-label")};
});
"""


def browser_and_driver():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    return browser, shutil.which("chromedriver")


def start_browser(profile):
    browser, driver = browser_and_driver()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(executable_path=driver), options=options)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="lockflight-browser-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        cls.browser = start_browser(cls.path / "profile")
        cls.addClassCleanup(cls.browser.quit)
        cls.sample = json.loads((HERE / "sample.json").read_text(encoding="utf-8"))

    def setUp(self):
        self.resize(1400)
        self.scheme("light")

    # ---- helpers -------------------------------------------------------------------------

    def resize(self, width):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})

    def scheme(self, name):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": name}]})

    def script(self, text, *args):
        return self.browser.execute_script(text, *args)

    def open(self, bench, charts):
        """Renders and opens a document, waits for its charts, and checks what holds for all."""
        source, page = self.path / "bench.json", self.path / "report.html"
        source.write_text(json.dumps(bench), encoding="utf-8")
        subprocess.run([RENDERER, str(source), str(page)], check=True, timeout=30)
        self.forget_logs()
        self.browser.get(page.as_uri())
        WebDriverWait(self.browser, 30).until(
            lambda b: b.execute_script(
                "const d = document.documentElement.dataset;"
                "return d.charts !== undefined || d.errors !== '0'"))
        self.check_quiet()
        self.assertEqual(self.script("return document.documentElement.dataset.charts"),
                         str(charts))
        self.check_painted(charts)

    def forget_logs(self):
        for kind in ("browser", "performance"):
            self.browser.get_log(kind)

    def check_quiet(self):
        """No error, nothing on the console, no request but the one for the page itself."""
        self.assertEqual(self.script("return document.documentElement.dataset.errors"), "0")
        self.assertEqual(self.browser.get_log("browser"), [])
        page = self.browser.current_url.split("#")[0]
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"].split("#")[0]
            self.assertTrue(url == page or url.startswith("data:"), f"the page asked for {url}")

    def check_painted(self, charts):
        canvases = self.script(PAINTED)
        self.assertEqual(len(canvases), charts)
        for canvas in canvases:
            self.assertGreater(canvas["width"], 200, canvas)
            self.assertGreater(canvas["painted"], 1000, canvas)
            self.assertGreater(canvas["colours"], 5, canvas)
            self.assertTrue(canvas["label"], canvas)

    def only(self, keep):
        bench = copy.deepcopy(self.sample)
        bench["runs"] = [run for run in bench["runs"] if keep(run)]
        return bench

    def chart(self, name, what):
        """Evaluates `what` for the first chart of that name, which it knows as `chart`."""
        return self.script(
            f"const chart = Chart.getChart(document.querySelector('[data-chart={name}] canvas'));"
            f"return {what}")

    def column(self, title):
        return self.script("""
            const table = document.getElementById("table");
            const titles = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
            const at = titles.indexOf(arguments[0]);
            return [...table.tBodies[0].rows].filter((row) => !row.hidden)
              .map((row) => row.cells[at].dataset.key)""", title)

    def press(self, selector, text):
        for button in self.browser.find_elements(By.CSS_SELECTOR, selector):
            if button.text == text:
                # A click by script: where the button lies on the screen is not the question.
                self.script("arguments[0].click()", button)
                return
        self.fail(f"no {selector} reads {text!r}")

    # ---- the tests -----------------------------------------------------------------------

    def test_sample(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, ".verdict.good")), 1)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "section.group")), 2)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "line")
        self.assertEqual(self.chart("throughput", "chart.data.datasets.length"), 8)
        self.assertEqual(len(self.column("Lock")), len(self.sample["runs"]))

    def test_distribution_uses_the_cdf_where_there_is_one(self):
        self.open(self.only(lambda run: run["workload"] == "ecsb"), CHARTS_PER_GROUP)
        self.assertEqual(self.chart("latency", "chart.data.datasets[0].data.length"), 41)
        self.open(self.only(lambda run: run["workload"] == "warb"), CHARTS_PER_GROUP)
        self.assertEqual(self.chart("latency", "chart.data.datasets[0].data.length"), 6)

    def test_one_number_of_ranks_gives_bars(self):
        bench = self.only(lambda run: run["procs"] == 64 and run["workload"] == "warb")
        self.open(bench, CHARTS_PER_GROUP)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "bar")
        self.assertEqual(
            self.chart("throughput", "chart.data.datasets[0].data"),
            [run["throughput_ops_s"] for run in bench["runs"]])

    def test_a_lock_has_one_colour(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        lines = self.chart("throughput", "chart.data.datasets.map((one) => one.borderColor)")
        bars = self.chart("fairness", "chart.data.datasets[0].backgroundColor")
        self.assertEqual(lines, bars)
        self.assertEqual(len(set(lines)), 8)

    def test_legend_hides_a_lock_everywhere(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        self.press("#group-1 .controls .chip", "spin")
        self.assertEqual(self.chart("throughput", "chart.data.datasets.length"), 7)
        self.assertNotIn("spin", self.chart("fairness", "chart.data.labels"))
        pressed = self.script(
            "return [...document.querySelectorAll('.controls .chip')]"
            ".filter((chip) => chip.textContent === 'spin')"
            ".map((chip) => chip.getAttribute('aria-pressed'))")
        self.assertEqual(pressed, ["false", "false"])
        self.check_painted(2 * CHARTS_PER_GROUP)
        self.press("#group-2 .controls .chip", "spin")
        self.assertEqual(self.chart("throughput", "chart.data.datasets.length"), 8)
        self.check_quiet()

    def test_every_control_can_be_pressed(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        # One section is enough: a lock's chip in the other would switch it back on.
        self.script("const all = document.querySelectorAll('#group-1 button, thead button');"
                    "for (const button of all) button.click()")
        # Every chip is off now: the charts are empty, and that is no error either.
        self.check_quiet()
        self.assertEqual(self.chart("throughput", "chart.data.datasets.length"), 0)
        self.script("for (const chip of document.querySelectorAll('.chip[aria-pressed=false]'))"
                    " if (chip.getAttribute('aria-pressed') === 'false') chip.click()")
        self.check_quiet()
        self.check_painted(2 * CHARTS_PER_GROUP)

    def test_ranks_picker_moves_the_other_charts(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        self.press("#group-1 .pick button", "16")
        wanted = [run["fairness_jain"] for run in self.sample["runs"]
                  if run["procs"] == 16 and run["workload"] == "ecsb"]
        self.assertEqual(self.chart("fairness", "chart.data.datasets[0].data"), wanted)
        self.assertIn("At 16 ranks", self.script(
            "return document.querySelector('#group-1 .lead').textContent"))

    def test_counts_are_per_operation(self):
        self.open(self.only(lambda run: run["lock"] == "spin" and run["procs"] == 4
                            and run["workload"] == "ecsb"), CHARTS_PER_GROUP - 1)
        run = next(run for run in self.sample["runs"] if run["lock"] == "spin")
        got = self.chart("network",
                         "chart.data.datasets.map((one) => [one.label, one.data[0], one.stack])")
        nic = run["fabric_ops"]["nic"]
        self.assertEqual(got, [
            ["compare-swap", nic["cas"] / run["ops"], "main"],
            ["flush", nic["flush"] / run["ops"], "main"],
            ["of these, loopback", nic["loopback"] / run["ops"], "aside"]])

    def test_variants_of_a_lock_are_series_of_their_own(self):
        bench = self.only(lambda run: run["lock"] == "rma-rw" and run["workload"] == "ecsb")
        more = copy.deepcopy(bench["runs"])
        for run in more:
            run["params"]["T_R"] = 1024
        bench["runs"] += more
        self.open(bench, CHARTS_PER_GROUP)
        self.assertEqual(self.chart("throughput", "chart.data.datasets.map((one) => one.label)"),
                         ["rma-rw T_R=64", "rma-rw T_R=1024"])

    def test_runs_without_operations_draw_what_there_is(self):
        bench = self.only(lambda run: run["procs"] == 4 and run["workload"] == "ecsb")
        for run in bench["runs"][:4]:
            run.update(ops=0, throughput_ops_s=0, latency_us=None, fairness_jain=None,
                       max_wait_us=None, latency_cdf=None)
        self.open(bench, CHARTS_PER_GROUP)
        self.assertEqual(self.chart("fairness", "chart.data.labels.length"), 4)
        self.press("[data-chart=throughput] button", "log")
        self.check_quiet()

    def test_hostile_text_stays_text(self):
        bench = self.only(lambda run: run["procs"] == 4)
        bench["lockflight"] = HOSTILE
        bench["host"][HOSTILE] = HOSTILE
        for run in bench["runs"][:3]:
            run.update(lock=HOSTILE, workload=HOSTILE, machine=HOSTILE, levels=HOSTILE)
            run["params"] = {HOSTILE: HOSTILE}
        self.open(bench, 3 * CHARTS_PER_GROUP)
        self.assertIsNone(self.script("return window.injected"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "img, main b, header b"), [])
        self.assertEqual(self.column("Lock")[0], HOSTILE)

    def test_violations_are_red(self):
        bench = self.only(lambda run: run["procs"] == 4)
        bench["runs"][2]["violations"] = 3
        self.open(bench, 2 * CHARTS_PER_GROUP)
        banner = self.browser.find_element(By.CSS_SELECTOR, ".verdict[role=alert]")
        self.assertIn("3 violations", banner.text)
        red, green, blue = self.script(
            "return getComputedStyle(arguments[0].querySelector('.mark')).backgroundColor"
            ".match(/\\d+/g).map(Number)", banner)
        self.assertGreater(red, 2 * max(green, blue))

    def test_no_runs(self):
        self.open(self.only(lambda run: False), 0)

    def test_table_sorts_and_filters(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        rates = [run["throughput_ops_s"] for run in self.sample["runs"]]
        self.press("#table thead button", "Ops/s")
        self.assertEqual([float(key) for key in self.column("Ops/s")], sorted(rates, reverse=True))
        self.press("#table thead button", "Ops/s")
        self.assertEqual([float(key) for key in self.column("Ops/s")], sorted(rates))
        self.press("#table thead button", "Lock")
        self.assertEqual(self.column("Lock"), sorted(run["lock"] for run in self.sample["runs"]))
        self.assertEqual(
            len(self.browser.find_elements(By.CSS_SELECTOR, "[aria-sort=ascending]")), 1)
        self.browser.find_element(By.ID, "filter").send_keys("alock ecsb")
        self.assertEqual(self.column("Lock"), ["alock"] * 5)
        self.assertEqual(self.browser.find_element(By.ID, "shown").text, "5 of 80 runs")

    def test_dark_mode_repaints(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        light = self.chart("throughput", "chart.data.datasets[0].borderColor")
        page = "return getComputedStyle(document.body).backgroundColor"
        light_page = self.script(page)
        self.scheme("dark")
        WebDriverWait(self.browser, 10).until(
            lambda b: self.chart("throughput", "chart.data.datasets[0].borderColor") != light)
        self.assertNotEqual(self.script(page), light_page)
        self.check_painted(2 * CHARTS_PER_GROUP)
        # Paper is white whatever the screen is.
        self.script("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.chart("throughput", "chart.data.datasets[0].borderColor"), light)
        self.script("dispatchEvent(new Event('afterprint'))")
        self.assertNotEqual(self.chart("throughput", "chart.data.datasets[0].borderColor"), light)
        self.check_quiet()

    def test_nothing_sticks_out(self):
        for width in (420, 768, 1400):
            self.resize(width)
            self.open(self.sample, 2 * CHARTS_PER_GROUP)
            self.assertLessEqual(
                self.script("return document.documentElement.scrollWidth"), width)
            out = self.script(
                "return [...document.querySelectorAll('.card, canvas, .chip, .segmented')]"
                ".filter((one) => one.getBoundingClientRect().right > innerWidth).length")
            self.assertEqual(out, 0, f"at {width} px")


def main():
    global RENDERER
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if webdriver is None or None in browser_and_driver():
        print("skipped: needs chromium, chromedriver and Selenium for Python")
        sys.exit(SKIPPED)
    RENDERER = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)


if __name__ == "__main__":
    main()
