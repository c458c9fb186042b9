// The elements that the pages share: buttons, legends, tables that show that they scroll, and charts
// in cards. All text goes in as text nodes.
"use strict";

(function (lf) {
  lf.element = function (tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // Buttons of which one is pressed.
  lf.segmented = function (label, options, initial, choose) {
    const group = lf.element("div", { className: "segmented" });
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    const buttons = options.map(([value, text]) => {
      const button = lf.element("button", { type: "button", textContent: text });
      button.onclick = () => { press(value); choose(value); };
      group.append(button);
      return [value, button];
    });
    function press(wanted) {
      for (const [value, button] of buttons) {
        button.setAttribute("aria-pressed", String(value === wanted));
      }
    }
    press(initial);
    return { group, press };
  };

  // A legend entry that switches its series or part off and on.
  lf.chip = function (text, swatch, is_on, toggle) {
    const button = lf.element("button", { type: "button", className: "chip" }, swatch,
      lf.element("span", { textContent: text }));
    const show = () => button.setAttribute("aria-pressed", String(is_on()));
    button.onclick = () => { toggle(); show(); };
    show();
    return { button, show };
  };

  lf.square = function (color) {
    const swatch = lf.element("span", { className: "swatch" });
    swatch.style.background = color;
    return swatch;
  };

  // A legend entry of a lock, in the colour of its lines; those of the project are bold.
  lf.lock_chip = function (one, theme, is_on, toggle) {
    const swatch = lf.square(theme.style(one).color);
    const made = lf.chip(one.label, swatch, is_on, toggle);
    made.button.classList.toggle("own", lf.is_own(one.lock));
    return { ...made, repaint: (fresh) => { swatch.style.background = fresh.style(one).color; } };
  };

  // A table wider than its frame has a shadow on each side where there is more, and a button.
  function show_that_it_scrolls(wrap) {
    const frame = lf.element("div", { className: "scrolls" });
    wrap.replaceWith(frame);
    const more = lf.element("button", { type: "button", className: "more",
      textContent: "more columns →" });
    more.onclick = () => wrap.scrollBy({ left: wrap.clientWidth * 0.7 });
    frame.append(more, wrap);
    const look = () => {
      const hidden = wrap.scrollWidth - wrap.clientWidth;
      frame.classList.toggle("wide", hidden > 1);
      frame.classList.toggle("more-left", wrap.scrollLeft > 1);
      frame.classList.toggle("more-right", wrap.scrollLeft < hidden - 1);
    };
    wrap.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(wrap);
    look();
  }

  // ---- charts whose data are fixed -----------------------------------------------------------

  const charts = [];

  lf.title_of = (card) => card.querySelector(".titles").innerText.replace(/\s+/g, " ");

  // A chart in a card. `build` makes its data and options of a view; `series` share the colours.
  lf.add_chart = function (card, { series, type, height, label, build }) {
    const place = card.querySelector(".plot");
    place.style.height = `${height}px`;
    const canvas = lf.element("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
    place.append(canvas);
    const built = () => build({ theme: lf.read_theme(series) });
    charts.push({ chart: new Chart(canvas, { type, ...built() }), built });
  };

  lf.repaint_charts = function () {
    for (const { chart, built } of charts) {
      Object.assign(chart, built());
      chart.update();
    }
  };

  // Sets data-charts, for which tests and printers wait, and repaints when the colour scheme changes.
  lf.charts_are_drawn = function (also_repaint = () => {}) {
    document.documentElement.dataset.charts = String(charts.length);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      lf.repaint_charts();
      also_repaint();
    });
  };

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  document.querySelectorAll(".table-wrap").forEach(show_that_it_scrolls);
})(lockflight);
