// The charts of a paper's page: our curves on the axes of each figure, and the paper's values beside
// ours where the paper has no figure. The tables do not need this script.
"use strict";

(function (lf) {
  const { axis, value_axis, tooltip, base_options, line } = lf.draw;
  const { claims = [], figures = [] } = JSON.parse(document.getElementById("results").textContent);
  const root = document.documentElement;
  const charts = [];
  const rounded = lf.rounded;

  // A colour for each name of a curve, the same in all figures.
  const names = lf.distinct(figures.flatMap((f) => f.curves.map((c) => c.name)));
  const series = (name) => ({ lock: name, label: name, variant: 0 });

  // ---- figures ----

  const is_distribution = (f) => f.x.at.length === 0;
  const has_categories = (f) => f.x.at.some((x) => typeof x === "string");
  const xs_of = (f) => f.curves.flatMap((c) => c.points.map(([x]) => x));

  function curve_sets(view, f) {
    const sets = f.curves.map((c) => ({
      ...line(view, series(c.name), c.points.map(([x, y]) => ({ x, y }))),
      ...(is_distribution(f) ? { stepped: "before" } : {}),
    }));
    const printed = lf.distinct(f.paper_points.map((p) => p.curve)).map((name) => ({
      label: `${name}, the paper`, showLine: false,
      data: f.paper_points.filter((p) => p.curve === name).map(({ x, y }) => ({ x, y })),
      borderColor: view.theme.style(series(name)).color, backgroundColor: "transparent",
      pointStyle: "circle", pointRadius: 8, pointHoverRadius: 9, pointBorderWidth: 2.5, clip: 12,
    }));
    return [...sets, ...printed];
  }

  function x_axis(view, f) {
    if (has_categories(f))
      return axis(view.theme, f.x.label, { type: "category", labels: f.x.at, offset: true });
    const logarithmic = f.x.scale === "logarithmic";
    const title = is_distribution(f) ? `${f.x.label} (${f.unit})` : f.x.label;
    const x = axis(view.theme, title, { type: logarithmic ? "logarithmic" : "linear" });
    if (is_distribution(f)) return value_axis(view, title, logarithmic, rounded);
    // A tick at each place where a run was made.
    x.min = Math.min(...f.x.at);
    x.max = Math.max(...f.x.at);
    x.afterBuildTicks = (scale) => { scale.ticks = f.x.at.map((value) => ({ value })); };
    x.ticks.callback = lf.rank_number;
    return x;
  }

  function y_axis(view, f) {
    if (is_distribution(f))
      return value_axis(view, "fraction of all", false, lf.percent, { min: 0, max: 1 });
    return value_axis(view, f.unit === "x" ? "times" : f.unit, f.y.scale === "logarithmic", rounded);
  }

  function figure_options(view, f) {
    return base_options(
      {
        legend: { display: true, position: "bottom", align: "start",
          labels: { color: view.theme.ink, usePointStyle: true, boxWidth: 8, boxHeight: 8, padding: 14,
            font: { size: 12 } } },
        tooltip: tooltip(view.theme, {
          title: (items) => (items.length && !is_distribution(f)
            ? `${f.x.label}: ${items[0].label}` : ""),
          label: (item) => (is_distribution(f)
            ? ` ${item.dataset.label}: ${lf.percent(item.parsed.y)} up to ` +
              `${rounded(item.parsed.x)} ${f.unit}`
            : ` ${item.dataset.label}: ${rounded(item.parsed.y)} ${f.unit}`),
        }),
      },
      { x: x_axis(view, f), y: y_axis(view, f) },
      { interaction: { mode: is_distribution(f) ? "nearest" : "x", intersect: false },
        layout: { padding: { right: 14, top: 6 } } },
    );
  }

  function draw_figure(card) {
    const f = figures[Number(card.dataset.number)];
    if (!xs_of(f).length) return card.querySelector(".plot").remove();
    const view = { theme: lf.read_theme(names) };
    add(card, 330, `${card.querySelector("h3").textContent}: ${f.metric} over ${f.x.label}; ` +
      f.curves.map((c) => c.name).join(", "), "line", {
      sets: (now) => curve_sets(now, f), options: (now) => figure_options(now, f), view,
    });
  }

  // ---- claims without a figure ----

  const shortened = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

  function bar_sets(view, rows) {
    const colour = (row) => view.theme.read(row.verdict === "holds" ? "--good"
      : row.undecided ? "--muted" : "--bad");
    return [
      { label: "paper", data: rows.map((row) => row.paper_value),
        backgroundColor: view.theme.read("--op-flush"), borderRadius: 2, maxBarThickness: 11 },
      { label: "ours", data: rows.map((row) => row.ours), backgroundColor: rows.map(colour),
        borderRadius: 2, maxBarThickness: 11 },
    ];
  }

  function bar_options(view, rows) {
    const positive = rows.flatMap((row) => [row.paper_value, row.ours]).filter((v) => v > 0);
    const spread = positive.length ? Math.max(...positive) / Math.min(...positive) : 1;
    const unit = rows[0].unit === "x" ? "times" : rows[0].unit;
    const value = value_axis(view, unit, spread > 30, rounded);
    // A bar must start somewhere.
    if (spread > 30) value.min = Math.min(...positive) / 2;
    return base_options(
      { tooltip: tooltip(view.theme, {
        title: (items) => rows[items[0].dataIndex].id,
        label: (item) => {
          const row = rows[item.dataIndex];
          const bound = item.datasetIndex === 0 && row.relation ? `${row.relation} ` : "";
          return ` ${item.dataset.label}: ${bound}${rounded(item.raw)} ${row.unit}`;
        },
      }) },
      { x: value,
        y: axis(view.theme, "", { grid: { display: false, borderColor: view.theme.grid },
          ticks: { color: view.theme.ink, font: { size: 11.5 }, autoSkip: false,
            callback: (_, i) => shortened(rows[i].id) } }) },
      { indexAxis: "y", interaction: { mode: "index", axis: "y", intersect: false } },
    );
  }

  function draw_bars(card) {
    const rows = claims.filter((row) => row.group === card.dataset.group &&
      row.unit === card.dataset.unit && row.ours !== null);
    const view = { theme: lf.read_theme(names) };
    add(card, 70 + 32 * rows.length, rows.map((row) =>
      `${row.id}: paper ${row.relation || ""} ${rounded(row.paper_value)}, ours ` +
      `${rounded(row.ours)} ${row.unit}`).join("; "), "bar", {
      sets: (now) => bar_sets(now, rows), options: (now) => bar_options(now, rows), view,
      labels: rows.map((row) => row.id),
    });
  }

  // ---- all of them ----

  function add(card, height, label, type, { sets, options, view, labels }) {
    const place = card.querySelector(".plot");
    place.style.height = `${height}px`;
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
    place.append(canvas);
    const chart = new Chart(canvas, { type, data: { labels, datasets: sets(view) },
      options: options(view) });
    charts.push({ chart, sets, options });
  }

  function repaint() {
    const view = { theme: lf.read_theme(names) };
    for (const { chart, sets, options } of charts) {
      chart.data.datasets = sets(view);
      chart.options = options(view);
      chart.update();
    }
  }

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  document.querySelectorAll(".card[data-number]").forEach(draw_figure);
  document.querySelectorAll(".card[data-group]").forEach(draw_bars);
  root.dataset.charts = String(charts.length);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})(lockflight);
