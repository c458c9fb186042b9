// A chart for each figure and unit: the paper's values beside ours. The tables do not need this
// script.
"use strict";

(function () {
  const { claims } = JSON.parse(document.getElementById("claims").textContent);
  const root = document.documentElement;
  const charts = [];

  function theme() {
    const css = getComputedStyle(root);
    const read = (name) => css.getPropertyValue(name).trim();
    return { ink: read("--ink"), muted: read("--muted"), grid: read("--grid"),
      surface: read("--surface"), theirs: read("--op-flush"), held: read("--good"),
      missed: read("--bad") };
  }

  // Three significant digits.
  function rounded(value) {
    if (value === 0) return "0";
    const digits = Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(Math.abs(value)))));
    return value.toLocaleString("en", { maximumFractionDigits: digits });
  }

  const shortened = (text) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

  function options(rows, colours) {
    const positive = rows.flatMap((row) => [row.paper_value, row.ours]).filter((v) => v > 0);
    const spread = positive.length ? Math.max(...positive) / Math.min(...positive) : 1;
    const logarithmic = spread > 30;
    const ticks = { color: colours.muted, font: { size: 11.5 }, maxRotation: 0 };
    const value = {
      type: logarithmic ? "logarithmic" : "linear", beginAtZero: !logarithmic,
      grid: { color: colours.grid, borderColor: colours.grid },
      title: { display: true, text: rows[0].unit === "x" ? "times" : rows[0].unit,
        color: colours.muted },
      ticks: { ...ticks, maxTicksLimit: 7, callback: (v) => rounded(v) },
    };
    // A bar must start somewhere.
    if (logarithmic) value.min = Math.min(...positive) / 2;
    return {
      indexAxis: "y", responsive: true, maintainAspectRatio: false, animation: false,
      interaction: { mode: "index", axis: "y", intersect: false },
      plugins: {
        legend: { display: false },
        tooltip: {
          callbacks: {
            title: (items) => rows[items[0].dataIndex].id,
            label: (item) => {
              const row = rows[item.dataIndex];
              const bound = item.datasetIndex === 0 && row.relation ? `${row.relation} ` : "";
              return ` ${item.dataset.label}: ${bound}${rounded(item.raw)} ${row.unit}`;
            },
          },
        },
      },
      scales: {
        x: value,
        y: { grid: { display: false, borderColor: colours.grid },
          ticks: { color: colours.ink, font: { size: 11.5 }, autoSkip: false,
            callback: (_, i) => shortened(rows[i].id) } },
      },
    };
  }

  function datasets(rows, colours) {
    return [
      { label: "paper", data: rows.map((row) => row.paper_value),
        backgroundColor: colours.theirs, borderRadius: 2, maxBarThickness: 11 },
      { label: "ours", data: rows.map((row) => row.ours),
        backgroundColor: rows.map((row) =>
          (row.verdict === "holds" ? colours.held : colours.missed)),
        borderRadius: 2, maxBarThickness: 11 },
    ];
  }

  function draw(card) {
    const rows = claims.filter((row) => row.paper === card.dataset.paper &&
      row.figure === card.dataset.figure && row.unit === card.dataset.unit && row.ours !== null);
    const place = card.querySelector(".plot");
    place.style.height = `${70 + 32 * rows.length}px`;
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", rows.map((row) =>
      `${row.id}: paper ${row.relation || ""} ${rounded(row.paper_value)}, ours ` +
      `${rounded(row.ours)} ${row.unit}`).join("; "));
    place.append(canvas);
    const colours = theme();
    const chart = new Chart(canvas, { type: "bar",
      data: { labels: rows.map((row) => row.id), datasets: datasets(rows, colours) },
      options: options(rows, colours) });
    charts.push({ chart, rows });
  }

  function repaint() {
    const colours = theme();
    for (const { chart, rows } of charts) {
      chart.data.datasets = datasets(rows, colours);
      chart.options = options(rows, colours);
      chart.update();
    }
  }

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  document.querySelectorAll(".card[data-paper]").forEach(draw);
  root.dataset.charts = String(charts.length);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
