// How throughput and latency change along the ranks, a setting of the workload or a parameter of
// the locks: one line a lock, or two bars a lock where there are two values. Builders are as in
// report_charts.js.
"use strict";

(function (lf) {
  const { placed_axis, value_axis, filled_range, tooltip, line, named_lines, amount_bars,
    simple_bars, bar_style, bar_start, best_first, runs_at, scale_toggle, spread } = lf.draw;
  const { line_height } = lf.labels;

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
    return [...lines].map(([label, parts]) => ({ ...parts[0], label, parts,
      fields: parts[0].fields.filter(([name]) => name !== x.field) }));
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
    return placed_axis(view.theme, x.along, at, x.text,
      { logarithmic, min: x.min ?? at[0] });
  }

  function title_of(view, x, measure) {
    const title = measure.title + (x.name ? ` over ${x.name}` : "");
    return view.group.rounds ? `${view.group.title}: ${title}`
      : title[0].toUpperCase() + title.slice(1);
  }

  // The parts of a chart that lines and pairs of bars share.
  function over_frame(view, x, measure, free, drawn) {
    // The title says that ranks vary if they are not the axis.
    const note = free.length > 1 ? ", all numbers of ranks" : "";
    return {
      free, note, title: title_of(view, x, measure),
      summary: `${title_of(view, x, measure)}, against ${x.along}` +
        `${lf.where(view.group, view.picked, free)}${note}: ` +
        drawn.map(({ one, points }) => `${one.label} ` +
          points.map(({ x: at, y }) => `${measure.text(y)} at ${x.text(at)}`).join(", "))
          .join("; "),
    };
  }

  function points_of(view, x, measure, lines) {
    const log = view.pick.scale === "log";
    return lines.map(({ one, runs }) => ({ one, points: runs
      .map((run) => ({ x: x.value(run), y: measure.value(run), run }))
      .filter(({ y }) => y !== null && (!log || y > 0)) }));
  }

  function draw_lines(view, x, measure, free, lines) {
    const { theme } = view;
    const drawn = points_of(view, x, measure, lines);
    const sets = drawn.map(({ one, points }) => line(view, one, points));
    const picked = x.field ? [] : runs_at(view);
    const log = view.pick.scale === "log";
    return {
      ...over_frame(view, x, measure, free, drawn),
      type: "line", height: line_height(sets), data: { datasets: sets },
      options: named_lines(view, sets,
        {
          tooltip: tooltip(theme, {
            title: (items) => (items.length ? `${x.along}: ${x.text(items[0].parsed.x)}` : ""),
            label: (item) => ` ${item.dataset.label}: ${measure.text(item.parsed.y)}`,
          }),
          guide: { at: picked.length ? x.value(picked[0].run) : null, color: theme.muted },
        },
        {
          x: x_axis(view, x, lines.flatMap(({ runs }) => runs.map(x.value))),
          y: value_axis(view, measure.axis, log, measure.tick || measure.text,
            log ? filled_range(drawn.flatMap(({ points }) => points.map(({ y }) => y))) : {}),
        },
        {
          interaction: { mode: "x", intersect: false },
          onClick: (event, items) => {
            if (!items.length) return;
            const { run } = sets[items[0].datasetIndex].data[items[0].index];
            for (const key of free) view.choose(key, run[key]);
          },
        },
      ),
    };
  }

  // Two values of x: two bars a lock, the pale one for the smaller value.
  function draw_pairs(view, x, measure, free, lines, at) {
    const drawn = best_first(
      points_of(view, x, measure, lines).filter(({ points }) => points.length),
      ({ points }) => points.find((point) => point.x === at[1])?.y, measure.least);
    const sets = at.map((value, i) => {
      const style = bar_style(view, drawn);
      return { label: `${x.along}: ${x.text(value)}`, stack: String(value),
        data: drawn.map(({ points }) => points.find((point) => point.x === value)?.y ?? null),
        ...style, backgroundColor: style.backgroundColor.map((c) => (i ? c : lf.pale(c))),
        borderColor: style.backgroundColor, borderWidth: 1, borderSkipped: false,
        maxBarThickness: 14 };
    });
    const frame = over_frame(view, x, measure, free, drawn);
    const log = view.pick.scale === "log";
    const value = value_axis(view, measure.axis, log, measure.tick || measure.text,
      log ? bar_start(sets.flatMap(({ data }) => data)) : {});
    return {
      ...amount_bars(view, drawn, sets, value, { what: frame.title, format: measure.text,
        abreast: 2, room: 62 }),
      ...frame,
      note: `${frame.note}; pale bars: ${x.text(at[0])}, full bars: ${x.text(at[1])} ` +
        (x.name || "ranks"),
    };
  }

  function draw_over(view, x) {
    const measure = lf.measures[view.pick.measure];
    // Hidden series count here, so that hiding a lock changes no other.
    const free = x.free.find((keys) =>
      makes_a_line(lines_with(view, x, keys, view.group.series), x));
    if (free) {
      const lines = lines_with(view, x, free, view.shown);
      const at = lf.distinct(lines_with(view, x, free, view.group.series)
        .flatMap(({ runs }) => runs.map(x.value))).sort((a, b) => a - b);
      return at.length === 2 ? draw_pairs(view, x, measure, free, lines, at)
        : draw_lines(view, x, measure, free, lines);
    }
    // With the picked settings there is one value for each lock.
    return { title: title_of(view, {}, measure),
      ...simple_bars(view, measure.value, measure.axis, view.pick.scale === "log",
        { what: title_of(view, {}, measure), format: measure.text, axis_format: measure.tick,
          room: 62, least: measure.least }) };
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
    ...over_chart(group, ranks_axis(group), lf.timed(group) ||
      (group.name === "primitive" ? "Of rank 0" : "All ranks together")), wide: 7 });

  // ---- the charts that depend on what was varied ---------------------------------------------

  lf.over_charts = function (group) {
    const what = lf.timed(group) || "By lock";
    const axes = [contention_axis,
      ...group.pickers.filter(({ key }) => key !== "procs").map(setting_axis),
      ...lf.distinct(group.series.flatMap((one) => one.fields.map(([name]) => name)))
        .filter((name) => name !== "levels").map(parameter_axis)]
      .filter((x) => has_line(group, x));
    // Contention says what the number of locks means.
    const shown = axes.includes(contention_axis)
      ? axes.filter(({ id }) => id !== "over-locks") : axes;
    const charts = shown.map((x) => over_chart(group, x, what));
    return [...(group.name === "mix" ? [lf.quartiles_chart] : []), ...charts]
      .map((chart, i) => ({ ...chart, wide: i % 2 ? 5 : 7 }));
  };
})(lockflight);
