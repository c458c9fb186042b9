// How throughput and latency change along the ranks, a setting of the workload or a parameter of
// the locks, one line a lock; and the quartiles of mixes side by side. Builders are as in
// report_charts.js.
"use strict";

(function (lf) {
  const { axis, value_axis, tooltip, base_options, line, bars, simple_bars, runs_at, scale_toggle,
    spread } = lf.draw;

  const different = (values) => new Set(values).size;

  // The x axis: `value` of a run, shown as `text`. Along a line vary the settings of the first of
  // `free` with which there is a line, or the parameter `field`.
  function ranks_axis(group) {
    const x = { id: "throughput", free: [["procs"]], text: lf.rank_number };
    if (!group.rounds) {
      return { ...x, along: "ranks", value: (run) => run.procs, logarithmic: true };
    }
    return { ...x, id: group.name, name: "waiting ranks", along: "ranks that wait",
      value: (run) => run.procs - 1, min: 0 };
  }

  const contention_axis = {
    id: "over-contention", name: "contention", along: "contention, 1 − locks / clients",
    value: (run) => run.contention, text: lf.percent, free: [["locks"], ["locks", "procs"]],
  };

  const setting_axis = ({ key, label, along, text }) => ({
    id: `over-${key}`, name: label.toLowerCase(), along, value: (run) => run[key], text,
    free: [[key]] });

  const parameter_axis = (name) => ({
    id: `over-${name}`, name, along: name, value: (run) => run.params[name], text: lf.rank_number,
    free: [[]], field: name });

  // The series that a line joins: one, or several that differ in the parameter alone.
  function joined(series, x) {
    const lines = new Map();
    for (const one of series) {
      const label = lf.label_without(one, x.field);
      if (!lines.has(label)) lines.set(label, []);
      lines.get(label).push(one);
    }
    return [...lines].map(([label, parts]) => ({ ...parts[0], label, parts }));
  }

  function lines_with(view, x, free, series) {
    return joined(series, x).map((one) => ({ one,
      runs: one.parts.flatMap((part) => lf.runs_with(view.group, part, view.picked, free))
        .filter((run) => Number.isFinite(x.value(run)))
        .sort((a, b) => x.value(a) - x.value(b)) }));
  }

  const makes_a_line = (lines, x) => lines.some(({ runs }) => different(runs.map(x.value)) > 1);

  // Whether some choice of settings gives a line.
  function has_line(group, x) {
    return joined(group.series, x).some((one) =>
      different(one.parts.flatMap((part) => part.runs).map(x.value).filter(Number.isFinite)) > 1);
  }

  function x_axis(view, x, values) {
    const at = [...new Set(values)].sort((a, b) => a - b);
    const logarithmic = x.logarithmic || (x.min === undefined && at[0] > 0 && spread(at) > 15);
    const made = axis(view.theme, x.along, {
      type: logarithmic ? "logarithmic" : "linear", min: x.min ?? at[0], max: at[at.length - 1],
      afterBuildTicks: (scale) => { scale.ticks = at.map((value) => ({ value })); },
    });
    made.ticks.callback = x.text;
    return made;
  }

  function title_of(view, x, measure) {
    const title = measure.title + (x.name ? ` over ${x.name}` : "");
    return view.group.rounds ? `${view.group.title}: ${title}`
      : title[0].toUpperCase() + title.slice(1);
  }

  function draw_lines(view, x, measure, free) {
    const { group, theme } = view;
    const lines = lines_with(view, x, free, view.shown);
    const log = view.pick.scale === "log";
    const drawn = lines.map(({ one, runs }) => ({ one, points: runs
      .map((run) => ({ x: x.value(run), y: measure.value(run), run }))
      .filter(({ y }) => y !== null && (!log || y > 0)) }));
    const sets = drawn.map(({ one, points }) => line(view, one, points));
    const picked = x.field ? [] : runs_at(view);
    // The title says that ranks vary if they are not the axis.
    const note = free.length > 1 ? ", all numbers of ranks" : "";
    return {
      free, note, title: title_of(view, x, measure), type: "line", height: 340,
      data: { datasets: sets },
      options: base_options(
        {
          tooltip: tooltip(theme, {
            title: (items) => (items.length ? `${x.along}: ${x.text(items[0].parsed.x)}` : ""),
            label: (item) => ` ${item.dataset.label}: ${measure.text(item.parsed.y)}`,
          }),
          guide: { at: picked.length ? x.value(picked[0].run) : null, color: theme.muted },
        },
        {
          x: x_axis(view, x, lines.flatMap(({ runs }) => runs.map(x.value))),
          y: value_axis(view, measure.axis, log, measure.tick || measure.text),
        },
        {
          interaction: { mode: "x", intersect: false },
          layout: { padding: { right: 14, top: 6 } },
          onClick: (event, items) => {
            if (!items.length) return;
            const { run } = sets[items[0].datasetIndex].data[items[0].index];
            for (const key of free) view.choose(key, run[key]);
          },
        },
      ),
      summary: `${title_of(view, x, measure)}, against ${x.along}` +
        `${lf.where(group, view.picked, free)}${note}: ` +
        drawn.map(({ one, points }) => `${one.label} ` +
          points.map(({ x: at, y }) => `${measure.text(y)} at ${x.text(at)}`).join(", "))
          .join("; "),
    };
  }

  function draw_over(view, x) {
    const measure = lf.measures[view.pick.measure];
    // Hidden series count here, so that hiding a lock changes no other.
    const free = x.free.find((keys) =>
      makes_a_line(lines_with(view, x, keys, view.group.series), x));
    if (free) return draw_lines(view, x, measure, free);
    // With the picked settings there is one value for each lock.
    return { title: title_of(view, {}, measure),
      ...simple_bars(view, measure.value, measure.axis, view.pick.scale === "log",
        { what: title_of(view, {}, measure), format: measure.text, axis_format: measure.tick }) };
  }

  function over_toggles(group, x) {
    const options = lf.measures_of(group).map((key) => [key, lf.measures[key].label]);
    const { value } = lf.measures[group.measure];
    return [
      { key: "measure", label: "Measure", options, initial: group.measure },
      scale_toggle(lf.all_runs(group).filter((run) => Number.isFinite(x.value(run))).map(value)),
    ];
  }

  function over_chart(group, x, what) {
    return { id: x.id, what, has: () => true, toggles: () => over_toggles(group, x),
      build: (view) => draw_over(view, x) };
  }

  lf.ranks_chart = (group) => ({
    ...over_chart(group, ranks_axis(group), lf.timed(group) || "All ranks together"), wide: 7 });

  // ---- quartiles -----------------------------------------------------------------------------

  const shares = (group) => lf.distinct(lf.all_runs(group).map((run) => run.writers))
    .sort((a, b) => a - b);

  const mixes = (group) => shares(group).map((share, i) => ({
    key: `writers-${share}`, label: `${lf.percent(share)} writers`, share,
    color: (theme) => theme.level(i) }));

  // The marks of medians in boxes from the lower to the upper quartile.
  lf.medians = {
    id: "medians",
    afterDatasetsDraw(chart, _, options) {
      if (!options.format) return;
      const { ctx, scales: { x } } = chart;
      ctx.save();
      ctx.font = `11.5px ${Chart.defaults.font.family}`;
      ctx.textBaseline = "middle";
      for (const meta of chart.getSortedVisibleDatasetMetas()) {
        chart.data.datasets[meta.index].stats.forEach((stats, i) => {
          if (!stats) return;
          const box = meta.data[i];
          const at = x.getPixelForValue(Math.max(stats.p50, x.min));
          ctx.fillStyle = options.halo;
          ctx.fillRect(at - 3, box.y - box.height / 2, 6, box.height);
          ctx.fillStyle = options.color;
          ctx.fillRect(at - 1.5, box.y - box.height / 2, 3, box.height);
          const end = Math.max(at, x.getPixelForValue(stats.p75));
          ctx.fillText(options.format(stats.p50), end + 8, box.y);
        });
      }
      ctx.restore();
    },
  };

  function quartiles_text({ p25, p50, p75 }) {
    const relative = p50 > 0 ? `, ${lf.rounded((p75 - p25) / p50)} of the median` : "";
    return `${[p25, p50, p75].map(lf.duration).join(", ")}; ` +
      `range ${lf.duration(p75 - p25)}${relative}`;
  }

  function quartiles(view) {
    const { group, theme } = view;
    const side = view.pick.side || "all";
    const log = view.pick.scale === "log";
    const rows = view.shown.map((one) => ({ one }));
    const sets = view.parts.filter(({ key }) => !view.off.has(key)).map((mix) => {
      const picked = { ...view.picked, writers: mix.share };
      const stats = view.shown.map((one) => {
        const [run] = lf.runs_with(group, one, picked, []);
        return run && run.writers === mix.share ? lf.latency(run, side) : null;
      });
      return { label: mix.label, stats, backgroundColor: mix.color(theme), borderRadius: 2,
        borderSkipped: false, maxBarThickness: 20, minBarLength: 2 };
    });
    const positive = sets.flatMap(({ stats }) => stats.flatMap((one) =>
      (one ? [one.p25, one.p50, one.p75] : []))).filter((us) => us > 0);
    const least = log && positive.length ? Math.min(...positive) / 2 : 0;
    for (const set of sets) {
      set.data = set.stats.map((one) => one &&
        [Math.max(one.p25, least), Math.max(one.p75, least)]);
    }
    const value = value_axis(view, `latency${log ? ", logarithmic" : ""}`, log, lf.duration,
      log ? { min: least } : {});
    const free = ["writers"];
    return {
      ...bars(view, rows, sets, value, {
        room: 62, text: ({ dataset, dataIndex }) => quartiles_text(dataset.stats[dataIndex]),
        plugins: { medians: { format: lf.duration, color: theme.ink, halo: theme.surface } },
      }),
      height: Math.max(200, (20 * sets.length + 14) * rows.length + 62),
      free,
      summary: `Quartiles of the latency${lf.where(group, view.picked, free)}: ` +
        rows.flatMap(({ one }, i) => sets.filter(({ stats }) => stats[i]).map(
          ({ label, stats }) => `${one.label}, ${label}: ${quartiles_text(stats[i])}`)).join(". "),
    };
  }

  const quartiles_chart = {
    id: "quartiles", title: "Quartiles of the latency",
    what: "From the lower to the upper, the mark is the median",
    has: (group) => lf.all_runs(group).some((run) => lf.latency(run, "all")),
    parts: mixes,
    toggles: (group) => [
      ...lf.side_toggle(group, [["read", "write"]]),
      scale_toggle(lf.all_runs(group).flatMap((run) => {
        const stats = lf.latency(run, "all");
        return stats ? [stats.p25, stats.p75] : [];
      })),
    ],
    build: quartiles,
  };

  // ---- the charts that depend on what was varied ---------------------------------------------

  // Two share a row; a last one has it for itself.
  function laid_out(charts) {
    return charts.map((chart, i) => ({ ...chart,
      wide: i % 2 ? 5 : i + 1 === charts.length ? 12 : 7 }));
  }

  lf.over_charts = function (group) {
    const what = lf.timed(group) || "One line a lock";
    const axes = [contention_axis,
      ...group.pickers.filter(({ key }) => key !== "procs").map(setting_axis),
      ...lf.distinct(group.series.flatMap((one) => one.fields.map(([name]) => name)))
        .filter((name) => name !== "levels").map(parameter_axis)]
      .filter((x) => has_line(group, x));
    // Contention says what the number of locks means.
    const shown = axes.includes(contention_axis)
      ? axes.filter(({ id }) => id !== "over-locks") : axes;
    const charts = shown.map((x) => over_chart(group, x, what));
    return laid_out(group.name === "mix" ? [quartiles_chart, ...charts] : charts);
  };
})(lockflight);
