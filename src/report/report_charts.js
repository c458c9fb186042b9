// One builder per chart: from a group and what the reader picked to a Chart.js configuration.
// A builder reads view = {group, procs, shown, off, pick, theme}: the series to draw, the parts
// switched off, the toggles' values and the colours.
"use strict";

(function (lf) {
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
  const shapes = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "cross",
    "rectRounded"];

  const network_parts = [
    ["put", "put"], ["get", "get"], ["add", "add"], ["fetch_add", "fetch-add"],
    ["swap", "swap"], ["cas", "compare-swap"], ["flush", "flush"],
  ];
  const cpu_parts = [["rmw", "read-modify-write"], ["store", "store"], ["load", "load"]];

  // Colours come from the style sheet, so that light and dark live in one place.
  lf.read_theme = function (locks) {
    const css = getComputedStyle(document.documentElement);
    const read = (name) => css.getPropertyValue(name).trim();
    const palette = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => read(`--lock-${n}`));
    return {
      ink: read("--ink"), muted: read("--muted"), grid: read("--grid"),
      surface: read("--surface"), read,
      level: (i) => read(`--level-${Math.min(i + 1, 5)}`),
      style(one) {
        const index = locks.indexOf(one.lock);
        const round = Math.floor(index / palette.length) + one.variant;
        return {
          color: palette[index % palette.length],
          dash: dashes[round % dashes.length],
          shape: shapes[(index + round) % shapes.length],
        };
      },
    };
  };

  function tick_font() {
    return { size: 11.5 };
  }

  function axis(theme, title, extra) {
    return {
      title: { display: Boolean(title), text: title, color: theme.muted, font: tick_font() },
      grid: { color: theme.grid, borderColor: theme.grid, tickColor: "transparent" },
      ticks: { color: theme.muted, font: tick_font(), maxRotation: 0 },
      ...extra,
    };
  }

  // As many ticks on a logarithmic axis as there is room for: 1, 2 and 5 of a long decade, powers
  // of ten of a short one, and not all of them where decades are very short.
  function log_ticks(format) {
    return function (value) {
      const exponent = Math.floor(Math.log10(value) + 1e-9);
      const digit = Math.round(value / 10 ** exponent);
      const decades = Math.max(0.1, Math.log10(this.max / this.min));
      const room = this.isHorizontal() ? this.width / decades / 60 : this.height / decades / 32;
      const wanted = room > 3.5 ? [1, 2, 5] : room > 2 ? [1, 3] : [1];
      const step = Math.ceil(1 / room);
      return wanted.includes(digit) && exponent % step === 0 ? format(value) : null;
    };
  }

  function value_axis(view, title, logarithmic, format, extra) {
    const base = axis(view.theme, title, extra);
    base.ticks.callback = logarithmic ? log_ticks(format) : format;
    if (!logarithmic) base.ticks.maxTicksLimit = 7;
    return { ...base, type: logarithmic ? "logarithmic" : "linear", beginAtZero: !logarithmic };
  }

  function tooltip(theme, callbacks) {
    return {
      backgroundColor: theme.ink, titleColor: theme.surface, bodyColor: theme.surface,
      footerColor: theme.surface, padding: 10, cornerRadius: 6, boxPadding: 5, usePointStyle: true,
      callbacks,
    };
  }

  function base_options(plugins, scales, extra) {
    return {
      responsive: true, maintainAspectRatio: false, animation: false,
      plugins: { legend: { display: false }, ...plugins }, scales, ...extra,
    };
  }

  function line(view, one, points) {
    const { color, dash, shape } = view.theme.style(one);
    const dense = points.length > 24;
    return {
      label: one.label, data: points, borderColor: color, backgroundColor: color,
      pointBackgroundColor: color, pointBorderColor: color, pointStyle: shape,
      borderWidth: 2, borderDash: dash, pointRadius: dense ? 0 : 3.5, pointHoverRadius: 5.5,
      pointBorderWidth: 1.5, clip: 8,
    };
  }

  const runs_at = (view) =>
    view.shown.filter((one) => one.at.has(view.procs))
      .map((one) => ({ one, run: one.at.get(view.procs) }));


  // Ends of the bars, in words: the eye need not travel to the axis.
  lf.value_labels = {
    id: "value_labels",
    afterDatasetsDraw(chart, _, options) {
      if (!options.format) return;
      const { ctx } = chart;
      ctx.save();
      ctx.font = `11.5px ${Chart.defaults.font.family}`;
      ctx.fillStyle = options.color;
      ctx.textBaseline = "middle";
      for (let i = 0; i < chart.data.labels.length; ++i) {
        let total = 0;
        let end = null;
        for (const meta of chart.getSortedVisibleDatasetMetas()) {
          const dataset = chart.data.datasets[meta.index];
          if (dataset.stack === "aside" || dataset.data[i] === null) continue;
          total += dataset.data[i];
          if (!end || meta.data[i].x > end.x) end = meta.data[i];
        }
        if (end) ctx.fillText(options.format(total), end.x + 6, end.y);
      }
      ctx.restore();
    },
  };

  // A line at the number of ranks that the other charts show.
  lf.guide = {
    id: "guide",
    beforeDatasetsDraw(chart, _, options) {
      if (!options.at) return;
      const { ctx, chartArea: area, scales: { x } } = chart;
      const at = Math.round(x.getPixelForValue(options.at)) + 0.5;
      ctx.save();
      ctx.strokeStyle = options.color;
      ctx.setLineDash([3, 4]);
      ctx.beginPath();
      ctx.moveTo(at, area.top);
      ctx.lineTo(at, area.bottom);
      ctx.stroke();
      ctx.restore();
    },
  };

  const shortened = (label) => (label.length > 20 ? `${label.slice(0, 19)}…` : label);

  // Horizontal bars, one row per series: names of locks are long. `sets` are the datasets.
  function bars(view, rows, sets, value, options) {
    const labels = rows.map(({ one }) => one.label);
    const room = options.room || 54;
    return {
      type: "bar",
      height: Math.max(170, 30 * labels.length + 58),
      data: { labels, datasets: sets },
      options: base_options(
        {
          tooltip: tooltip(view.theme, {
            label: (item) => ` ${item.dataset.label}: ${options.format(item.raw)}`,
          }),
          value_labels: { format: options.format, color: view.theme.ink },
        },
        {
          x: value,
          y: axis(view.theme, "", {
            grid: { display: false, borderColor: view.theme.grid }, stacked: value.stacked,
            ticks: { color: view.theme.ink, font: { size: 12 }, autoSkip: false,
              callback: (_, i) => shortened(labels[i]) },
          }),
        },
        {
          indexAxis: "y", layout: { padding: { right: value.max === 1 ? 40 : room } },
          interaction: { mode: "index", axis: "y", intersect: false },
        },
      ),
      summary: `${options.what} at ${lf.ranks(view.procs)}: ` + rows.map(({ one }, i) => {
        const main = sets.filter((set) => set.stack !== "aside");
        return `${one.label} ${options.format(main.reduce((sum, set) => sum + set.data[i], 0))}`;
      }).join(", "),
    };
  }

  function own_colours(view, rows) {
    const colours = rows.map(({ one }) => view.theme.style(one).color);
    return { backgroundColor: colours, borderRadius: 3, maxBarThickness: 22 };
  }

  function simple_bars(view, get, title, logarithmic, options) {
    const rows = runs_at(view).filter(({ run }) => get(run) !== null);
    const set = { label: options.what, data: rows.map(({ run }) => get(run)),
      ...own_colours(view, rows) };
    const extra = options.max ? { max: options.max } : {};
    if (logarithmic) {
      // A bar must start somewhere: half a decade below the shortest.
      const positive = set.data.filter((value) => value > 0);
      if (positive.length) extra.min = Math.min(...positive) / 3;
    }
    return bars(view, rows, [set],
      value_axis(view, title, logarithmic, options.format, extra), options);
  }

  // A part that stands aside is a thin bar on top of the stack, as in a bullet chart.
  function part_set(view, label, color, data, stack) {
    const aside = stack === "aside";
    return { label, data, backgroundColor: color, borderColor: view.theme.surface,
      borderWidth: aside ? 1 : 0, borderSkipped: false, grouped: !aside,
      maxBarThickness: aside ? 8 : 22, order: aside ? 0 : 1, stack: stack || "main" };
  }

  const shown_parts = (view, parts) => parts.filter((part) => !view.off.has(part.key));

  function stacked(view, parts, title, options) {
    const rows = runs_at(view).filter(({ run }) => run.ops > 0);
    const sets = shown_parts(view, parts).map((part) =>
      part_set(view, part.label, part.color(view.theme),
        rows.map(({ run }) => part.get(run) / run.ops), part.stack));
    const value = value_axis(view, title, false, options.axis_format || lf.rounded);
    return bars(view, rows, sets, { ...value, stacked: true }, options);
  }

  // Parts that never occur in a group stay out of its legend.
  function occurring(group, parts) {
    const runs = group.series.flatMap((one) => [...one.at.values()]);
    return parts.filter((part) => runs.some((run) => part.get(run) > 0));
  }

  const spread = (values) => {
    const positive = values.filter((value) => value > 0);
    return positive.length ? Math.max(...positive) / Math.min(...positive) : 1;
  };

  const all_runs = (group) => group.series.flatMap((one) => [...one.at.values()]);

  function scale_toggle(values) {
    return { key: "scale", label: "Scale", options: [["linear", "linear"], ["log", "log"]],
      initial: spread(values) > 60 ? "log" : "linear" };
  }

  const rate_text = (value) => `${lf.scaled(value)}/s`;

  function throughput_lines(view) {
    const { group, theme } = view;
    const sets = view.shown.map((one) => line(view, one,
      [...one.at].map(([procs, run]) => ({ x: procs, y: run.throughput_ops_s }))));
    const x = axis(theme, "ranks", {
      type: "logarithmic", min: group.procs[0], max: group.procs[group.procs.length - 1],
      afterBuildTicks: (scale) => { scale.ticks = group.procs.map((value) => ({ value })); },
    });
    x.ticks.callback = lf.rank_number;
    const log = view.pick.scale === "log";
    const at = runs_at(view);
    return {
      type: "line", height: 340, data: { datasets: sets },
      options: base_options(
        {
          tooltip: tooltip(theme, {
            title: (items) => (items.length ? lf.ranks(items[0].parsed.x) : ""),
            label: (item) => ` ${item.dataset.label}: ${rate_text(item.parsed.y)}`,
          }),
          guide: { at: view.procs, color: theme.muted },
        },
        { x, y: value_axis(view, "operations per second", log, lf.scaled) },
        {
          interaction: { mode: "x", intersect: false }, layout: { padding: { right: 10, top: 6 } },
          onClick: (event, items) => {
            if (items.length) view.choose_procs(sets[items[0].datasetIndex].data[items[0].index].x);
          },
        },
      ),
      summary: `Throughput against ranks; at ${lf.ranks(view.procs)}: ` + at.map(({ one, run }) =>
        `${one.label} ${rate_text(run.throughput_ops_s)}`).join(", "),
    };
  }

  function throughput(view) {
    if (view.group.procs.length > 1) return throughput_lines(view);
    return simple_bars(view, (run) => run.throughput_ops_s, "operations per second",
      view.pick.scale === "log", { what: "Throughput", format: lf.scaled });
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

  function latency(view) {
    const side = view.pick.side || "all";
    const tail = view.pick.quantiles === "tail";
    let top = 1;
    const sets = [];
    for (const { one, run } of runs_at(view)) {
      const most = 1 - 1 / Math.max(2, lf.side_ops(run, side));
      const points = lf.distribution(run, side).map(([us, q]) => {
        const y = tail ? nines(Math.min(q, most)) : q;
        top = Math.max(top, y);
        return { x: us, y, q };
      });
      if (points.length) sets.push(line(view, one, points));
    }
    const x = value_axis(view, "latency, logarithmic", true, lf.duration);
    const medians = runs_at(view).map(({ one, run }) => [one, lf.latency(run, side)])
      .filter(([, stats]) => stats);
    return {
      type: "line", height: 340, data: { datasets: sets },
      options: base_options(
        {
          tooltip: tooltip(view.theme, {
            title: () => "",
            label: (item) => ` ${item.dataset.label}: ${lf.duration(item.raw.x)} at ` +
              (item.raw.q === 1 ? "most" : `${Number((100 * item.raw.q).toFixed(4))}\u202f%`),
          }),
        },
        { x, y: quantile_axis(view, tail, top) },
        { interaction: { mode: "nearest", intersect: false },
          layout: { padding: { right: 10, top: 6 } } },
      ),
      summary: `Latency distribution at ${lf.ranks(view.procs)}; median and 99th percentile: ` +
        medians.map(([one, stats]) =>
          `${one.label} ${lf.duration(stats.p50)} and ${lf.duration(stats.p99)}`).join(", "),
    };
  }

  function latency_toggles(group) {
    const there = ([one, other]) => [one, other].every((side) =>
      all_runs(group).some((run) => lf.latency(run, side)));
    const options = [["all", "all"]];
    if (there(["read", "write"])) options.push(["read", "reads"], ["write", "writes"]);
    if (there(["local", "remote"])) options.push(["local", "own node"], ["remote", "other nodes"]);
    const quantiles = { key: "quantiles", label: "Quantiles",
      options: [["linear", "linear"], ["tail", "tail"]], initial: "linear" };
    const side = { key: "side", label: "Operations", options, initial: "all" };
    return options.length > 1 ? [side, quantiles] : [quantiles];
  }

  const nic_part = ([key, label]) => ({ key, label, color: (theme) => theme.read(`--op-${key}`),
    get: (run) => run.fabric_ops.nic[key] });
  const cpu_part = ([key, label]) => ({ key, label, color: (theme) => theme.read(`--cpu-${key}`),
    get: (run) => run.fabric_ops.cpu[key] });

  // Loopback stands aside: it tells where operations of the stack went, and adding it would
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

  lf.charts = [
    { id: "throughput", title: "Throughput", what: "All ranks together", wide: 7,
      has: (group) => all_runs(group).length > 0,
      toggles: (group) => [scale_toggle(all_runs(group).map((run) => run.throughput_ops_s))],
      build: throughput },
    { id: "latency", title: "Latency", what: "One acquire plus one release", wide: 5,
      at_procs: true,
      has: (group) => all_runs(group).some((run) => lf.distribution(run, "all").length),
      toggles: latency_toggles, build: latency },
    { id: "network", title: "Network operations",
      what: "Per acquire plus release, by kind", wide: 7, at_procs: true,
      has: (group) => occurring(group, all_network).length > 0,
      parts: (group) => occurring(group, all_network),
      build: (view) => stacked(view, view.parts, "operations per acquire + release",
        { what: "Network operations per acquire plus release", format: lf.rounded }) },
    { id: "cpu", title: "CPU operations", what: "Per acquire plus release, on the own node",
      wide: 5, at_procs: true,
      has: (group) => occurring(group, cpu_parts.map(cpu_part)).length > 0,
      parts: (group) => occurring(group, cpu_parts.map(cpu_part)),
      build: (view) => stacked(view, view.parts, "operations per acquire + release",
        { what: "CPU operations per acquire plus release", format: lf.rounded }) },
    { id: "fairness", title: "Fairness", what: "Jain's index: 1 is even, 1/ranks is one for all",
      wide: 4, at_procs: true,
      has: (group) => all_runs(group).some((run) => run.fairness_jain !== null),
      build: (view) => simple_bars(view, (run) => run.fairness_jain, "", false,
        { what: "Jain's fairness index", format: lf.rounded, max: 1 }) },
    { id: "wait", title: "Longest wait", what: "Of any rank, for one acquire", wide: 4,
      at_procs: true,
      has: (group) => all_runs(group).some((run) => run.max_wait_us > 0),
      toggles: (group) => [scale_toggle(all_runs(group).map((run) => run.max_wait_us))],
      build: (view) => simple_bars(view, (run) => run.max_wait_us, "", view.pick.scale === "log",
        { what: "Longest wait", format: lf.duration, room: 62 }) },
    { id: "handoffs", title: "Handoffs", what: "Share of acquires served by one, per level",
      wide: 4, at_procs: true,
      has: (group) => occurring(group, level_parts(group)).length > 0,
      parts: (group) => occurring(group, level_parts(group)),
      build: (view) => stacked(view, view.parts, "",
        { what: "Handoffs per acquire", format: lf.percent, axis_format: lf.percent }) },
  ];
})(lockflight);
