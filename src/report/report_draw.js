// The elements of charts: colours, axes, lines, bars, and our own additions to Chart.js.
"use strict";

(function (lf) {
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
  const shapes = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "cross",
    "rectRounded"];

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

  // A line at the value that the other charts show.
  lf.guide = {
    id: "guide",
    beforeDatasetsDraw(chart, _, options) {
      if (!Number.isFinite(options.at)) return;
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
            label: (item) => ` ${item.dataset.label}: ${options.text(item)}`,
          }),
          ...options.plugins,
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
    };
  }

  // Bars that show one amount each, or its parts, with the amount at their ends.
  function amount_bars(view, rows, sets, value, options) {
    const main = sets.filter((set) => set.stack !== "aside");
    const total = (i) => main.reduce((sum, set) => sum + set.data[i], 0);
    return {
      ...bars(view, rows, sets, value, {
        room: options.room, text: (item) => options.format(item.raw),
        plugins: { value_labels: { format: options.format, color: view.theme.ink } },
      }),
      summary: `${options.what}${lf.where(view.group, view.picked, [])}: ` +
        rows.map(({ one }, i) => `${one.label} ${options.format(total(i))}`).join(", "),
    };
  }

  function own_colours(view, rows) {
    const colours = rows.map(({ one }) => view.theme.style(one).color);
    return { backgroundColor: colours, borderRadius: 3, maxBarThickness: 22 };
  }

  // The run of each shown series that has all picked settings.
  const runs_at = (view) => view.shown.flatMap((one) =>
    lf.runs_with(view.group, one, view.picked, []).map((run) => ({ one, run })));

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
    return amount_bars(view, rows, [set],
      value_axis(view, title, logarithmic, options.axis_format || options.format, extra),
      options);
  }

  const spread = (values) => {
    const positive = values.filter((value) => value > 0);
    return positive.length ? Math.max(...positive) / Math.min(...positive) : 1;
  };

  function scale_toggle(values) {
    return { key: "scale", label: "Scale", options: [["linear", "linear"], ["log", "log"]],
      initial: spread(values) > 60 ? "log" : "linear" };
  }

  lf.draw = { axis, value_axis, tooltip, base_options, line, bars, amount_bars, simple_bars,
    runs_at, scale_toggle, spread };
})(lockflight);
