// The charts of a paper's page: our curves on the axes of each figure, and the paper's values and
// bounds beside ours where the paper has no figure. The tables do not need this script.
"use strict";

(function (lf) {
  const { axis, placed_axis, value_axis, tooltip, base_options, line, named_lines, bar_start,
    spread } = lf.draw;
  const { claims = [], figures = [] } = JSON.parse(document.getElementById("results").textContent);
  const rounded = lf.rounded;

  // A colour for each name of a curve, the same in all figures.
  const series_of = (name) => ({ lock: name, label: name, key: name });
  const series = figures.flatMap((f) => f.curves.map((c) => series_of(c.name)));

  // ---- figures ----

  const is_distribution = (f) => f.x.at.length === 0;
  const has_categories = (f) => f.x.at.some((x) => typeof x === "string");
  const xs_of = (f) => f.curves.flatMap((c) => c.points.map(([x]) => x));

  function curve_sets(view, f) {
    const sets = f.curves.map((c) => ({
      ...line(view, series_of(c.name), c.points.map(([x, y]) => ({ x, y }))),
      ...(is_distribution(f) ? { stepped: "before" } : {}),
    }));
    const printed = lf.distinct(f.paper_points.map((p) => p.curve)).map((name) => ({
      label: `${name}, the paper`, showLine: false,
      data: f.paper_points.filter((p) => p.curve === name).map(({ x, y }) => ({ x, y })),
      borderColor: view.theme.style(series_of(name)).color, backgroundColor: "transparent",
      pointStyle: "circle", pointRadius: 8, pointHoverRadius: 9, pointBorderWidth: 2.5, clip: 12,
    }));
    return [...sets, ...printed];
  }

  function x_axis(view, f) {
    if (has_categories(f))
      return axis(view.theme, f.x.label, { type: "category", labels: f.x.at, offset: true });
    const logarithmic = f.x.scale === "logarithmic";
    const title = is_distribution(f) ? `${f.x.label} (${f.unit})` : f.x.label;
    if (is_distribution(f)) return value_axis(view, title, logarithmic, rounded);
    return placed_axis(view.theme, title, f.x.at, lf.rank_number, { logarithmic });
  }

  function y_axis(view, f) {
    if (is_distribution(f))
      return value_axis(view, "fraction of all", false, lf.percent, { min: 0, max: 1 });
    return value_axis(view, f.unit === "x" ? "times" : f.unit, f.y.scale === "logarithmic", rounded);
  }

  function figure_options(view, f, sets) {
    return named_lines(view, sets.filter((set) => set.showLine !== false),
      {
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
      { interaction: { mode: is_distribution(f) ? "nearest" : "x", intersect: false } });
  }

  function draw_figure(card) {
    const f = figures[Number(card.dataset.number)];
    if (!xs_of(f).length) return card.querySelector(".plot").remove();
    lf.add_chart(card, { series, type: "line", height: 300,
      label: `${lf.title_of(card)}: ${f.metric} over ${f.x.label}; ` +
        f.curves.map((c) => c.name).join(", "),
      build: (view) => {
        const sets = curve_sets(view, f);
        return { data: { datasets: sets }, options: figure_options(view, f, sets) };
      } });
  }

  // ---- claims without a figure ----

  function bar_sets(view, rows) {
    const colour = (row) => view.theme.read(row.verdict === "holds" ? "--good"
      : row.undecided ? "--lock-5" : "--bad");
    return [
      { label: "paper", stack: "paper", data: rows.map((row) => row.paper_value),
        backgroundColor: view.theme.plain, borderRadius: 2, maxBarThickness: 11 },
      { label: "ours", stack: "ours", data: rows.map((row) => row.ours),
        backgroundColor: rows.map(colour), borderRadius: 2, maxBarThickness: 11 },
    ];
  }

  // The paper's number, with its relation to ours if it is a bound.
  const theirs = (row) => `${row.relation ? `${row.relation} ` : ""}${rounded(row.paper_value)}`;

  function bar_options(view, rows) {
    const values = rows.flatMap((row) => [row.paper_value, row.ours]);
    const logarithmic = spread(values) > 30;
    const unit = rows[0].unit === "x" ? "times" : rows[0].unit;
    const value = value_axis(view, unit, logarithmic, rounded,
      logarithmic ? bar_start(values) : {});
    return base_options(
      {
        value_labels: { color: view.theme.ink, own: [],
          format: (value, i, stack) => (stack === "paper" ? theirs(rows[i]) : rounded(value)) },
        tooltip: tooltip(view.theme, {
          title: (items) => rows[items[0].dataIndex].id,
          label: (item) => {
            const row = rows[item.dataIndex];
            const number = item.dataset.stack === "paper" ? theirs(row) : rounded(item.raw);
            return ` ${item.dataset.label}: ${number} ${row.unit}`;
          },
        }),
      },
      { x: value,
        y: axis(view.theme, "", { grid: { display: false, borderColor: view.theme.grid },
          ticks: { color: view.theme.ink, font: { size: 11.5 }, autoSkip: false,
            callback: (_, i) => lf.shortened(rows[i].id, 30) } }) },
      { indexAxis: "y", interaction: { mode: "index", axis: "y", intersect: false },
        layout: { padding: { right: 44 } } },
    );
  }

  // Claims that do not hold come first.
  function draw_bars(card) {
    const rows = claims.filter((row) => row.group === card.dataset.group &&
      row.unit === card.dataset.unit && row.ours !== null)
      .sort((a, b) => (a.verdict === "holds") - (b.verdict === "holds"));
    lf.add_chart(card, { series, type: "bar", height: 70 + 28 * rows.length,
      label: rows.map((row) => `${row.id}: paper ${theirs(row)}, ` +
        `ours ${rounded(row.ours)} ${row.unit}`).join("; "),
      build: (view) => ({
        data: { labels: rows.map((row) => row.id), datasets: bar_sets(view, rows) },
        options: bar_options(view, rows) }) });
  }

  document.querySelectorAll(".card[data-number]").forEach(draw_figure);
  document.querySelectorAll(".card[data-group]").forEach(draw_bars);
  lf.charts_are_drawn();
})(lockflight);
