// Beyond the papers: throughput over the ranks, a chart for each machine and share of writers, one
// curve a lock. The tables do not need this script.
"use strict";

(function (lf) {
  const { axis, value_axis, tooltip, base_options, line } = lf.draw;
  const { beyond = [] } = JSON.parse(document.getElementById("results").textContent);
  const root = document.documentElement;
  // All charts share a legend: a lock has the same colour in each.
  const locks = lf.distinct(beyond.map((row) => row.lock));
  const hidden = new Set();
  const charts = [];

  const series = (lock) => ({ lock, label: lock, variant: 0 });

  function rows_of(card) {
    return beyond.filter((row) => row.machine === card.dataset.machine &&
      row.writers === Number(card.dataset.writers) && row.workload === "sob" &&
      row.throughput_ops_s !== null);
  }

  function sets_of(view, rows) {
    return lf.distinct(rows.map((row) => row.lock)).map((lock) => ({
      ...line(view, series(lock), rows.filter((row) => row.lock === lock)
        .map((row) => ({ x: row.procs, y: row.throughput_ops_s }))),
      hidden: hidden.has(lock),
    }));
  }

  function options_of(view, rows) {
    const at = lf.distinct(rows.map((row) => row.procs)).sort((a, b) => a - b);
    const x = axis(view.theme, "ranks", {
      type: "logarithmic", min: at[0], max: at[at.length - 1],
      afterBuildTicks: (scale) => { scale.ticks = at.map((value) => ({ value })); },
    });
    x.ticks.callback = lf.rank_number;
    return base_options(
      {
        tooltip: tooltip(view.theme, {
          title: (items) => (items.length ? lf.ranks(items[0].parsed.x) : ""),
          label: (item) => ` ${item.dataset.label}: ${lf.scaled(item.parsed.y)}/s`,
        }),
      },
      { x, y: value_axis(view, "operations a second", true, lf.scaled) },
      { interaction: { mode: "x", intersect: false }, layout: { padding: { right: 14, top: 6 } } },
    );
  }

  function draw(card) {
    const rows = rows_of(card);
    if (!rows.length) return;
    const place = card.querySelector(".plot");
    place.style.height = "340px";
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${card.querySelector("h3").textContent}, operations a ` +
      "second over the ranks; the numbers are in the table below");
    place.append(canvas);
    const view = { theme: lf.read_theme(locks) };
    const chart = new Chart(canvas, { type: "line", data: { datasets: sets_of(view, rows) },
      options: options_of(view, rows) });
    charts.push({ chart, rows });
  }

  function repaint() {
    const view = { theme: lf.read_theme(locks) };
    for (const { chart, rows } of charts) {
      chart.data.datasets = sets_of(view, rows);
      chart.options = options_of(view, rows);
      chart.update();
    }
    show_legend(view.theme);
  }

  function stroke({ color, dash }) {
    return `<span><svg class="stroke" viewBox="0 0 24 10" aria-hidden="true">` +
      `<path d="M0 5H24" stroke="${color}" stroke-dasharray="${dash.join(" ")}"/></svg></span>`;
  }

  function show_legend(theme) {
    const legend = document.getElementById("beyond-legend");
    legend.replaceChildren(...locks.map((lock) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.innerHTML = stroke(theme.style(series(lock)));
      chip.append(lock);
      chip.setAttribute("aria-pressed", String(!hidden.has(lock)));
      chip.addEventListener("click", () => {
        if (!hidden.delete(lock)) hidden.add(lock);
        repaint();
      });
      return chip;
    }));
  }

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  document.querySelectorAll(".card[data-machine]").forEach(draw);
  show_legend(lf.read_theme(locks));
  root.dataset.charts = String(charts.length);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})(lockflight);
