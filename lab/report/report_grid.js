// How a lock does beside the fastest one, at each number of ranks and each share of writers: a heat
// map. The builder is as in report_charts.js.
"use strict";

(function (lf) {
  const { axis, tooltip, base_options } = lf.draw;
  const { write, text_width } = lf.labels;

  // The cells, each with its number. The colour is the stronger the nearer the lock is to the
  // fastest one.
  const heat = {
    id: "heat",
    beforeDatasetsDraw(chart, _, options) {
      if (!options.color) return;
      const { ctx, chartArea: area, scales: { x, y } } = chart;
      const [width, height] = [area.width / x.ticks.length, area.height / y.ticks.length];
      ctx.save();
      chart.data.datasets[0].data.forEach(({ ratio }, i) => {
        const at = chart.getDatasetMeta(0).data[i];
        const text = lf.rounded(Math.round(100 * ratio) / 100);
        ctx.globalAlpha = Math.max(0.04, ratio);
        ctx.fillStyle = options.color;
        ctx.fillRect(at.x - width / 2 + 1, at.y - height / 2 + 1, width - 2, height - 2);
        ctx.globalAlpha = 1;
        write(chart, text, at.x - text_width(text) / 2, at.y,
          { color: ratio > 0.6 ? options.on_color : options.ink, bold: ratio < options.weak });
      });
      ctx.restore();
    },
  };
  Chart.register(heat);

  const weak = 0.5;
  const picker_of = (group, key) => group.pickers.find((picker) => picker.key === key);
  const own_series = (group) => group.series.filter(({ lock }) => lf.is_own(lock));

  function cells_of(view, one) {
    const free = ["procs", "writers"];
    const same = (a, b) => free.every((key) => a[key] === b[key]);
    const rivals = view.shown.flatMap((other) =>
      lf.runs_with(view.group, other, view.picked, free).map((run) => ({ other, run })));
    return lf.runs_with(view.group, one, view.picked, free).map((run) => {
      const best = rivals.filter((rival) => same(rival.run, run)).reduce((most, rival) =>
        (rival.run.throughput_ops_s > most.run.throughput_ops_s ? rival : most), { other: one, run });
      return { x: lf.rank_number(run.procs), y: lf.percent(run.writers), run, best,
        ratio: run.throughput_ops_s / best.run.throughput_ops_s };
    });
  }

  const in_words = ({ ratio, run, best }) =>
    `${lf.rounded(ratio)} of ${best.other.label} (${lf.scaled(run.throughput_ops_s)}/s of ` +
    `${lf.scaled(best.run.throughput_ops_s)}/s)`;

  function grid(view) {
    const { group, theme } = view;
    const one = own_series(group).find(({ label }) => label === view.pick.lock);
    const data = cells_of(view, one);
    const category = (key, title, text) => axis(theme, title, { type: "category", offset: true,
      labels: picker_of(group, key).values.map(text), grid: { display: false } });
    return {
      type: "scatter", height: 90 + 34 * picker_of(group, "writers").values.length,
      data: { datasets: [{ label: one.label, data, pointRadius: 0, pointHitRadius: 30 }] },
      options: base_options(
        {
          heat: { color: theme.style(one).color, on_color: theme.surface, ink: theme.ink, weak },
          tooltip: tooltip(theme, { title: ([{ raw }]) => `${lf.ranks(raw.run.procs)}, ${raw.y} writers`,
            label: ({ raw }) => ` ${in_words(raw)}` }),
        },
        {
          x: category("procs", "ranks", lf.rank_number),
          y: category("writers", "share of operations that write", lf.percent),
        },
        { onClick: (event, [item]) => {
          if (!item) return;
          const { run } = data[item.index];
          for (const key of ["procs", "writers"]) view.choose(key, run[key]);
        } },
      ),
      free: ["procs", "writers"],
      summary: `Throughput of ${one.label} divided by that of the fastest lock: ` + data.map((cell) =>
        `${in_words(cell)} at ${cell.x} ranks and ${cell.y} writers`).join("; "),
    };
  }

  lf.grid_chart = {
    id: "grid", title: "Beside the fastest lock", wide: 5,
    what: (group, pick) => `Throughput of ${pick.lock} divided by that of the fastest shown lock; ` +
      `bold: less than ${weak}`,
    has: (group) => ["procs", "writers"].every((key) =>
      (picker_of(group, key)?.values.length ?? 0) > 2) && own_series(group).length > 0 &&
      group.measure === "rate",
    toggles: (group) => [{ key: "lock", label: "Lock", initial: own_series(group).at(-1).label,
      options: own_series(group).map(({ label }) => [label, label]) }],
    build: grid,
  };
})(lockflight);
