// Beyond the papers: throughput over the ranks, a chart for each machine and share of writers, one
// curve a lock. The tables do not need this script.
"use strict";

(function (lf) {
  const { placed_axis, value_axis, filled_range, tooltip, line, named_lines } = lf.draw;
  const { beyond = [] } = JSON.parse(document.getElementById("results").textContent);
  // All charts share a legend: a lock has the same colour in each.
  const locks = lf.distinct(beyond.map((row) => row.lock));
  const hidden = new Set();

  const series_of = (lock) => ({ lock, label: lock, key: lock });
  const series = locks.map(series_of);

  function rows_of(card) {
    return beyond.filter((row) => row.machine === card.dataset.machine &&
      row.writers === Number(card.dataset.writers) && row.workload === "sob" &&
      row.throughput_ops_s !== null);
  }

  function sets_of(view, rows) {
    return lf.distinct(rows.map((row) => row.lock)).map((lock) => ({
      ...line(view, series_of(lock), rows.filter((row) => row.lock === lock)
        .map((row) => ({ x: row.procs, y: row.throughput_ops_s }))),
      hidden: hidden.has(lock),
    }));
  }

  function options_of(view, rows, sets) {
    const at = lf.distinct(rows.map((row) => row.procs)).sort((a, b) => a - b);
    const x = placed_axis(view.theme, "ranks", at, lf.rank_number, { logarithmic: true });
    return named_lines(view, sets,
      {
        tooltip: tooltip(view.theme, {
          title: (items) => (items.length ? lf.ranks(items[0].parsed.x) : ""),
          label: (item) => ` ${item.dataset.label}: ${lf.scaled(item.parsed.y)}/s`,
        }),
      },
      { x, y: value_axis(view, "operations a second", true, lf.scaled,
        filled_range(rows.map((row) => row.throughput_ops_s))) },
      { interaction: { mode: "x", intersect: false } });
  }

  function draw(card) {
    const rows = rows_of(card);
    if (!rows.length) return;
    lf.add_chart(card, { series, type: "line",
      height: lf.labels.line_height(locks),
      label: `${lf.title_of(card)}, operations a second over the ranks; the numbers are in the ` +
        "table below",
      build: (view) => {
        const sets = sets_of(view, rows);
        return { data: { datasets: sets }, options: options_of(view, rows, sets) };
      } });
  }

  const legend = document.getElementById("beyond-legend");
  const chips = [...locks].sort((a, b) => lf.is_own(b) - lf.is_own(a)).map((lock) =>
    lf.lock_chip(series_of(lock), lf.read_theme(series), () => !hidden.has(lock), () => {
      if (!hidden.delete(lock)) hidden.add(lock);
      lf.repaint_charts();
    }));
  legend.append(...chips.map(({ button }) => button));
  document.querySelectorAll(".card[data-machine]").forEach(draw);
  lf.charts_are_drawn(() => {
    for (const { repaint } of chips) repaint(lf.read_theme(series));
  });
})(lockflight);
