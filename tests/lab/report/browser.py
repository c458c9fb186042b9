"""The common parts of tests that open rendered reports in a headless Chromium and check them.

They are called as `X_test.py RENDERER [UNITTEST-ARGS]`, and call `RENDERER FILE.json FILE.html`.
They exit with 77, skipped, where there is no Chromium, no driver or no Selenium.
"""

import copy
import json
import os
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
RENDERER = None
# A chart is drawn by one processor in half a second: what is seen once for all is seen in each run,
# the rest of the charts and controls in a long one.
in_long_runs = unittest.skipUnless("LOCKFLIGHT_LONG_TESTS" in os.environ, "./dev test --all")

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = By = WebDriverWait = None

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


class Page(unittest.TestCase):
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

    def check_layout(self, where=""):
        """Nothing overflows or overlaps and all contrasts suffice: wide and narrow, light and dark."""
        script = (HERE / "layout.js").read_text(encoding="utf-8")
        for width in (1280, 500):
            for scheme in ("light", "dark"):
                self.resize(width)
                self.scheme(scheme)
                # Two frames: charts have the new size and colours then.
                self.browser.execute_async_script(
                    "const done = arguments[0];"
                    "requestAnimationFrame(() => requestAnimationFrame(() => done()))")
                with self.subTest(where, width=width, scheme=scheme):
                    self.assertEqual(self.script(script), [])

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


def main():
    global RENDERER
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} RENDERER [UNITTEST-ARGS]")
    if webdriver is None or None in browser_and_driver():
        print("skipped: needs chromium, chromedriver and Selenium for Python")
        sys.exit(SKIPPED)
    RENDERER = sys.argv[1]
    unittest.main("__main__", argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
