// From the bench document to what the charts draw: groups of comparable runs, and in each group
// one series per lock. Nothing here touches the page.
"use strict";

const lockflight = {};

(function (lf) {
  const workloads = {
    lb: "Latency", ecsb: "Empty critical section", sob: "Single operation",
    wcsb: "Work in the critical section", warb: "Wait after release", table: "Lock table",
    mix: "Reader-writer mix", cascade: "Cascade", contention: "Contention",
    dht: "Distributed hash table",
  };

  const narrow = "\u202f";

  lf.rounded = function (value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const magnitude = Math.floor(Math.log10(Math.abs(value)));
    if (magnitude >= 2) {
      const digits = value.toFixed(0);
      return digits.length <= 4 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, narrow);
    }
    return String(Number(value.toFixed(Math.min(9, 2 - magnitude))));
  };

  lf.scaled = function (value) {
    if (value === null || value === undefined) return "–";
    for (const [unit, suffix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(value) >= unit * 0.9995) return lf.rounded(value / unit) + narrow + suffix;
    }
    return lf.rounded(value);
  };

  // A latency in µs with the unit that keeps the number short.
  lf.duration = function (us) {
    if (us === null || us === undefined) return "–";
    if (us >= 999500) return lf.rounded(us / 1e6) + narrow + "s";
    if (us >= 999.5) return lf.rounded(us / 1e3) + narrow + "ms";
    if (us > 0 && us < 0.9995) return lf.rounded(us * 1e3) + narrow + "ns";
    return lf.rounded(us) + narrow + "µs";
  };

  lf.percent = (fraction) => lf.rounded(100 * fraction) + narrow + "%";

  // Ranks are exact as long as that is short: 1024 is no 1.02 k.
  lf.rank_number = (n) => (n < 1e5 ? lf.rounded(n) : lf.scaled(n));
  lf.ranks = (n) => `${lf.rounded(n)} rank${n === 1 ? "" : "s"}`;

  lf.workload_title = (name) => workloads[name] || name;

  lf.load = function () {
    return JSON.parse(document.getElementById("bench").textContent);
  };

  lf.distinct = (values) => [...new Set(values)];

  // What must be equal for two runs to be drawn into the same chart; ranks and locks are what
  // the charts compare.
  const group_fields = ["workload", "writers", "fabric", "machine", "locality", "locks", "hold_us",
    "server_busy", "bytes"];

  // Fields in which the runs of one lock may still differ at the same number of ranks.
  function variant_fields(runs) {
    const fields = [];
    for (const name of lf.distinct(runs.flatMap((run) => Object.keys(run.params)))) {
      if (lf.distinct(runs.map((run) => JSON.stringify(run.params[name]))).length > 1) {
        fields.push([name, (run) => run.params[name]]);
      }
    }
    // The levels grow with the ranks as a rule; they set a series apart only where the same
    // number of ranks was run with different ones.
    const by_procs = new Map();
    for (const run of runs) {
      if (!by_procs.has(run.procs)) by_procs.set(run.procs, new Set());
      by_procs.get(run.procs).add(run.levels);
    }
    if ([...by_procs.values()].some((levels) => levels.size > 1)) {
      fields.push(["levels", (run) => run.levels]);
    }
    return fields;
  }

  // The run that stands for several of the same: the one with the median throughput.
  function median_run(runs) {
    const sorted = [...runs].sort((a, b) => a.throughput_ops_s - b.throughput_ops_s);
    return sorted[Math.floor(sorted.length / 2)];
  }

  function series_of_lock(lock, runs) {
    const fields = variant_fields(runs);
    const variants = new Map();
    for (const run of runs) {
      const label = fields.map(([name, get]) => `${name}=${get(run) ?? "default"}`).join(" ");
      if (!variants.has(label)) variants.set(label, new Map());
      const at = variants.get(label);
      if (!at.has(run.procs)) at.set(run.procs, []);
      at.get(run.procs).push(run);
    }
    return [...variants].map(([label, at], index) => ({
      lock,
      variant: index,
      label: label ? `${lock} ${label}` : lock,
      kind: runs[0].kind,
      repeats: Math.max(...[...at.values()].map((same) => same.length)),
      at: new Map([...at].sort((a, b) => a[0] - b[0]).map(([p, same]) => [p, median_run(same)])),
    }));
  }

  function make_group(runs) {
    const [first] = runs;
    const series = lf.distinct(runs.map((run) => run.lock))
      .flatMap((lock) => series_of_lock(lock, runs.filter((run) => run.lock === lock)));
    const where = first.machine ? `${first.fabric}, ${first.machine}` : first.fabric;
    const facts = [`${lf.percent(first.writers)} writers`, where];
    if (first.locality !== null) facts.splice(1, 0, `${lf.percent(first.locality)} local`);
    if (first.locks) facts.push(first.locks === 1 ? "1 lock" : `${first.locks} locks`);
    if (first.hold_us) facts.push(`held ${lf.duration(first.hold_us)}`);
    if (first.server_busy) facts.push("the server computes");
    if (first.bytes) facts.push(`${first.bytes} bytes`);
    return {
      name: first.workload,
      title: lf.workload_title(first.workload),
      facts,
      series,
      procs: lf.distinct(runs.map((run) => run.procs)).sort((a, b) => a - b),
      repeats: Math.max(...series.map((one) => one.repeats)),
    };
  }

  lf.groups = function (runs) {
    const groups = new Map();
    for (const run of runs) {
      const key = JSON.stringify(group_fields.map((field) => run[field]));
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(run);
    }
    return [...groups.values()].map(make_group);
  };

  // A side is "all", "read", "write" or, with many locks, "local" or "remote".
  const part = (run, side) => (side === "all" ? run : run[side]);

  // The latency stats of a side; null when there were no such ops.
  lf.latency = function (run, side) {
    const stats = part(run, side) && part(run, side).latency_us;
    return stats && stats.p50 !== null ? stats : null;
  };

  // Points [us, fraction] of the latency distribution. A point may not claim more than the
  // number of operations can tell: the largest of n stands for 1 - 1/n at least.
  lf.distribution = function (run, side) {
    const cdf = part(run, side) && part(run, side).latency_cdf;
    if (cdf && cdf.length > 1) return thin(cdf.filter(([us]) => us > 0), 400);
    const stats = lf.latency(run, side);
    if (!stats) return [];
    const points = [[stats.p25, 0.25], [stats.p50, 0.5], [stats.p75, 0.75], [stats.p99, 0.99],
      [stats.p999, 0.999], [stats.max, 1]];
    return points.filter(([us]) => us !== null && us > 0);
  };

  // Every n-th point and the last; a page with a hundred thousand points would crawl.
  function thin(points, limit) {
    if (points.length <= limit) return points;
    const step = Math.ceil(points.length / limit);
    return points.filter((_, i) => i % step === 0 || i === points.length - 1);
  }

  lf.side_ops = (run, side) => (part(run, side) ? part(run, side).ops : 0);

  // One sentence that says who won, for the largest number of ranks shown.
  lf.lead = function (group, procs, is_shown) {
    const ranked = group.series
      .filter((one) => one.at.has(procs) && is_shown(one))
      .map((one) => ({ label: one.label, rate: one.at.get(procs).throughput_ops_s }))
      .sort((a, b) => b.rate - a.rate);
    if (ranked.length === 0) return null;
    const [best, next] = ranked;
    const sentence = { procs, best: best.label, rate: lf.scaled(best.rate) };
    if (next && next.rate > 0) {
      sentence.ratio = lf.rounded(best.rate / next.rate);
      sentence.next = next.label;
    }
    return sentence;
  };
})(lockflight);
