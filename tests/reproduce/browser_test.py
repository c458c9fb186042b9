"""The page of claims and curves in a headless Chromium.

Called as `browser_test.py PROGRAM [UNITTEST-ARGS]`; exits with 77 where there is no browser.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "report"))

import browser  # noqa: E402


class Reproduced(browser.Page):
    def show(self, what):
        page = self.path / "claims.html"
        subprocess.run([browser.RENDERER, "reproduce", what, "--quick", "--html", str(page)],
                       check=True, timeout=120, stdout=subprocess.DEVNULL)
        self.forget_logs()
        self.browser.get(page.as_uri())
        browser.WebDriverWait(self.browser, 30).until(
            lambda b: b.execute_script(
                "const d = document.documentElement.dataset;"
                "return d.charts !== undefined || d.errors !== '0'"))
        self.check_quiet()
        cards = self.script("return document.querySelectorAll('.card').length")
        self.assertEqual(self.script("return document.documentElement.dataset.charts"), str(cards))
        self.check_painted(cards)
        return cards

    def test_claims_and_curves_are_drawn(self):
        self.assertGreater(self.show("all"), 16)

    @browser.in_long_runs
    def test_curves_alone(self):
        self.assertEqual(self.show("beyond"), 2 * 8)

    @browser.in_long_runs
    def test_in_the_dark(self):
        self.scheme("dark")
        self.show("beyond")

    def shown(self):
        """In each chart whether d-mcs is drawn."""
        return self.script("""
            return [...document.querySelectorAll("[data-writers='1'] canvas")].map((canvas) => {
              const chart = Chart.getChart(canvas);
              const at = chart.data.datasets.findIndex((set) => set.label === "d-mcs");
              return chart.isDatasetVisible(at);
            })""")

    @browser.in_long_runs
    def test_the_legend_hides_a_lock_in_all_charts(self):
        self.show("beyond")
        self.assertEqual(self.shown(), [True] * 8)
        self.press("#beyond-legend .chip", "d-mcs")
        self.assertEqual(self.shown(), [False] * 8)
        self.press("#beyond-legend .chip", "d-mcs")
        self.assertEqual(self.shown(), [True] * 8)


if __name__ == "__main__":
    browser.main()
