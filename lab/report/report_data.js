// From the bench document to the data of the charts: groups of comparable runs, and in each group
// one series for each lock. Nothing here touches the page.
"use strict";

const lockflight = {};

(function (lf) {
  // A workload's title, and what its ranks do.
  const workloads = {
    lb: ["Latency", "Each rank acquires and releases the lock in a loop; each time is measured."],
    ecsb: ["Empty critical section",
      "Each rank acquires and releases the lock in a loop and does nothing in between."],
    sob: ["Single operation",
      "Each holder reads or writes one word at the lock's home by one operation."],
    wcsb: ["Work in the critical section",
      "Each holder increments a shared counter and then computes for 1 to 4 µs."],
    warb: ["Wait after release",
      "The critical section is empty; a rank computes for 1 to 4 µs before its next acquire."],
    table: ["Lock table", "Each rank acquires a random lock of a table; nothing is done inside."],
    mix: ["Reader-writer mix",
      "Each rank has a lock; a rank acquires a random one, as a reader or a writer."],
    cascade: ["Unlock cascade", "Rank 0 holds the lock until all others wait for it."],
    contention: ["Contention", "The clients of a few locks of rank 0 acquire them again and again."],
    zipf: ["Locks by Zipf's law",
      "Each rank draws a lock of rank 0 by Zipf's law, and reads or writes a word under it."],
    dht: ["Distributed hash table",
      "Writers insert random keys into rank 0's part of the table, readers look them up."],
    "dht-writer": ["Distributed hash table, one writer",
      "Rank 0 writes and releases while all others wait as readers."],
    primitive: ["Operations of the fabric",
      "Rank 0 repeats one operation on another rank, of another node if there are several; " +
      "there is no lock."],
    stencil: ["Stencil without a lock",
      "Each rank waits for its neighbours' flags in each iteration; there is no lock."],
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
    if (us === 0) return "0";
    if (us >= 999500) return lf.rounded(us / 1e6) + narrow + "s";
    if (us >= 999.5) return lf.rounded(us / 1e3) + narrow + "ms";
    if (us > 0 && us < 0.9995) return lf.rounded(us * 1e3) + narrow + "ns";
    return lf.rounded(us) + narrow + "µs";
  };

  lf.percent = (fraction) => lf.rounded(100 * fraction) + narrow + "%";

  // Ranks are exact as long as that is short: 1024 is no 1.02 k.
  lf.rank_number = (n) => (n < 1e5 ? lf.rounded(n) : lf.scaled(n));
  lf.ranks = (n) => `${lf.rounded(n)} rank${n === 1 ? "" : "s"}`;

  lf.workload = (name) => workloads[name] || [name, ""];

  lf.load = function () {
    return JSON.parse(document.getElementById("bench").textContent);
  };

  lf.distinct = (values) => [...new Set(values)];

  // Fields that must be equal for two runs to be in the same section.
  const group_fields = ["workload", "fabric", "machine", "server_busy"];

  // Other fields in which the runs of a section may differ: the reader picks a value of each that
  // has several, and a chart shows the runs with those values, or how they change along one of
  // them.
  const settings = [
    { key: "procs", label: "Ranks", text: (n) => lf.rank_number(n), fact: (n) => lf.ranks(n) },
    { key: "writers", label: "Writers", text: lf.percent, rw_only: true,
      fact: (share) => `${lf.percent(share)} writers`, along: "share of operations that write" },
    { key: "locality", label: "Local", text: lf.percent,
      fact: (share) => `${lf.percent(share)} local`,
      along: "share of operations on locks of the own node" },
    { key: "locks", label: "Locks", text: lf.rank_number,
      fact: (n) => `${lf.rounded(n)} lock${n === 1 ? "" : "s"}`, along: "locks" },
    { key: "think_us", label: "Think time", text: lf.duration,
      fact: (us) => `${lf.duration(us)} between operations`, along: "time between operations" },
    { key: "call_us", label: "Call time", text: lf.duration,
      fact: (us) => `${lf.duration(us)} before each acquire`, along: "time before each acquire" },
    { key: "hold_us", label: "Hold time", text: lf.duration,
      fact: (us) => (us > 0 ? `held ${lf.duration(us)}` : "not held"), along: "hold time" },
    { key: "skew", label: "Skew", text: lf.rounded, fact: (s) => `skew ${lf.rounded(s)}`,
      along: "exponent of Zipf's law" },
    { key: "bytes", label: "Bytes", text: lf.rank_number, fact: (n) => `${lf.rounded(n)} bytes`,
      along: "bytes written" },
  ];

  // Workloads in rounds: rank 0 holds the lock until all others wait for it, and is timed.
  const in_rounds = {
    cascade: "Rank 0's, from its release until it has the lock again",
    "dht-writer": "Rank 0's, to write and release while all others wait",
  };
  lf.timed = (group) => (group.rounds ? in_rounds[group.name] : null);

  // These measure a latency; the others a throughput.
  const about_latency = new Set(["lb", "mix", "primitive", ...Object.keys(in_rounds)]);

  // One operation of a group, for the captions; workloads without a lock have others.
  const one_operation = { primitive: "one operation", stencil: "one iteration" };
  lf.operation = (group) => one_operation[group.name] || "one acquire plus one release";

  const varies = (values) => new Set(values).size > 1;

  function by_key(runs, key_of) {
    const sorted = new Map();
    for (const run of runs) {
      const key = key_of(run);
      if (!sorted.has(key)) sorted.set(key, []);
      sorted.get(key).push(run);
    }
    return [...sorted.values()];
  }

  const by_procs = (runs) => by_key(runs, (run) => run.procs);

  // The settings that mean something to these runs: mutexes have no share of writers.
  const settings_of = (runs) => settings
    .filter(({ rw_only }) => !rw_only || runs.some((run) => run.kind === "rw"));

  // A setting that changes only with the ranks, as the locks of a mix do, has no picker.
  function pickers_of(runs) {
    return settings_of(runs)
      .filter(({ key }) => key === "procs" ||
        by_procs(runs).some((same) => varies(same.map((run) => run[key]))))
      .map((setting) => ({ ...setting,
        values: lf.distinct(runs.map((run) => run[setting.key])).sort((a, b) => a - b) }));
  }

  // Fields in which the runs of one lock may still differ where all settings are the same.
  function variant_fields(runs) {
    const fields = [];
    for (const name of lf.distinct(runs.flatMap((run) => Object.keys(run.params)))) {
      if (varies(runs.map((run) => JSON.stringify(run.params[name])))) {
        fields.push([name, (run) => run.params[name]]);
      }
    }
    // The levels usually grow with the ranks. They distinguish series only where the same number of
    // ranks was run with different levels.
    if (by_procs(runs).some((same) => varies(same.map((run) => run.levels)))) {
      fields.push(["levels", (run) => run.levels]);
    }
    return fields;
  }

  // The run that represents several equal ones: the one with the median throughput.
  function median_run(runs) {
    const sorted = [...runs].sort((a, b) => a.throughput_ops_s - b.throughput_ops_s);
    return sorted[Math.floor(sorted.length / 2)];
  }

  // A series' name without one of its fields is that of the line on which the field varies.
  lf.label_without = (one, field) => [one.lock, ...one.fields
    .filter(([name]) => name !== field).map(([name, value]) => `${name}=${value}`)].join(" ");

  function series_of_lock(lock, runs, pickers) {
    const fields = variant_fields(runs);
    const values = (run) => fields.map(([name, get]) => [name, get(run) ?? "default"]);
    return by_key(runs, (run) => JSON.stringify(values(run))).map((variant) => {
      const same = by_key(variant, (run) => JSON.stringify(pickers.map(({ key }) => run[key])));
      const one = { lock, kind: runs[0].kind, fields: values(variant[0]) };
      const label = lf.label_without(one);
      return { ...one, label, key: label,
        repeats: Math.max(...same.map((repeated) => repeated.length)),
        runs: same.map(median_run).sort((a, b) => a.procs - b.procs) };
    });
  }

  function facts_of(runs, pickers, rounds) {
    const facts = [];
    const mixed = lf.distinct(runs.map((run) => run.kind)).length > 1;
    for (const { key, fact, rw_only } of settings_of(runs)) {
      const values = lf.distinct(runs.map((run) => run[key]));
      // In workloads in rounds the timed rank is fixed.
      const said = key !== "procs" && !(rounds && key === "writers") &&
        !pickers.some((picker) => picker.key === key) && (values[0] ?? null) !== null;
      if (!said) continue;
      if (values.length === 1) {
        facts.push(fact(values[0]) + (rw_only && mixed ? " in reader-writer locks" : ""));
      }
      else if (runs.every((run) => run[key] === run.procs)) facts.push("a lock on each rank");
    }
    const [first] = runs;
    facts.push(first.machine ? `${first.fabric}, ${first.machine}` : first.fabric);
    if (first.server_busy) facts.push("the server computes");
    return facts;
  }

  function make_group(runs) {
    const [first] = runs;
    const pickers = pickers_of(runs);
    const rounds = Object.hasOwn(in_rounds, first.workload);
    const series = lf.distinct(runs.map((run) => run.lock)).flatMap((lock) =>
      series_of_lock(lock, runs.filter((run) => run.lock === lock), pickers));
    return {
      name: first.workload,
      title: lf.workload(first.workload)[0],
      about: lf.workload(first.workload)[1],
      facts: facts_of(runs, pickers, rounds),
      rounds,
      has_lock: runs.some((run) => run.kind !== "none"),
      measure: about_latency.has(first.workload) ? "p50" : "rate",
      series,
      pickers,
      repeats: Math.max(...series.map((one) => one.repeats)),
    };
  }

  lf.groups = (runs) =>
    by_key(runs, (run) => JSON.stringify(group_fields.map((field) => run[field]))).map(make_group);

  lf.all_runs = (group) => group.series.flatMap((one) => one.runs);

  const picked_of = (group, run) =>
    Object.fromEntries(group.pickers.map(({ key }) => [key, run[key]]));

  // The first choice of a section: the most ranks.
  lf.first_picked = function (group) {
    const most = Math.max(...group.pickers[0].values);
    return picked_of(group, lf.all_runs(group).find((run) => run.procs === most));
  };

  // Changes one setting; the others stay as they are if there is such a run.
  lf.picked_anew = function (group, picked, key, value) {
    const kept = (run) => group.pickers.filter((picker) =>
      run[picker.key] === picked[picker.key]).length;
    return picked_of(group, lf.all_runs(group).filter((run) => run[key] === value)
      .reduce((best, run) => (kept(run) > kept(best) ? run : best)));
  };

  // The runs of a series with the picked settings, and any values of the settings in `free`.
  lf.runs_with = (group, one, picked, free) => one.runs.filter((run) => group.pickers
    .every(({ key }) => free.includes(key) || run[key] === picked[key]));

  // "4 ranks, 50 % writers".
  lf.picked_text = (group, picked, free = []) => group.pickers
    .filter(({ key }) => !free.includes(key))
    .map(({ key, fact }) => fact(picked[key])).join(", ");

  lf.where = function (group, picked, free) {
    const text = lf.picked_text(group, picked, free);
    return text ? `, at ${text}` : "";
  };

  // A side is "all", "read", "write" or, with many locks, "local" or "remote".
  const part = (run, side) => (side === "all" ? run : run[side]);

  // The latency stats of a side; null when there were no such ops.
  lf.latency = function (run, side) {
    const stats = part(run, side) && part(run, side).latency_us;
    return stats && stats.p50 !== null ? stats : null;
  };

  // Points [us, fraction] of the latency distribution: the run's own, or else its percentiles.
  lf.distribution = function (run, side) {
    const cdf = part(run, side) && part(run, side).latency_cdf;
    if (cdf && cdf.length > 1) return thin(cdf.filter(([us]) => us > 0), 400);
    const stats = lf.latency(run, side);
    if (!stats) return [];
    const points = [[stats.p25, 0.25], [stats.p50, 0.5], [stats.p75, 0.75], [stats.p99, 0.99],
      [stats.p999, 0.999], [stats.max, 1]];
    return points.filter(([us]) => us !== null && us > 0);
  };

  // Every n-th point and the last; a page with a hundred thousand points would be slow.
  function thin(points, limit) {
    if (points.length <= limit) return points;
    const step = Math.ceil(points.length / limit);
    return points.filter((_, i) => i % step === 0 || i === points.length - 1);
  }

  const latency_of = (run, field) => {
    const stats = lf.latency(run, "all");
    return stats && stats[field];
  };

  // The measures that can be drawn against the ranks or a setting. A lock that goes through all
  // waiters and back is handed on once for each rank.
  lf.measures = {
    rate: { label: "throughput", title: "throughput", axis: "operations per second",
      text: (rate) => `${lf.scaled(rate)}/s`, tick: lf.scaled,
      value: (run) => run.throughput_ops_s },
    p50: { label: "median", least: true, title: "median latency", axis: "median latency",
      text: lf.duration,
      value: (run) => latency_of(run, "p50") },
    p99: { label: "p99", least: true, title: "99th percentile of the latency",
      axis: "99th percentile of the latency", text: lf.duration,
      value: (run) => latency_of(run, "p99") },
    handoff: { label: "per handoff", least: true, title: "median latency of a handoff",
      axis: "median latency / ranks", text: lf.duration,
      value: (run) => {
        const whole = latency_of(run, "p50");
        return whole === null ? null : whole / run.procs;
      } },
  };

  lf.measures_of = (group) => [...(group.rounds ? [] : ["rate"]), "p50", "p99",
    ...(group.name === "cascade" ? ["handoff"] : [])];

  // For charts that show a part of the operations: the parts that the runs have.
  lf.side_toggle = function (group, pairs) {
    const names = { read: "reads", write: "writes", local: "own node", remote: "other nodes" };
    const there = (side) => lf.all_runs(group).some((run) => lf.latency(run, side));
    const sides = pairs.filter((pair) => pair.every(there)).flat();
    if (!sides.length) return [];
    return [{ key: "side", label: "Operations", initial: "all",
      options: [["all", "all"], ...sides.map((side) => [side, names[side]])] }];
  };

  lf.side_ops = (run, side) => (part(run, side) ? part(run, side).ops : 0);

  // The sentence that names the winner among the series that are picked and shown.
  lf.lead = function (group, picked, is_shown) {
    const { value, text, least = false } = lf.measures[group.measure];
    const ranked = group.series.filter(is_shown)
      .flatMap((one) => lf.runs_with(group, one, picked, [])
        .map((run) => ({ label: one.label, amount: value(run) })))
      .filter(({ amount }) => amount !== null)
      .sort((a, b) => (least ? a.amount - b.amount : b.amount - a.amount));
    if (ranked.length === 0) return null;
    const [best, next] = ranked;
    const sentence = { best: best.label, amount: text(best.amount), least };
    if (next && Math.min(best.amount, next.amount) > 0) {
      sentence.ratio = lf.rounded(least ? next.amount / best.amount : best.amount / next.amount);
      sentence.next = next.label;
    }
    return sentence;
  };
})(lockflight);
