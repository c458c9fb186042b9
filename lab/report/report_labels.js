// The text that our additions to Chart.js write into charts: the names of lines and the numbers at
// bars. Labels that would overlap move apart.
"use strict";

(function (lf) {
  const text_size = 11.5;

  // All text that a plugin writes, with its place: chart.texts is what the page's tests look at.
  function write(chart, text, x, y, { color, bold, halo }) {
    const { ctx } = chart;
    ctx.font = `${bold ? "bold " : ""}${text_size}px ${Chart.defaults.font.family}`;
    ctx.textBaseline = "middle";
    if (halo) {
      ctx.strokeStyle = halo;
      ctx.lineWidth = 4;
      ctx.lineJoin = "round";
      ctx.strokeText(text, x, y);
    }
    ctx.fillStyle = color;
    ctx.fillText(text, x, y);
    chart.texts.push({ text, left: x, right: x + ctx.measureText(text).width, middle: y });
  }

  const texts = { id: "texts", beforeDraw(chart) { chart.texts = []; } };

  const measured = document.createElement("canvas").getContext("2d");
  function text_width(text) {
    measured.font = `bold ${text_size}px ${Chart.defaults.font.family}`;
    return measured.measureText(text).width;
  }

  // A label that is too long loses its middle: the end of a name or of a value is what differs.
  lf.shortened = (label, most = 20) => (label.length > most
    ? `${label.slice(0, Math.ceil(most / 2) - 1)}…${label.slice(-Math.floor(most / 2))}` : label);

  // A series' label beside a chart. The names of its parameters are left out where they do not fit:
  // the legend has them.
  function short_of({ lock, label, fields = [] }) {
    return lf.shortened(label.length > 20 ? [lock, ...fields.map(([, value]) => value)].join(" ")
      : label);
  }

  // Moves labels apart that would overlap. Labels that touch form a block around the middle of their
  // places, within the chart.
  const label_height = 14;
  function spread_labels(labels, top, bottom) {
    labels.sort((a, b) => a.y - b.y);
    const blocks = [];
    const start_of = ({ ones, sum }) => Math.max(top,
      Math.min(sum / ones.length, bottom - label_height * (ones.length - 1)));
    for (const one of labels) {
      let block = { ones: [one], sum: one.y };
      for (let before = blocks[blocks.length - 1]; before &&
          start_of(before) + label_height * before.ones.length > start_of(block);
        before = blocks[blocks.length - 1]) {
        blocks.pop();
        // The sum is of the places that the labels would give to the first of the block.
        block = { ones: [...before.ones, ...block.ones],
          sum: before.sum + block.sum - label_height * before.ones.length * block.ones.length };
      }
      blocks.push(block);
    }
    for (const block of blocks) {
      block.ones.forEach((one, i) => { one.at = start_of(block) + label_height * i; });
    }
  }

  const drawn_lines = (chart) => chart.getSortedVisibleDatasetMetas()
    .map((meta) => ({ meta, set: chart.data.datasets[meta.index] }))
    .filter(({ meta, set }) => meta.data.length && set.showLine !== false);

  // The names of the lines: at their ends, in a column to the right of the chart.
  const end_labels = {
    id: "end_labels",
    afterDatasetsDraw(chart, _, options) {
      if (!options.color) return;
      const { ctx, chartArea: area } = chart;
      const labels = drawn_lines(chart).map(({ meta, set }) => {
        const { x, y } = meta.data[meta.data.length - 1];
        return { set, x, y };
      });
      spread_labels(labels, area.top + 4, area.bottom - 4);
      ctx.save();
      for (const { set, x, y, at } of labels) {
        ctx.strokeStyle = set.borderColor;
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.moveTo(x + 6, y);
        ctx.lineTo(area.right + 8, y);
        ctx.lineTo(area.right + 20, at);
        ctx.stroke();
        write(chart, set.short, area.right + 24, at,
          { color: options.color, bold: set.is_own });
      }
      ctx.restore();
    },
  };

  // The room that the names at the ends of lines take beside the chart, and above each other.
  const end_room = (sets) =>
    32 + Math.max(0, ...sets.map(({ short }) => text_width(short)));
  const line_height = (sets) => Math.max(340, 90 + 18 * sets.length);

  // The names of lines that all rise from the bottom to the top: on the lines, each at another
  // height, from the leftmost line to the rightmost one.
  const inner_labels = {
    id: "inner_labels",
    afterDatasetsDraw(chart, _, options) {
      if (!options.color) return;
      const { ctx, chartArea: area } = chart;
      const lines = drawn_lines(chart).sort((a, b) => a.meta.data[0].x - b.meta.data[0].x);
      const step = (area.bottom - area.top - 16) / Math.max(1, lines.length);
      const labels = lines.map(({ meta, set }, i) => ({ meta, set,
        y: Math.max(area.bottom - 8 - step * (i + 0.5), meta.data[meta.data.length - 1].y) }));
      spread_labels(labels, area.top + 8, area.bottom - 8);
      ctx.save();
      for (const { meta, set, at } of labels) {
        const above = meta.data.find(({ y }) => y <= at) || meta.data[meta.data.length - 1];
        const x = Math.min(above.x + 7, chart.width - text_width(set.short) - 4);
        write(chart, set.short, x, at, { color: options.color, bold: set.is_own, halo: options.halo });
      }
      ctx.restore();
    },
  };

  // Ends of the bars, in words: the eye need not travel to the axis. A stack has one amount.
  const value_labels = {
    id: "value_labels",
    afterDatasetsDraw(chart, _, options) {
      if (!options.format) return;
      chart.ctx.save();
      for (let i = 0; i < chart.data.labels.length; ++i) {
        const ends = new Map();
        for (const meta of chart.getSortedVisibleDatasetMetas()) {
          const dataset = chart.data.datasets[meta.index];
          if (dataset.stack === "aside" || (dataset.data[i] ?? null) === null) continue;
          const end = ends.get(dataset.stack) || { total: 0, x: 0, y: meta.data[i].y };
          end.total += dataset.data[i];
          end.x = Math.max(end.x, meta.data[i].x);
          ends.set(dataset.stack, end);
        }
        for (const [stack, { total, x, y }] of ends) {
          write(chart, options.format(total, i, stack), x + 6, y,
            { color: options.color, bold: options.own[i] });
        }
      }
      chart.ctx.restore();
    },
  };

  Chart.register(texts, value_labels, end_labels, inner_labels);

  lf.labels = { text_size, write, text_width, short_of, end_room, line_height };
})(lockflight);
