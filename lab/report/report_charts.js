// The builders of the charts. Each makes a Chart.js configuration of a group and the reader's
// choices. It reads view = {group, picked, shown, off, pick, theme}: the chosen settings, series to
// draw, the parts switched off, the toggles' values and the colours.
"use strict";

(function (lf) {
  const { axis, value_axis, tooltip, base_options, line, amount_bars, simple_bars, best_first,
    runs_at, scale_toggle } = lf.draw;
  const { line_height } = lf.labels;
  const { all_runs } = lf;

  const network_parts = [
    ["put", "put"], ["get", "get"], ["add", "add"], ["fetch_add", "fetch-add"],
    ["swap", "swap"], ["cas", "compare-swap"], ["flush", "flush"],
  ];
  const cpu_parts = [["rmw", "read-modify-write"], ["store", "store"], ["load", "load"]];

  // A part beside the stack is a thin bar on top of it, as in a bullet chart.
  function part_set(view, label, color, data, stack) {
    const aside = stack === "aside";
    return { label, data, backgroundColor: color, borderColor: view.theme.surface,
      borderWidth: aside ? 1 : 0, borderSkipped: false, grouped: !aside,
      maxBarThickness: aside ? 8 : 22, order: aside ? 0 : 1, stack: stack || "main" };
  }

  const shown_parts = (view, parts) => parts.filter((part) => !view.off.has(part.key));

  function stacked(view, parts, title, options) {
    const shown = shown_parts(view, parts);
    const main = shown.filter((part) => part.stack !== "aside");
    const rows = best_first(runs_at(view).filter(({ run }) => run.ops > 0),
      ({ run }) => main.reduce((sum, part) => sum + part.get(run), 0) / run.ops, options.least);
    const sets = shown.map((part) =>
      part_set(view, part.label, part.color(view.theme),
        rows.map(({ run }) => part.get(run) / run.ops), part.stack));
    const value = value_axis(view, title, false, options.axis_format || lf.rounded);
    return amount_bars(view, rows, sets, { ...value, stacked: true }, options);
  }

  // Parts that never occur in a group stay out of its legend.
  function occurring(group, parts) {
    return parts.filter((part) => all_runs(group).some((run) => part.get(run) > 0));
  }

  const nines = (q) => -Math.log10(1 - q);

  function quantile_axis(view, tail, top) {
    const values = tail ? [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999]
      : [0, 0.25, 0.5, 0.75, 1];
    const place = tail ? nines : (q) => q;
    const y = axis(view.theme, "share of operations", {
      type: "linear", min: 0, max: tail ? top : 1,
      afterBuildTicks: (scale) => {
        scale.ticks = values.filter((q) => place(q) <= scale.max).map((q) => ({ value: place(q) }));
      },
    });
    y.ticks.autoSkip = false;
    y.ticks.callback = (value) => {
      const q = values.find((one) => Math.abs(place(one) - value) < 1e-9);
      return `${Number((100 * q).toFixed(4))}${"\u202f"}%`;
    };
    return y;
  }

  function distribution(view) {
    const side = view.pick.side || "all";
    const tail = view.pick.form === "tail";
    let top = 1;
    const sets = [];
    for (const { one, run } of runs_at(view)) {
      const most = 1 - 1 / Math.max(2, lf.side_ops(run, side));
      const points = lf.distribution(run, side).map(([us, q]) => {
        const y = tail ? nines(Math.min(q, most)) : q;
        top = Math.max(top, y);
        return { x: us, y, q };
      });
      if (points.length) sets.push({ ...line(view, one, points), pointRadius: 0 });
    }
    const places = sets.flatMap(({ data }) => data.map((point) => point.x));
    // The axis ends where the points do, not at a power of ten.
    const x = value_axis(view, "latency, logarithmic", true, lf.duration,
      places.length ? { min: Math.min(...places), max: Math.max(...places) } : {});
    const medians = runs_at(view).map(({ one, run }) => [one, lf.latency(run, side)])
      .filter(([, stats]) => stats);
    return {
      type: "line", height: line_height(sets), data: { datasets: sets },
      options: base_options(
        {
          inner_labels: { color: view.theme.ink, halo: view.theme.surface },
          tooltip: tooltip(view.theme, {
            title: () => "",
            label: (item) => ` ${item.dataset.label}: ${lf.duration(item.raw.x)} at ` +
              (item.raw.q === 1 ? "most" : `${Number((100 * item.raw.q).toFixed(4))}\u202f%`),
          }),
        },
        { x, y: quantile_axis(view, tail, top) },
        { interaction: { mode: "nearest", intersect: false },
          layout: { padding: { right: 60, top: 6 } } },
      ),
      summary: `Latency distribution${lf.where(view.group, view.picked, [])}; median and 99th ` +
        "percentile: " +
        medians.map(([one, stats]) =>
          `${one.label} ${lf.duration(stats.p50)} and ${lf.duration(stats.p99)}`).join(", "),
    };
  }

  const latency = (view) =>
    (view.pick.form === "boxes" ? lf.latency_boxes(view) : distribution(view));

  function latency_toggles(group) {
    const form = { key: "form", label: "Form", initial: "boxes",
      options: [["boxes", "quartiles"], ["all", "distribution"], ["tail", "tail"]] };
    return [...lf.side_toggle(group, [["read", "write"], ["local", "remote"]]), form];
  }

  const sentence = (words) => words[0].toUpperCase() + words.slice(1);

  const nic_part = ([key, label]) => ({ key, label, color: (theme) => theme.read(`--op-${key}`),
    get: (run) => run.fabric_ops.nic[key] });
  const cpu_part = ([key, label]) => ({ key, label, color: (theme) => theme.read(`--cpu-${key}`),
    get: (run) => run.fabric_ops.cpu[key] });

  // Loopback is beside the stack: its operations are in the stack already, and adding it would
  // count them twice.
  const all_network = [
    ...network_parts.map(nic_part),
    { key: "messages", label: "message", color: (theme) => theme.read("--op-message"),
      get: (run) => run.fabric_ops.messages },
    { key: "loopback", label: "of these, loopback", stack: "aside",
      color: (theme) => theme.read("--op-loopback"), get: (run) => run.fabric_ops.nic.loopback },
  ];

  const level_parts = (group) => {
    const depth = Math.max(0, ...all_runs(group).map((run) => run.handoffs.length));
    return Array.from({ length: depth }, (_, i) => ({
      key: `level-${i + 1}`,
      label: `level ${i + 1}${i === 0 ? ", machine" : ""}`,
      color: (theme) => theme.level(i),
      get: (run) => run.handoffs[i] || 0,
    }));
  };

  const per_operation = (group) =>
    (group.rounds ? "Rank 0's in a round, by kind" : `In ${lf.operation(group)}, by kind`);

  const operations_axis = (group) => (!group.has_lock ? "operations"
    : `operations of ${group.rounds ? "a round" : lf.operation(group)}`);

  const latency_chart = { id: "latency", title: "Latency", wide: 5,
    what: (group, pick) => (lf.timed(group) || sentence(lf.operation(group))) +
      (pick.form === "boxes" ? ": quartiles, the mark and the number are the median, the line ends at p99" : ""),
    has: (group) => all_runs(group).some((run) => lf.distribution(run, "all").length),
    toggles: latency_toggles, build: latency };

  const operations_charts = [
    { id: "network", title: "Network operations", what: per_operation, wide: 7,
      has: (group) => occurring(group, all_network).length > 0,
      parts: (group) => occurring(group, all_network),
      build: (view) => stacked(view, view.parts, operations_axis(view.group),
        { what: "Network operations", format: lf.rounded, least: true }) },
    { id: "cpu", title: "CPU operations", wide: 5,
      what: (group) => `${per_operation(group)}, on the own node`,
      has: (group) => occurring(group, cpu_parts.map(cpu_part)).length > 0,
      parts: (group) => occurring(group, cpu_parts.map(cpu_part)),
      build: (view) => stacked(view, view.parts, operations_axis(view.group),
        { what: "CPU operations", format: lf.rounded, least: true }) },
  ];

  // What the two ranks of a handoff share at each level.
  function shared_at_levels(group) {
    const shared = ["the two ranks share the machine alone", "an element of it"];
    const said = level_parts(group)
      .map((_, i) => `at level ${i + 1} ${shared[i] || "a part of that one"}`);
    return said.length > 1 ? `: ${said.join(", ")}` : "";
  }

  // These charts are about locks, and compare ranks: they have no meaning without a lock, or if one
  // rank alone is timed.
  const rank_charts = [
    { id: "fairness", title: "Fairness", wide: 4,
      what: "Jain's index of the ranks' operations: 1 if all ranks did as many, 1/ranks if one " +
        "rank did all", has: (group) => all_runs(group).some((run) => run.fairness_jain !== null),
      build: (view) => simple_bars(view, (run) => run.fairness_jain, "", false,
        { what: "Jain's fairness index", format: lf.rounded, max: 1 }) },
    { id: "wait", title: "Longest wait", what: "Of any rank, for one acquire", wide: 4,
      has: (group) => all_runs(group).some((run) => run.max_wait_us > 0),
      toggles: (group) => [scale_toggle(all_runs(group).map((run) => run.max_wait_us))],
      build: (view) => simple_bars(view, (run) => run.max_wait_us, "", view.pick.scale === "log",
        { what: "Longest wait", format: lf.duration, room: 62, least: true }) },
    { id: "handoffs", title: "Handoffs", wide: 4,
      what: (group) => `Share of acquires served by one${shared_at_levels(group)}`,
      has: (group) => occurring(group, level_parts(group)).length > 0,
      parts: (group) => occurring(group, level_parts(group)),
      build: (view) => stacked(view, view.parts, "",
        { what: "Handoffs per acquire", format: lf.percent, axis_format: lf.percent }) },
  ];

  // Gives each card its columns, of 12, so that the cards of a row fill it.
  function laid_out(charts) {
    const rows = [];
    for (const { wide, ...chart } of charts) {
      const row = rows[rows.length - 1];
      if (row && row.free >= wide) {
        row.cards.push({ ...chart, wide });
        row.free -= wide;
      }
      else rows.push({ cards: [{ ...chart, wide }], free: 12 - wide });
    }
    for (const row of rows) {
      for (; row.free > 0; --row.free) {
        row.cards.reduce((least, card) => (card.wide < least.wide ? card : least)).wide += 1;
      }
    }
    return rows.flatMap(({ cards }) => cards);
  }

  lf.charts_of = (group) => laid_out([
    lf.ranks_chart(group), latency_chart, ...lf.over_charts(group), lf.grid_chart, ...operations_charts,
    ...(group.rounds || !group.has_lock ? [] : rank_charts),
  ].filter((chart) => chart.has(group)));
})(lockflight);
