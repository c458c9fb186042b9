"""The pages of claims and curves in a headless Chromium.

Called as `browser_test.py PROGRAM [UNITTEST-ARGS]`; exits with 77 where there is no browser.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "report"))

import browser  # noqa: E402

MACHINES = len(list((pathlib.Path(__file__).resolve().parents[3] / "lab" / "machines").glob("*.toml")))


class Reproduced(browser.Page):
    def write(self, *what):
        """Writes the pages of a reproduction, and returns the path of the first."""
        page = self.path / "pages.html"
        # Claims of a paper that do not hold make the program exit with 1.
        subprocess.run([browser.RENDERER, "reproduce", *what, "--html", str(page)], check=False,
                       timeout=300, stdout=subprocess.DEVNULL)
        return page

    def show(self, page):
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

    def test_a_papers_figures_are_drawn(self):
        # Its runs are the shortest.
        page = self.write("dlm")
        self.assertGreater(self.show(page), 6)
        curves = self.script("""
            return [...document.querySelectorAll('.card[data-number] canvas')].map(
              (canvas) => Chart.getChart(canvas).data.datasets.length)""")
        self.assertGreater(len(curves), 3)
        self.assertTrue(all(n > 0 for n in curves), curves)
        # The claims that do not hold come first, then the charts, two abreast.
        self.assertEqual(self.script(
            "return [...document.querySelectorAll('main > section')].map((one) => one.id)"),
            ["missed", "charts", "held"])
        for width, abreast in ((500, 1), (1280, 2)):
            self.resize(width)
            lefts = self.script("return [...document.querySelectorAll('.card')]"
                                ".map((one) => one.getBoundingClientRect().left)")
            self.assertEqual(len(set(lefts)), abreast)
        self.assertLess(self.script("return document.documentElement.scrollHeight"), 6000)
        self.check_layout("a paper")

    def test_the_index_leads_to_a_page_for_each_part(self):
        page = self.write("all", "--quick")
        self.assertEqual(self.show(page), 0)
        links = self.script("return [...document.querySelectorAll('.jump a')].map((a) => a.href)")
        self.assertEqual(len(links), 10)
        self.check_layout("index")
        self.resize(1400)
        for link in links:
            beside = page.parent / link.rsplit("/", 1)[1]
            self.assertTrue(beside.exists(), link)
        self.assertGreater(self.show(beside), 10)  # the last one, beyond
        self.check_layout("beyond")

    @browser.in_long_runs
    def test_curves_alone(self):
        self.assertEqual(self.show(self.write("beyond", "--quick")), 2 * MACHINES)

    @browser.in_long_runs
    def test_in_the_dark(self):
        self.scheme("dark")
        self.show(self.write("beyond", "--quick"))

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
        self.show(self.write("beyond", "--quick"))
        self.assertEqual(self.shown(), [True] * MACHINES)
        self.press("#beyond-legend .chip", "d-mcs")
        self.assertEqual(self.shown(), [False] * MACHINES)
        self.press("#beyond-legend .chip", "d-mcs")
        self.assertEqual(self.shown(), [True] * MACHINES)


if __name__ == "__main__":
    browser.main()
