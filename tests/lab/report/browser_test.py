#!/usr/bin/env python3
"""The page as a whole, in a browser: charts, legends, pickers, the table. See browser.py."""

import copy

from browser import CHARTS_PER_GROUP, HERE, By, Page, WebDriverWait, in_long_runs, main

HOSTILE = "</script><script>window.injected=1</script><img src=x onerror='window.injected=1'><b>&"


class Report(Page):
    def one_workload(self):
        """The sample with half of its charts, which take long to draw."""
        return self.only(lambda run: run["workload"] == "ecsb")

    def test_sample(self):
        self.open(self.sample, 2 * CHARTS_PER_GROUP)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, ".verdict.good")), 1)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "section.group")), 2)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "line")
        self.assertEqual(self.chart("throughput", "chart.data.datasets.length"), 8)
        runs = self.sample["runs"]
        self.assertEqual(len(self.column("Lock")), len(runs))
        # The runs with the most ranks come first, and among them the fastest.
        fastest = max((run for run in runs if run["workload"] == "ecsb" and run["procs"] == 1024),
                      key=lambda run: run["throughput_ops_s"])
        self.assertEqual((self.column("Lock")[0], self.column("Ranks")[0]),
                         (fastest["lock"], "1024"))
        # A mutex has no share of writers.
        self.assertEqual({writers for writers, kind in zip(
            self.column("Writers"), self.column("Kind"), strict=True) if kind == "mutex"}, {""})
        self.assertIn("does nothing in between", self.script(
            "return document.querySelector('#group-1 .about').textContent"))

    def test_layout(self):
        self.open(self.one_workload(), CHARTS_PER_GROUP)
        self.check_layout("lines")
        self.press("[data-chart=latency] button", "distribution")
        self.check_layout("distribution")

    def test_layout_with_many_locks_and_two_numbers_of_ranks(self):
        bench = self.only(lambda run: run["procs"] in (4, 16) and run["workload"] == "ecsb")
        for number in range(2):
            for run in self.only(lambda run: run["procs"] in (4, 16)
                                 and run["workload"] == "ecsb")["runs"]:
                run["lock"] += f"-with-{number}"
                bench["runs"].append(run)
        self.open(bench, CHARTS_PER_GROUP)
        self.check_layout("pairs of bars")
        self.assertEqual(self.script(
            "return [...document.querySelectorAll('.scrolls')].map((one) => one.className)"),
            ["scrolls wide more-right"])
        sets = self.chart("throughput", "chart.data.datasets.map((one) => one.data)")
        self.assertEqual(len(sets), 2)
        self.assertEqual(sets[1], sorted(sets[1], reverse=True))

    def test_layout_of_equal_values_on_logarithmic_axes(self):
        """Runs within a few per cent of each other, whose axes have no power of ten."""
        bench = self.only(lambda run: run["workload"] == "warb" and run["procs"] >= 64)
        for i, run in enumerate(bench["runs"]):
            run["throughput_ops_s"] = 1.9e6 + 1e4 * i
            run["handoffs"] = [0, 0]
        self.open(bench, CHARTS_PER_GROUP - 1)
        self.press("[data-chart=throughput] button", "log")
        self.check_layout("equal values")

    def test_the_runs_of_a_sweep_have_labels_and_colours_of_their_own(self):
        bench = self.only(lambda run: run["workload"] == "ecsb" and run["procs"] == 4
                          and run["lock"] in ("rma-rw", "flight"))
        for run in bench["runs"][:]:
            for value in (10, 1000):
                bench["runs"].append(copy.deepcopy(run))
                bench["runs"][-1]["params"]["readers_in_a_row"] = value
        self.open(bench, CHARTS_PER_GROUP + 1)
        self.check_layout("a sweep")
        self.assertEqual(
            sorted(self.chart("fairness", "chart.scales.y.ticks.map(({ label }) => label)")),
            [f"{lock} {value}" for lock in ("flight", "rma-rw") for value in (10, 1000, "default")])
        chips = self.script("return [...document.querySelectorAll('.controls .swatch')]"
                            ".map((swatch) => swatch.style.background)")
        self.assertEqual((len(chips), len(set(chips))), (6, 6))
        own = self.chart("fairness", "chart.data.datasets[0].backgroundColor.filter((_, i) =>"
                         " chart.data.labels[i].startsWith('flight'))")
        self.assertEqual(len(set(own)), 3)
        titles = self.script("return [...document.querySelectorAll('#table thead th')]"
                             ".map((title) => title.textContent)")
        self.assertLess(titles.index("Parameters"), titles.index("Ops/s"))

    def test_a_workload_without_a_lock_is_called_none(self):
        bench = self.only(lambda run: run["workload"] == "warb" and run["procs"] == 4)
        for name, run in zip(("get", "put", "add"), bench["runs"], strict=False):
            run.update(lock=name, kind="none", workload="primitive", handoffs=[0, 0])
        bench["runs"][0]["latency_us"]["p50"] = 0.0095
        del bench["runs"][3:]
        self.open(bench, 4)
        self.check_layout("without a lock")
        text = self.script("return document.body.innerText")
        self.assertIn("3\u00a0operations of the fabric on 4\u00a0ranks", text)
        self.assertIn("No lock was run.", text)
        self.assertIn("One operation", text)
        self.assertIn("get is the fastest: 9.5\u202fns in the median", text)
        self.assertIn("another rank, of another node if there are several", text)
        self.assertNotIn("utual exclusion held", text)
        charts = self.script("return document.getElementById('sections').innerText")
        for of_locks in ("acquire", "Fairness", "Longest wait"):
            self.assertNotIn(of_locks, charts)
        self.assertCountEqual(self.column("Measured"), ["get", "put", "add"])

    def test_the_check_of_the_layout_finds_faults(self):
        self.open(self.only(lambda run: run["procs"] == 4 and run["workload"] == "ecsb"),
                  CHARTS_PER_GROUP)
        faults = """
            const summary = document.querySelector(".summary");
            summary.style.color = "var(--line)";
            document.querySelector(".about").style.marginTop = "-12px";
            document.querySelector(".jump").insertAdjacentHTML("afterend",
              "<p style='width: 3000px'>wide</p>");
            const { texts } = Chart.getChart(document.querySelector("canvas"));
            Object.assign(texts[1], texts[0]);
            document.querySelector(".card:last-child").remove();"""
        # In one script: the charts are drawn anew after it.
        found = "\n".join(self.script(faults + (HERE / "layout.js").read_text(encoding="utf-8")))
        for fault in ("has a contrast of", "wider than its window", '" is over "', "Throughput: ",
                      "row 3 of cards is not full"):
            self.assertIn(fault, found)

    @in_long_runs
    def test_distribution_uses_the_cdf_where_there_is_one(self):
        self.open(self.only(lambda run: run["workload"] == "ecsb"), CHARTS_PER_GROUP)
        self.press("[data-chart=latency] button", "distribution")
        self.assertEqual(self.chart("latency", "chart.data.datasets[0].data.length"), 41)
        self.open(self.only(lambda run: run["workload"] == "warb"), CHARTS_PER_GROUP)
        self.press("[data-chart=latency] button", "distribution")
        self.assertEqual(self.chart("latency", "chart.data.datasets[0].data.length"), 6)

    @in_long_runs
    def test_one_number_of_ranks_gives_bars(self):
        bench = self.only(lambda run: run["procs"] == 64 and run["workload"] == "warb")
        self.open(bench, CHARTS_PER_GROUP)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "bar")
        self.assertEqual(
            self.chart("throughput", "chart.data.datasets[0].data"),
            sorted((run["throughput_ops_s"] for run in bench["runs"]), reverse=True))

    @in_long_runs
    def test_own_locks_are_highlighted(self):
        self.open(self.one_workload(), CHARTS_PER_GROUP)
        lines = dict(self.chart(
            "throughput", "chart.data.datasets.map((one) => [one.label, one.borderColor])"))
        self.assertEqual(len(set(lines.values())), 8)
        bars = dict(self.chart(
            "fairness", "chart.data.labels.map((label, i) =>"
            " [label, chart.data.datasets[0].backgroundColor[i]])"))
        own = {"flight", "flight-rw"}
        self.assertEqual({lock: bars[lock] for lock in own}, {lock: lines[lock] for lock in own})
        plain = {colour for lock, colour in bars.items() if lock not in own}
        self.assertEqual(len(plain), 1)
        self.assertNotIn(plain.pop(), lines.values())
        self.assertEqual(self.script(
            "return [...document.querySelectorAll('.chip.own')].map((chip) => chip.textContent)"),
            ["flight-rw", "flight"])

    def test_ranks_and_shares_of_writers_make_a_heat_map(self):
        ranks, shares = (4, 16, 64), (0.0, 0.2, 0.5)
        bench = self.one_workload()
        bench["runs"] = [
            {**run, "writers": share, "throughput_ops_s":
             4e6 if run["lock"] == "rma-rw" and share == 0.5 else 1e6}
            for run in bench["runs"] if run["lock"] in ("flight-rw", "rma-rw")
            and run["procs"] in ranks for share in shares]
        self.open(bench, CHARTS_PER_GROUP + 2)
        self.assertEqual(
            self.chart("grid", "chart.data.datasets[0].data.map((cell) =>"
                       " [cell.run.procs, cell.run.writers, cell.ratio])"),
            [[procs, share, 0.25 if share == 0.5 else 1]
             for procs in ranks for share in shares])
        self.assertEqual(self.chart("grid", "chart.texts.map(({text}) => text)").count("0.25"), 3)
        self.check_layout("a heat map")

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

    @in_long_runs
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

    @in_long_runs
    def test_ranks_picker_moves_the_other_charts(self):
        self.open(self.one_workload(), CHARTS_PER_GROUP)
        self.press("#group-1 .pick button", "16")
        wanted = sorted((run["fairness_jain"] for run in self.sample["runs"]
                         if run["procs"] == 16 and run["workload"] == "ecsb"), reverse=True)
        self.assertEqual(self.chart("fairness", "chart.data.datasets[0].data"), wanted)
        self.assertIn("At 16 ranks", self.script(
            "return document.querySelector('#group-1 .lead').textContent"))

    @in_long_runs
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

    @in_long_runs
    def test_variants_of_a_lock_are_series_of_their_own(self):
        bench = self.only(lambda run: run["lock"] == "rma-rw" and run["workload"] == "ecsb")
        more = copy.deepcopy(bench["runs"])
        for run in more:
            run["params"]["T_R"] = 1024
        bench["runs"] += more
        self.open(bench, CHARTS_PER_GROUP + 1)
        self.assertEqual(self.chart("throughput", "chart.data.datasets.map((one) => one.label)"),
                         ["rma-rw T_R=64", "rma-rw T_R=1024"])

    @in_long_runs
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

    @in_long_runs
    def test_dark_mode_repaints(self):
        self.open(self.one_workload(), CHARTS_PER_GROUP)
        light = self.chart("throughput", "chart.data.datasets[0].borderColor")
        page = "return getComputedStyle(document.body).backgroundColor"
        light_page = self.script(page)
        self.scheme("dark")
        WebDriverWait(self.browser, 10).until(
            lambda b: self.chart("throughput", "chart.data.datasets[0].borderColor") != light)
        self.assertNotEqual(self.script(page), light_page)
        self.check_painted(CHARTS_PER_GROUP)
        # Paper is white whatever the screen is.
        self.script("dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.chart("throughput", "chart.data.datasets[0].borderColor"), light)
        self.script("dispatchEvent(new Event('afterprint'))")
        self.assertNotEqual(self.chart("throughput", "chart.data.datasets[0].borderColor"), light)
        self.check_quiet()


if __name__ == "__main__":
    main()
