#!/usr/bin/env python3
"""The charts that workloads of the papers have of their own, and those of what was varied, in a
browser. See browser.py.

The documents are runs of the sample with the settings and latencies that a test is about.
"""

import copy

from browser import CHARTS_PER_GROUP, By, Page, in_long_runs, main

# Those of a workload in rounds: the cascade, the latencies, and rank 0's operations.
CHARTS_OF_ROUNDS = 4
POINTS = "chart.data.datasets.map((one) => [one.label, one.data.map(({x, y}) => [x, y])])"


def scaled(run, factor):
    """The same run with all latencies times a factor and the throughput divided by it."""
    run = copy.deepcopy(run)
    for part in (run, run["read"], run["write"]):
        for name, us in part["latency_us"].items():
            part["latency_us"][name] = us and us * factor
    run["throughput_ops_s"] /= factor
    run.pop("latency_cdf", None)
    return run


class Papers(Page):
    def runs(self, locks, procs):
        return [run for run in self.sample["runs"] if run["workload"] == "warb"
                and run["lock"] in locks and run["procs"] in procs]

    def document(self, workload, runs, settings=({},)):
        """Each run once with each of the settings, the later ones slower."""
        varied = []
        for factor, setting in enumerate(settings, 1):
            for run in runs:
                run = scaled(run, factor)
                run.update(workload=workload, **setting)
                varied.append(run)
        return {**self.sample, "runs": varied}

    def contention(self, locks, procs, table_sizes, holds=(0,)):
        return self.document("contention", self.runs(locks, procs), [
            {"locks": size, "hold_us": hold, "server_busy": False}
            for hold in holds for size in table_sizes])

    def open_contention(self, bench, charts):
        for run in bench["runs"]:
            if run["workload"] != "contention":
                continue
            run["contention"] = 1 - run["locks"] / (run["procs"] - 1)
        self.open(bench, charts)

    def about(self, name):
        """Title, caption, accessible name, and titles of the axes of a chart."""
        card = self.browser.find_element(By.CSS_SELECTOR, f"[data-chart={name}]")
        return (card.find_element(By.TAG_NAME, "h3").text,
                card.find_element(By.CSS_SELECTOR, "figcaption p").text,
                card.find_element(By.TAG_NAME, "canvas").get_attribute("aria-label"),
                [self.chart(name, f"chart.options.scales.{axis}.title.text") for axis in "xy"])

    def lead(self):
        return self.browser.find_element(By.CSS_SELECTOR, ".lead").text

    def charts(self):
        return self.script("return [...document.querySelectorAll('.card')]"
                           ".map((card) => card.dataset.chart)")

    # ---- workloads in rounds -------------------------------------------------------------

    def test_cascade_is_latency_against_the_ranks_that_wait(self):
        bench = self.document("cascade", self.runs(["d-mcs", "alock"], [4, 16, 64]))
        self.open(bench, CHARTS_OF_ROUNDS)
        self.assertEqual(self.charts(), ["cascade", "latency", "network", "cpu"])
        wanted = {}
        for run in bench["runs"]:
            wanted.setdefault(run["lock"], []).append(
                [run["procs"] - 1, run["latency_us"]["p50"]])
        self.assertEqual(self.chart("cascade", POINTS), [[*one] for one in wanted.items()])
        title, caption, label, axes = self.about("cascade")
        self.assertEqual(title, "Unlock cascade: median latency over waiting ranks")
        self.assertEqual(caption, "Rank 0's, from its release until it has the lock again")
        self.assertIn("d-mcs", label)
        self.assertIn("at 63", label)
        self.assertEqual(axes, ["ranks that wait", "median latency"])
        self.assertIn("alock is the fastest", self.lead())

    @in_long_runs
    def test_cascade_per_handoff_and_tail(self):
        bench = self.document("cascade", self.runs(["d-mcs"], [4, 16, 64]))
        self.open(bench, CHARTS_OF_ROUNDS)
        shown = lambda: [y for _, y in self.chart("cascade", POINTS)[0][1]]
        self.press("[data-chart=cascade] button", "p99")
        self.assertEqual(shown(), [run["latency_us"]["p99"] for run in bench["runs"]])
        self.press("[data-chart=cascade] button", "per handoff")
        self.assertEqual(shown(), [run["latency_us"]["p50"] / run["procs"]
                                   for run in bench["runs"]])
        self.check_quiet()

    @in_long_runs
    def test_cascade_with_one_number_of_ranks_gives_bars(self):
        bench = self.document("cascade", self.runs(["d-mcs", "alock", "spin"], [16]))
        self.open(bench, CHARTS_OF_ROUNDS)
        self.assertEqual(self.chart("cascade", "chart.config.type"), "bar")
        self.assertEqual(self.chart("cascade", "chart.data.datasets[0].data"),
                         sorted(run["latency_us"]["p50"] for run in bench["runs"]))
        self.assertEqual(self.about("cascade")[0], "Unlock cascade: median latency")

    def test_dht_writer_along_bytes(self):
        bench = self.document("dht-writer", self.runs(["rma-rw"], [4, 16]),
                              [{"bytes": 64}, {"bytes": 512}, {"bytes": 4096}])
        self.open(bench, CHARTS_OF_ROUNDS + 1)
        points = self.chart("over-bytes", POINTS)
        self.assertEqual(points, [["rma-rw", [
            [run["bytes"], run["latency_us"]["p50"]] for run in bench["runs"]
            if run["procs"] == 16]]])
        self.assertEqual(self.about("over-bytes")[3], ["bytes written", "median latency"])

    # ---- contention ----------------------------------------------------------------------

    def test_contention_with_several_numbers_of_locks(self):
        bench = self.contention(["d-mcs", "spin"], [4, 16], [1, 3, 5])
        self.open_contention(bench, CHARTS_PER_GROUP + 1)
        wanted = [[lock, sorted([run["contention"], run["throughput_ops_s"]]
                                for run in bench["runs"]
                                if run["lock"] == lock and run["procs"] == 16)]
                  for lock in ("d-mcs", "spin")]
        wanted.sort(key=lambda one: self.chart("over-contention", POINTS)[0][0] != one[0])
        self.assertEqual(self.chart("over-contention", POINTS), wanted)
        title, caption, label, axes = self.about("over-contention")
        self.assertEqual(title, "Throughput over contention")
        self.assertEqual(caption, "By lock, at 16 ranks")
        self.assertIn("at 93.3", label)
        self.assertEqual(axes, ["contention, 1 − locks / clients", "operations per second"])
        self.press("[data-chart=over-contention] button", "median")
        self.assertEqual(self.about("over-contention")[0], "Median latency over contention")
        self.assertIn(min(run["latency_us"]["p50"] for run in bench["runs"]
                          if run["procs"] == 16 and run["lock"] == "d-mcs"),
                      [y for _, y in self.chart("over-contention", POINTS)[0][1]])

    @in_long_runs
    def test_contention_of_one_lock_goes_along_the_ranks(self):
        bench = self.contention(["d-mcs"], [4, 16, 64], [1])
        self.open_contention(bench, CHARTS_PER_GROUP + 1)
        self.assertEqual(self.chart("over-contention", POINTS)[0][1],
                         [[run["contention"], run["throughput_ops_s"]] for run in bench["runs"]])
        self.assertEqual(self.about("over-contention")[1], "By lock, all numbers of ranks")

    @in_long_runs
    def test_contention_along_the_hold_time(self):
        bench = self.contention(["d-mcs", "spin"], [16], [1, 5], [0, 20, 270])
        self.open_contention(bench, CHARTS_PER_GROUP + 2)
        at = lambda lock, size: [[run["hold_us"], run["throughput_ops_s"]]
                                 for run in bench["runs"]
                                 if run["lock"] == lock and run["locks"] == size]
        lines = dict(self.chart("over-hold_us", POINTS))
        self.assertEqual(lines, {lock: at(lock, 1) for lock in ("d-mcs", "spin")})
        self.assertEqual(self.about("over-hold_us")[1], "By lock, at 16 ranks, 1 lock")
        # What is picked moves the other charts.
        self.press(".pick button", "5")
        lines = dict(self.chart("over-hold_us", POINTS))
        self.assertEqual(lines, {lock: at(lock, 5) for lock in ("d-mcs", "spin")})
        self.press(".pick button", "270\u202fµs")
        self.assertIn("5 locks, held 270\u202fµs", self.lead())
        self.check_quiet()

    @in_long_runs
    def test_contention_of_a_single_run_has_bars_and_its_facts(self):
        bench = self.contention(["d-mcs"], [16], [3], [20])
        self.open_contention(bench, CHARTS_PER_GROUP)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "bar")
        facts = self.browser.find_element(By.CSS_SELECTOR, "section.group .what").text
        self.assertIn("3 locks · held 20\u202fµs", facts)

    # ---- mixes ---------------------------------------------------------------------------

    def mix(self, shares, locks=("rma-rw", "fompi-rw"), procs=(4, 16)):
        bench = self.document("mix", self.runs(locks, procs),
                              [{"writers": share} for share in shares])
        for run in bench["runs"]:
            run["locks"] = run["procs"]
        return bench

    def test_quartiles_of_each_lock_and_mix(self):
        bench = self.mix([0, 0.5, 1])
        self.open(bench, CHARTS_PER_GROUP + 2)
        self.press("[data-chart=quartiles] button", "linear")
        sets = self.chart("quartiles", "chart.data.datasets.map((one) => "
                          "[one.label, one.data, one.stats.map(({p50}) => p50)])")
        labels = self.chart("quartiles", "chart.data.labels")
        for (label, boxes, medians), share in zip(sets, [0, 0.5, 1], strict=True):
            self.assertEqual(label, f"{round(100 * share)}\u202f% writers")
            stats = [run["latency_us"] for lock in labels for run in bench["runs"]
                     if (run["lock"], run["procs"], run["writers"]) == (lock, 16, share)]
            self.assertEqual(boxes, [[one["p25"], one["p75"]] for one in stats])
            self.assertEqual(medians, [one["p50"] for one in stats])
        name = self.about("quartiles")[2]
        self.assertIn("Quartiles of the latency, at 16 ranks: ", name)
        self.assertEqual(name.count("of the median"), 6)

    @in_long_runs
    def test_quartiles_of_reads_and_hidden_mixes(self):
        bench = self.mix([0, 0.5])
        self.open(bench, CHARTS_PER_GROUP + 2)
        self.press("[data-chart=quartiles] button", "linear")
        self.press("[data-chart=quartiles] button", "reads")
        run = next(run for run in bench["runs"] if run["procs"] == 16
                   and run["lock"] == self.chart("quartiles", "chart.data.labels[0]"))
        stats = run["read"]["latency_us"]
        self.assertEqual(self.chart("quartiles", "chart.data.datasets[0].data[0]"),
                         [stats["p25"], stats["p75"]])
        self.press("[data-chart=quartiles] .chip", "0\u202f% writers")
        self.assertEqual(self.chart("quartiles", "chart.data.datasets.map((one) => one.label)"),
                         ["50\u202f% writers"])
        self.check_painted(CHARTS_PER_GROUP + 2)

    @in_long_runs
    def test_a_mix_is_one_section_with_its_median_first(self):
        bench = self.mix([0, 0.5, 1], procs=(4, 16, 64))
        self.open(bench, CHARTS_PER_GROUP + 2)
        self.press(".pick button", "16")
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "section.group")), 1)
        self.assertIn("a lock on each rank", self.browser.find_element(
            By.CSS_SELECTOR, "section.group .what").text)
        self.assertEqual(dict(self.chart("over-writers", POINTS)), {
            lock: [[run["writers"], run["latency_us"]["p50"]] for run in bench["runs"]
                   if run["lock"] == lock and run["procs"] == 16]
            for lock in ("rma-rw", "fompi-rw")})
        self.press(".pick button", "100\u202f%")
        self.assertEqual(dict(self.chart("throughput", POINTS)), {
            lock: [[run["procs"], run["latency_us"]["p50"]] for run in bench["runs"]
                   if run["lock"] == lock and run["writers"] == 1]
            for lock in ("rma-rw", "fompi-rw")})
        self.assertIn("at 100\u202f% writers", self.about("throughput")[2])

    @in_long_runs
    def test_one_lock_and_one_mix(self):
        self.open(self.mix([0.5], ["rma-rw"], [16]), CHARTS_PER_GROUP + 1)
        self.assertEqual(self.chart("quartiles", "chart.data.datasets.length"), 1)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "bar")

    # ---- what is varied in the others ----------------------------------------------------

    @in_long_runs
    def test_a_parameter_is_an_axis_and_its_values_are_series(self):
        runs = self.runs(["rma-rw"], [4, 16])
        bench = self.document("ecsb", runs, [{"params": {"T_R": value, "T_DC": 16}}
                                             for value in (10, 100, 1000)])
        bench["runs"] += self.document("ecsb", self.runs(["d-mcs"], [4, 16]))["runs"]
        self.open(bench, CHARTS_PER_GROUP + 1)
        self.assertEqual([one for one in self.chart("over-T_R", POINTS) if one[1]], [["rma-rw", [
            [run["params"]["T_R"], run["throughput_ops_s"]] for run in bench["runs"]
            if run["procs"] == 16 and run["lock"] == "rma-rw"]]])
        self.assertEqual(self.chart("over-T_R", "chart.options.scales.x.type"), "logarithmic")
        # A value that is switched off is off the line.
        self.press(".controls .chip", "rma-rw T_R=100")
        self.assertEqual([x for x, _ in self.chart("over-T_R", POINTS)[0][1]], [10, 1000])

    def test_a_table_goes_along_locality_and_locks(self):
        settings = [{"locality": share, "locks": size}
                    for share in (0, 0.85, 1) for size in (20, 100, 1000)]
        bench = self.document("table", self.runs(["alock", "spin"], [16]), settings)
        self.open(bench, CHARTS_PER_GROUP + 2)
        wanted = [[run["locality"], run["throughput_ops_s"]] for run in bench["runs"]
                  if run["lock"] == "alock" and run["locks"] == 20]
        self.assertEqual(dict(self.chart("over-locality", POINTS))["alock"], wanted)
        wanted = [[run["locks"], run["throughput_ops_s"]] for run in bench["runs"]
                  if run["lock"] == "alock" and run["locality"] == 0]
        self.assertEqual(dict(self.chart("over-locks", POINTS))["alock"], wanted)

    @in_long_runs
    def test_picking_what_was_not_run_with_the_rest_moves_the_rest(self):
        one = self.document("table", self.runs(["alock"], [4, 16]), [{"locks": 20}])
        two = self.document("table", self.runs(["alock"], [4]), [{"locks": 1000}])
        self.open({**one, "runs": one["runs"] + two["runs"]}, CHARTS_PER_GROUP + 1)
        self.assertIn("At 16 ranks, 20 locks,", self.lead())
        self.press(".pick button", "1000")
        self.assertIn("At 4 ranks, 1000 locks,", self.lead())
        self.check_painted(CHARTS_PER_GROUP + 1)

    @in_long_runs
    def test_lines_become_bars_where_there_is_one_value(self):
        one = self.document("table", self.runs(["alock"], [4, 16, 64]), [{"locks": 20}])
        two = self.document("table", self.runs(["alock"], [4]), [{"locks": 500}, {"locks": 1000}])
        self.open({**one, "runs": one["runs"] + two["runs"]}, CHARTS_PER_GROUP + 1)
        self.assertEqual(self.chart("throughput", "chart.config.type"), "line")
        self.assertEqual(self.chart("over-locks", "chart.config.type"), "bar")
        self.press(".pick button", "1000")
        self.assertEqual(self.chart("throughput", "chart.config.type"), "bar")
        self.assertEqual(self.chart("over-locks", "chart.config.type"), "line")
        self.check_quiet()
        self.check_painted(CHARTS_PER_GROUP + 1)

    @in_long_runs
    def test_layout(self):
        bench = self.contention(["d-mcs", "spin"], [4, 16], [1, 3], [0, 20])
        bench["runs"] += self.mix([0, 0.5, 1])["runs"]
        self.open_contention(bench, 2 * (CHARTS_PER_GROUP + 2))
        self.check_layout()

    @in_long_runs
    def test_every_control_can_be_pressed(self):
        bench = self.contention(["d-mcs", "spin"], [4, 16], [1, 3], [0, 20])
        bench["runs"] += self.mix([0, 0.5])["runs"]
        bench["runs"] += self.document("cascade", self.runs(["d-mcs"], [4, 16]))["runs"]
        self.open_contention(bench, 2 * (CHARTS_PER_GROUP + 2) + CHARTS_OF_ROUNDS)
        self.script("for (const one of document.querySelectorAll('#sections button'))"
                    " { one.click(); one.click(); }")
        self.check_quiet()
        self.check_painted(2 * (CHARTS_PER_GROUP + 2) + CHARTS_OF_ROUNDS)


if __name__ == "__main__":
    main()
