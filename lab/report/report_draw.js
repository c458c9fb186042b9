// The elements of charts: colours, axes, lines and bars.
"use strict";

(function (lf) {
  const { text_size, text_width, short_of, end_room } = lf.labels;
  const shapes = ["circle", "rect", "triangle", "rectRot"];

  const own = new Set((document.documentElement.dataset.own || "").split(" "));
  // True for a lock of the project itself, which the page highlights.
  lf.is_own = (lock) => own.has(lock);

  // How many of the colours are those of the project's own series: the others have as large a part of
  // the colours as of the series.
  const own_share = (ours, all, colours) =>
    Math.max(Math.min(ours, 2), Math.min(Math.round(colours * ours / all), colours - 1));

  // Colours come from the style sheet, so that light and dark live in one place. Each series has its
  // own while there are enough, the project's own series the first ones.
  lf.read_theme = function (series) {
    const css = getComputedStyle(document.documentElement);
    const read = (name) => css.getPropertyValue(name).trim();
    const palette = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => read(`--lock-${n}`));
    const keys_of = (some) => lf.distinct(some.map(({ key }) => key));
    const ours = keys_of(series.filter(({ lock }) => lf.is_own(lock)));
    const others = keys_of(series.filter(({ lock }) => !lf.is_own(lock)));
    const first = ours.length ? own_share(ours.length, ours.length + others.length, palette.length) : 0;
    return {
      ink: read("--ink"), muted: read("--muted"), grid: read("--grid"),
      surface: read("--surface"), plain: read("--plain-bar"), read,
      level: (i) => read(`--level-${Math.min(i + 1, 5)}`),
      style(one) {
        const is_own = lf.is_own(one.lock);
        const index = (is_own ? ours : others).indexOf(one.key);
        const colours = is_own ? palette.slice(0, first) : palette.slice(first);
        return {
          is_own,
          color: colours[index % colours.length],
          shape: shapes[Math.floor(index / colours.length) % shapes.length],
        };
      },
    };
  };

  function tick_font() {
    return { size: text_size };
  }

  function axis(theme, title, extra) {
    return {
      title: { display: Boolean(title), text: title, color: theme.muted, font: tick_font() },
      grid: { color: theme.grid, borderColor: theme.grid, tickColor: "transparent" },
      ticks: { color: theme.muted, font: tick_font(), maxRotation: 0 },
      ...extra,
    };
  }

  // A horizontal axis with a line at each of the places where a run was made, and a number at as many
  // of them as there is room for, the last one always.
  function placed_axis(theme, title, at, text, { logarithmic, ...extra } = {}) {
    const [first, last] = [Math.min(...at), Math.max(...at)];
    const scaled = (value) => (logarithmic ? Math.log(value) : value);
    const made = axis(theme, title, { type: logarithmic ? "logarithmic" : "linear", min: first,
      max: last, afterBuildTicks: (scale) => { scale.ticks = at.map((value) => ({ value })); },
      ...extra });
    made.ticks.autoSkip = false;
    made.ticks.callback = function (value) {
      const span = scaled(last) - scaled(made.min) || 1;
      const place = (one) => (scaled(one) - scaled(made.min)) / span * this.width;
      let least = Infinity;
      for (const one of [...at].sort((a, b) => b - a)) {
        const half = text_width(text(one)) / 2 + 3;
        const has_room = place(one) + half <= least;
        if (one === value) return has_room ? text(one) : "";
        if (has_room) least = place(one) - half;
      }
      return "";
    };
    return made;
  }

  const within = (min, max, digits, step = 1) => {
    const found = [];
    if (!(min > 0) || !Number.isFinite(max)) return found;
    for (let e = Math.floor(Math.log10(min)); 10 ** e <= max; ++e) {
      if (e % step !== 0) continue;
      found.push(...digits.map((digit) => Number(`${digit}e${e}`))
        .filter((value) => value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9)));
    }
    return found;
  };

  // The ticks of a logarithmic axis of so many pixels, each with `room` of them. They are 1, 2 and 5
  // of a long decade, powers of ten of a short one, and not all of them where decades are very
  // short. Two at least: else they are of all digits, or the ends of the axis.
  function log_ticks(min, max, pixels, room) {
    const decades = Math.log10(max / min);
    const fit = (values) => values.every((value, i) =>
      i === 0 || Math.log10(value / values[i - 1]) / decades * pixels >= room);
    const step = Math.ceil(room * decades / pixels);
    const digits = [1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
    const of_decades = [[1, 2, 5], [1, 3], [1]].map((some) => within(min, max, some))
      .concat([within(min, max, [1], step)]);
    const fine = within(min, max, digits);
    return [...of_decades, fine, [fine[0], fine[fine.length - 1]], [min, max]]
      .find((values) => new Set(values).size > 1 && fit(values)) || [min, max];
  }

  function value_axis(view, title, logarithmic, format, extra) {
    const base = axis(view.theme, title, extra);
    base.ticks.callback = format;
    if (!logarithmic) base.ticks.maxTicksLimit = 7;
    else {
      base.ticks.autoSkip = false;
      base.afterBuildTicks = (scale) => {
        scale.ticks = (scale.isHorizontal() ? log_ticks(scale.min, scale.max, scale.width, 60)
          : log_ticks(scale.min, scale.max, scale.height, 32)).map((value) => ({ value }));
      };
    }
    return { ...base, type: logarithmic ? "logarithmic" : "linear", beginAtZero: !logarithmic };
  }

  // Ends of a logarithmic axis that the values fill, and not up to the next power of ten: so many
  // times below the least and above the greatest one. Without `above` the chart chooses that end.
  function log_range(values, below, above) {
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return {};
    return { min: Math.min(...positive) / below,
      ...(above ? { max: Math.max(...positive) * above } : {}) };
  }
  const filled_range = (values) => log_range(values, 1.25, 1.25);
  // A bar on a logarithmic scale must start somewhere: half a decade below the shortest.
  const bar_start = (values) => log_range(values, 3);

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
    const { color, shape, is_own } = view.theme.style(one);
    return {
      label: one.label, short: short_of(one), is_own, data: points, borderColor: color, backgroundColor: color,
      pointBackgroundColor: color, pointBorderColor: color, pointStyle: shape,
      borderWidth: is_own ? 3.5 : 1.6, pointRadius: points.length > 24 ? 0 : is_own ? 4 : 2.5,
      pointHoverRadius: 6, order: is_own ? 0 : 1, clip: 8,
    };
  }

  // A line at the value that the other charts show.
  const guide = {
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

  Chart.register(guide);

  const row_height = (rows, abreast) =>
    (abreast > 1 ? 17 * abreast + 8 : rows > 12 ? 23 : 30);
  const owns = (rows) => rows.map(({ one }) => lf.is_own(one.lock));

  // Horizontal bars, one row per series: names of locks are long. `sets` are the datasets; as many
  // of them as `options.abreast` says stand below each other in a row.
  function bars(view, rows, sets, value, options) {
    const labels = rows.map(({ one }) => one.label);
    const room = options.room || 54;
    return {
      type: "bar",
      height: Math.max(170, row_height(labels.length, options.abreast || 1) * labels.length + 58),
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
            ticks: { color: view.theme.ink, autoSkip: false,
              font: ({ index }) => ({ size: 12, weight: owns(rows)[index] ? "bold" : "normal" }),
              callback: (_, i) => short_of(rows[i].one) },
          }),
        },
        {
          indexAxis: "y", layout: { padding: { right: value.max === 1 ? 46 : room } },
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
        room: options.room, abreast: options.abreast, text: (item) => options.format(item.raw),
        plugins: { value_labels: { format: options.format, color: view.theme.ink,
          own: owns(rows) } },
      }),
      summary: `${options.what}${lf.where(view.group, view.picked, [])}: ` +
        rows.map(({ one }, i) => `${one.label} ${options.format(total(i))}`).join(", "),
    };
  }

  // Bars are named where they stand: beside those of the project's own locks, which have colours,
  // the others are plain.
  function bar_style(view, rows) {
    const is_plain = view.group.series.some(({ lock }) => lf.is_own(lock));
    const colours = rows.map(({ one }) => (is_plain && !lf.is_own(one.lock)
      ? view.theme.plain : view.theme.style(one).color));
    return { backgroundColor: colours, borderRadius: 3, maxBarThickness: 22 };
  }

  // A colour at a third of its strength, for the one of two bars that matters less.
  lf.pale = (color) => `${color}55`;

  // Rows with the best value first; rows without one last.
  function best_first(rows, value, least) {
    const key = (row) => value(row) ?? (least ? Infinity : -Infinity);
    return [...rows].sort((a, b) => (least ? key(a) - key(b) : key(b) - key(a)) || 0);
  }

  // The run of each shown series that has all picked settings.
  const runs_at = (view) => view.shown.flatMap((one) =>
    lf.runs_with(view.group, one, view.picked, []).map((run) => ({ one, run })));

  function simple_bars(view, get, title, logarithmic, options) {
    const rows = best_first(runs_at(view).filter(({ run }) => get(run) !== null),
      ({ run }) => get(run), options.least);
    const set = { label: options.what, data: rows.map(({ run }) => get(run)),
      ...bar_style(view, rows) };
    const extra = { ...(options.max ? { max: options.max } : {}),
      ...(logarithmic ? bar_start(set.data) : {}) };
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

  // The options that all charts with lines share, beside their axes.
  function named_lines(view, sets, plugins, scales, extra) {
    return base_options({ end_labels: { color: view.theme.ink }, ...plugins }, scales,
      { layout: { padding: { right: end_room(sets), top: 6 } }, ...extra });
  }

  lf.draw = { axis, placed_axis, value_axis, log_range, filled_range, tooltip, base_options, line,
    named_lines, bars, amount_bars, simple_bars, bar_style, bar_start, best_first, runs_at,
    scale_toggle, spread, owns };
})(lockflight);
