// The page itself: builds a section for each group, stores the reader's choices, draws the charts,
// sorts and filters the table. All text from the document goes in as text nodes.
"use strict";

(function (lf) {
  const { element, segmented, chip, square } = lf;
  const root = document.documentElement;
  const bench = lf.load();
  const groups = lf.groups(bench.runs);
  const read_theme = () => lf.read_theme(groups.flatMap(({ series }) => series));
  const hidden = new Set();  // labels of series; the same in all sections
  const cards = [];
  const drawn = new Set();  // canvases

  const template = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

  // ---- charts ------------------------------------------------------------------------------

  // data-charts appears when the last of them has been drawn: tests and printers wait for it.
  function tell_drawn() {
    if (drawn.size === cards.length) root.dataset.charts = String(drawn.size);
  }

  const drawn_counter = {
    id: "drawn_counter",
    afterDraw(chart) {
      drawn.add(chart.canvas);
      tell_drawn();
    },
  };

  function make_view(card, theme) {
    const { section, kind } = card;
    return {
      theme, group: section.group, picked: section.picked, off: card.off, pick: card.pick,
      parts: kind.parts ? kind.parts(section.group) : [],
      shown: section.group.series.filter((one) => !hidden.has(one.label)),
      choose: section.choose,
    };
  }

  const what = ({ kind, section, pick }) =>
    (typeof kind.what === "function" ? kind.what(section.group, pick) : kind.what);

  function draw(card, theme) {
    const built = card.kind.build(make_view(card, theme));
    card.title.textContent = built.title || card.kind.title;
    card.caption.textContent = what(card) +
      lf.where(card.section.group, card.section.picked, built.free || []) + (built.note || "");
    card.plot.style.minHeight = `${built.height}px`;
    card.canvas.setAttribute("aria-label", built.summary);
    // Other settings may need bars instead of lines, and a chart cannot change its type.
    if (card.chart?.config.type !== built.type) {
      card.chart?.destroy();
      card.chart = new Chart(card.canvas,
        { type: built.type, data: built.data, options: built.options });
      return;
    }
    card.chart.data = built.data;
    card.chart.options = built.options;
    card.chart.update();
    card.chart.resize();
  }

  function redraw(which) {
    const theme = read_theme();
    for (const card of cards.filter(which || (() => true))) draw(card, theme);
  }

  function add_parts_legend(card, figure, theme) {
    const legend = element("div", { className: "legend parts" });
    legend.setAttribute("role", "group");
    legend.setAttribute("aria-label", "Parts: press to hide or show");
    for (const part of card.kind.parts(card.section.group)) {
      const swatch = square(part.color(theme));
      card.repaint.push((fresh) => { swatch.style.background = part.color(fresh); });
      const { button } = chip(part.label, swatch, () => !card.off.has(part.key), () => {
        if (!card.off.delete(part.key)) card.off.add(part.key);
        redraw((one) => one === card);
      });
      legend.append(button);
    }
    figure.insertBefore(legend, card.plot);
  }

  function add_card(section, kind, theme) {
    const figure = template("card-template");
    figure.style.setProperty("--wide", kind.wide);
    figure.dataset.chart = kind.id;
    const plot = figure.querySelector(".plot");
    const canvas = element("canvas");
    canvas.setAttribute("role", "img");
    plot.append(canvas);
    const card = { section, kind, plot, canvas, off: new Set(), pick: {}, repaint: [],
      title: figure.querySelector("h3"), caption: figure.querySelector("figcaption p") };
    for (const toggle of kind.toggles ? kind.toggles(section.group) : []) {
      card.pick[toggle.key] = toggle.initial;
      const { group } = segmented(`${kind.title || what(card)}: ${toggle.label}`, toggle.options,
        toggle.initial, (value) => {
          card.pick[toggle.key] = value;
          redraw((one) => one === card);
        });
      figure.querySelector(".toggles").append(group);
    }
    if (kind.parts) add_parts_legend(card, figure, theme);
    section.node.querySelector(".cards").append(figure);
    cards.push(card);
  }

  // ---- sections ----------------------------------------------------------------------------

  function write_lead(section) {
    const lead = section.node.querySelector(".lead");
    const { group, picked } = section;
    const won = lf.lead(group, picked, (one) => !hidden.has(one.label));
    lead.replaceChildren();
    if (!won) return;
    const strong = (text) => element("strong", { textContent: text });
    lead.append(`At ${lf.picked_text(group, picked)}, `, strong(won.best), won.least
      ? ` is the fastest: ${won.amount} in the median` : ` does the most: ${won.amount}`);
    if (won.next && won.ratio === "1") lead.append(", level with ", strong(won.next));
    else if (won.next && won.least) {
      lead.append("; ", strong(won.next), ` takes ${won.ratio} times as long`);
    }
    else if (won.next) lead.append(`, ${won.ratio} times as many as `, strong(won.next));
    lead.append(".");
    if (group.repeats > 1) lead.append(" Repeated runs show as the median one.");
  }

  function add_lock_legend(section, theme) {
    const legend = section.node.querySelector(".legend");
    const own_first = [...section.group.series]
      .sort((a, b) => lf.is_own(b.lock) - lf.is_own(a.lock));
    section.chips = own_first.map((one) => {
      const made = lf.lock_chip(one, theme, () => !hidden.has(one.label), () => {
        if (!hidden.delete(one.label)) hidden.add(one.label);
        for (const other of sections) {
          for (const each of other.chips) each.show();
          write_lead(other);
        }
        redraw();
      });
      section.repaint.push(made.repaint);
      legend.append(made.button);
      return made;
    });
  }

  // A picker for each setting that has several values.
  function add_pickers(section) {
    const { group } = section;
    const place = section.node.querySelector(".pick");
    const presses = [];
    section.choose = (key, value) => {
      section.picked = lf.picked_anew(group, section.picked, key, value);
      for (const press of presses) press();
      write_lead(section);
      redraw((card) => card.section === section);
    };
    for (const { key, label, values, text } of group.pickers) {
      if (values.length === 1) continue;
      const made = segmented(`${label} that the charts show`,
        values.map((value) => [value, text(value)]), section.picked[key],
        (value) => section.choose(key, value));
      presses.push(() => made.press(section.picked[key]));
      place.append(element("span", { textContent: label }), made.group);
    }
  }

  function add_section(group, index, theme) {
    const node = template("section-template");
    const section = { group, node, picked: lf.first_picked(group), repaint: [] };
    node.id = `group-${index + 1}`;
    const heading = node.querySelector("h2");
    heading.append(group.title);
    if (group.title !== group.name) {
      heading.append(" ", element("code", { textContent: group.name }));
    }
    heading.id = `${node.id}-title`;
    node.setAttribute("aria-labelledby", heading.id);
    node.querySelector(".what").textContent = group.facts.join(" · ");
    node.querySelector(".about").textContent = group.about;
    add_lock_legend(section, theme);
    add_pickers(section);
    write_lead(section);
    document.getElementById("sections").append(node);
    for (const kind of lf.charts_of(group)) add_card(section, kind, theme);
    return section;
  }

  function add_jump_list() {
    if (sections.length < 2) return;
    const nav = document.getElementById("jump");
    for (const { node, group } of sections) {
      const link = element("a", { href: `#${node.id}`, textContent: group.title });
      link.append(element("span", { textContent: group.facts[0] }));
      nav.append(link);
    }
    nav.append(element("a", { href: "#runs", textContent: "All runs" }));
    nav.hidden = false;
  }

  // ---- the table ---------------------------------------------------------------------------

  function compare(a, b, numeric) {
    if (a === b) return 0;
    if (a === "") return 1;
    if (b === "") return -1;
    return numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
  }

  function sort_by(table, index) {
    const heads = [...table.tHead.rows[0].cells];
    const numeric = heads[index].classList.contains("num");
    // Numbers start with the largest, as a reader looks for extremes; a second press turns round.
    const first = numeric ? "descending" : "ascending";
    const now = heads[index].getAttribute("aria-sort");
    const wanted = now === null ? first : now === "ascending" ? "descending" : "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[index].setAttribute("aria-sort", wanted);
    const sign = wanted === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [row.cells[index].dataset.key, row]);
    rows.sort(([a], [b]) => compare(a, b, numeric) * (a === "" || b === "" ? 1 : sign));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  function set_up_table() {
    const table = document.getElementById("table");
    [...table.tHead.rows[0].cells].forEach((head, index) => {
      head.querySelector("button").onclick = () => sort_by(table, index);
    });
    const filter = document.getElementById("filter");
    const output = document.getElementById("shown");
    filter.oninput = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = [...table.tBodies[0].rows];
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const left = rows.filter((row) => !row.hidden).length;
      output.textContent = left === rows.length
        ? `${left} run${left === 1 ? "" : "s"}` : `${left} of ${rows.length} runs`;
    };
    document.getElementById("download").onclick = () => {
      const text = JSON.stringify(bench, null, 2) + "\n";
      const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      element("a", { href: url, download: "lockflight-bench.json" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    };
  }

  // ---- start -------------------------------------------------------------------------------

  function repaint_all() {
    const theme = read_theme();
    for (const one of [...sections, ...cards]) for (const paint of one.repaint) paint(theme);
    redraw();
  }

  Chart.register(drawn_counter);

  const sections = [];
  const theme = read_theme();
  groups.forEach((group, i) => sections.push(add_section(group, i, theme)));
  add_jump_list();
  set_up_table();
  redraw();
  tell_drawn();

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint_all);
  // Paper is white, and Chart.js does not notice that it is narrower than the window.
  function print(now) {
    root.toggleAttribute("data-print", now);
    repaint_all();
    for (const card of cards) card.chart.resize();
  }
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})(lockflight);
