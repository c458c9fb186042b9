// Latencies as boxes on a logarithmic scale: one row a lock, from the lower to the upper quartile,
// with a mark at the median and, where a row has one box, a thin line to the 99th percentile.
"use strict";

(function (lf) {
  const { value_axis, log_range, bars, best_first, runs_at, bar_style, scale_toggle, owns } = lf.draw;
  const { write } = lf.labels;

  // The medians' marks and numbers, and the lines to the 99th percentiles.
  const medians = {
    id: "medians",
    afterDatasetsDraw(chart, _, options) {
      if (!options.format) return;
      const { ctx, scales: { x } } = chart;
      ctx.save();
      for (const meta of chart.getSortedVisibleDatasetMetas()) {
        const { stats: all, whiskers } = chart.data.datasets[meta.index];
        all.forEach((stats, i) => {
          if (!stats) return;
          const { y, height } = meta.data[i];
          const at = x.getPixelForValue(Math.max(stats.p50, x.min));
          const box_end = x.getPixelForValue(Math.max(stats.p75, x.min));
          const end = whiskers && stats.p99 > stats.p75 ? x.getPixelForValue(stats.p99) : box_end;
          ctx.fillStyle = options.color;
          if (end > box_end) {
            ctx.fillRect(box_end, y - 0.5, end - box_end, 1);
            ctx.fillRect(end - 0.5, y - height / 4, 1, height / 2);
          }
          // The mark is taller than its box, so that a narrow box is seen too.
          if (meta.data[i].width > 16) {
            ctx.fillStyle = options.halo;
            ctx.fillRect(at - 2.5, y - height / 2, 5, height);
            ctx.fillStyle = options.color;
          }
          ctx.fillRect(at - 1, y - height / 2 - 3, 2, height + 6);
          write(chart, options.format(stats.p50), Math.max(at, end) + 8, y,
            { color: options.color, bold: options.own[i] });
        });
      }
      ctx.restore();
    },
  };
  Chart.register(medians);

  function in_words({ p25, p50, p75, p99 }) {
    const relative = p50 > 0 ? `, ${lf.rounded((p75 - p25) / p50)} of the median` : "";
    return `${[p25, p50, p75].map(lf.duration).join(", ")}; ` +
      `range ${lf.duration(p75 - p25)}${relative}; 99\u202f% within ${lf.duration(p99)}`;
  }

  const numbers_of = ({ whiskers, stats }) => stats.flatMap((one) =>
    (one ? [one.p25, one.p50, one.p75, ...(whiskers ? [one.p99] : [])] : []))
    .filter((us) => us > 0);

  // `sets` have `stats`, one for each row, and everything else of a dataset but its data.
  function boxes(view, rows, sets, { log, free, what }) {
    const numbers = sets.flatMap(numbers_of);
    const ends = log ? log_range(numbers, 1.5, 1.3) : {};
    const least = ends.min || 0;
    for (const set of sets) {
      set.data = set.stats.map((one) => one &&
        [Math.max(one.p25, least), Math.max(one.p75, least)]);
    }
    const value = value_axis(view, `latency${log ? ", logarithmic" : ""}`, log, lf.duration,
      ends);
    return {
      ...bars(view, rows, sets, value, {
        abreast: sets.length, room: 58,
        text: ({ dataset, dataIndex }) => in_words(dataset.stats[dataIndex]),
        plugins: { medians: { format: lf.duration, color: view.theme.ink,
          halo: view.theme.surface, own: owns(rows) } },
      }),
      free,
      summary: `${what}${lf.where(view.group, view.picked, free)}: ` +
        rows.flatMap(({ one }, i) => sets.filter(({ stats }) => stats[i]).map(
          ({ label, stats }) => `${one.label}, ${label}: ${in_words(stats[i])}`)).join(". "),
    };
  }

  // One box a lock, at the picked settings.
  lf.latency_boxes = function (view) {
    const side = view.pick.side || "all";
    const rows = best_first(runs_at(view).filter(({ run }) => lf.latency(run, side)),
      ({ run }) => lf.latency(run, side).p50, true);
    const set = { label: "quartiles", stats: rows.map(({ run }) => lf.latency(run, side)),
      whiskers: true, ...bar_style(view, rows), borderSkipped: false, maxBarThickness: 14,
      minBarLength: 2 };
    return boxes(view, rows, [set], { log: true, free: [], what: "Quartiles of the latency" });
  };

  // ---- mixes: a box for each share of writers ------------------------------------------------

  const shares = (group) => lf.distinct(lf.all_runs(group).map((run) => run.writers))
    .sort((a, b) => a - b);

  const mixes = (group) => shares(group).map((share, i) => ({
    key: `writers-${share}`, label: `${lf.percent(share)} writers`, share,
    color: (theme) => theme.level(i) }));

  function quartiles(view) {
    const { group, theme } = view;
    const side = view.pick.side || "all";
    const stats_of = (one, share) => {
      const [run] = lf.runs_with(group, one, { ...view.picked, writers: share }, []);
      return run && run.writers === share ? lf.latency(run, side) : null;
    };
    const shown = view.parts.filter(({ key }) => !view.off.has(key));
    const rows = best_first(view.shown.map((one) => ({ one })),
      ({ one }) => shown.length ? stats_of(one, shown[shown.length - 1].share)?.p50 : null, true);
    const sets = shown.map((mix) => ({
      label: mix.label, stats: rows.map(({ one }) => stats_of(one, mix.share)),
      backgroundColor: mix.color(theme), borderRadius: 2, borderSkipped: false,
      maxBarThickness: 14, minBarLength: 2 }));
    return boxes(view, rows, sets, { log: view.pick.scale === "log", free: ["writers"],
      what: "Quartiles of the latency" });
  }

  lf.quartiles_chart = {
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
})(lockflight);
