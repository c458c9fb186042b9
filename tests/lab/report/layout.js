// Returns what is wrong with the layout of the page as it is shown now, as a list of sentences: text
// or boxes beyond the viewport, text over other text, rows of cards that are not full, logarithmic
// axes with fewer than two numbers, and colours with less contrast than WCAG's level AA asks for.
const problems = [];
const said = (text) => text.trim().replace(/\s+/g, " ").slice(0, 40);

// ---- contrast ----

function parts(color) {
  const [red, green, blue, alpha = 1] = color.match(/[\d.]+/g).map(Number);
  return [red, green, blue, alpha];
}

function over(front, back) {
  const alpha = front[3];
  return [0, 1, 2].map((i) => alpha * front[i] + (1 - alpha) * back[i]).concat(1);
}

function luminance(color) {
  const [red, green, blue] = color.slice(0, 3).map((byte) => {
    const c = byte / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function background_of(element) {
  if (!element) return [255, 255, 255, 1];
  const own = parts(getComputedStyle(element).backgroundColor);
  return own[3] === 1 ? own : over(own, background_of(element.parentElement));
}

const opacity_of = (element) => (element
  ? Number(getComputedStyle(element).opacity) * opacity_of(element.parentElement) : 1);

function check_contrast(what, front, back, least) {
  const found = contrast(over(front, back), back);
  if (found < least) problems.push(`${what} has a contrast of ${found.toFixed(2)}, not ${least}`);
}

function check_text_contrast(text, element, style) {
  const color = parts(style.color);
  color[3] *= opacity_of(element);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  check_contrast(`"${said(text)}"`, color, background_of(element), large ? 3 : 4.5);
}

// ---- places ----

const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 ||
  a.bottom <= b.top + 1 || b.bottom <= a.top + 1;

function check_overlaps(boxes) {
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((one, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < one.bottom; ++j) {
      if (!apart(one, boxes[j])) problems.push(`"${one.text}" is over "${boxes[j].text}"`);
    }
  });
}

// A table in a frame may be wider than the frame, and its head covers rows: the frame counts.
const scrolls = (element) => element.closest(".table-wrap, .segmented, pre") !== null;

function check_cell(cell, range) {
  if (!cell) return;
  const { left, right } = cell.getBoundingClientRect();
  for (const text of range.getClientRects()) {
    if (text.left < left - 1 || text.right > right + 1) {
      problems.push(`"${said(range.toString())}" is wider than its cell`);
    }
  }
}

function check_rows() {
  for (const cards of document.querySelectorAll(".cards")) {
    const ends = new Map();  // of each row, by its top
    for (const card of cards.children) {
      const { top, right } = card.getBoundingClientRect();
      ends.set(Math.round(top), Math.max(right, ends.get(Math.round(top)) || 0));
    }
    const { right } = cards.getBoundingClientRect();
    const row = [...ends.values()].findIndex((end) => end < right - 2);
    if (row >= 0) problems.push(`row ${row + 1} of cards is not full`);
  }
}

function check_page() {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    problems.push("the page is wider than its window");
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [];
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, template, noscript, .skip") ||
        !element.checkVisibility({ checkVisibilityCSS: true })) continue;
    check_text_contrast(node.data, element, getComputedStyle(element));
    range.selectNodeContents(node);
    check_cell(element.closest("td, th"), range);
    if (scrolls(element)) continue;
    for (const { left, right, top, bottom } of range.getClientRects()) {
      if (left < -1 || right > width + 1) problems.push(`"${said(node.data)}" is beyond the window`);
      if (right > left) boxes.push({ text: said(node.data), left, right, top, bottom });
    }
  }
  const frames = ".card, .card *, .chip, .segmented, .table-wrap";
  for (const element of document.querySelectorAll(frames)) {
    const { left, right } = element.getBoundingClientRect();
    if (scrolls(element.parentElement) || right === 0) continue;
    if (left < -1 || right > width + 1) {
      problems.push(`<${element.tagName} class="${element.className}"> is beyond the window`);
    }
  }
  check_overlaps(boxes);
}

// ---- charts ----

function check_colours() {
  const style = getComputedStyle(document.documentElement);
  const surface = document.createElement("span");
  document.body.append(surface);
  const read = (name) => {
    surface.style.color = style.getPropertyValue(name);
    return parts(getComputedStyle(surface).color);
  };
  const back = read("--surface");
  for (const name of ["--ink", "--muted"]) check_contrast(name, read(name), back, 4.5);
  for (const name of [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `--lock-${n}`).concat("--plain-bar")) {
    check_contrast(name, read(name), back, 3);
  }
  surface.remove();
}

// The numbers at an axis, which Chart.js writes.
function numbers_of(scale, name) {
  scale.ctx.font = `11.5px ${Chart.defaults.font.family}`;
  return scale.ticks.map(({ label }, i) => [label, i]).filter(([label]) => label).map(([label, i]) => {
    const at = scale.getPixelForTick(i);
    const half = scale.isHorizontal() ? scale.ctx.measureText(label).width / 2 : 6;
    const [start, end] = [at - half, at + half];
    const text = `${name}${label}`;
    return scale.isHorizontal() ? { text, left: start, right: end, top: 0, bottom: 12 }
      : { text, left: 0, right: 12, top: start, bottom: end };
  });
}

function check_chart(canvas) {
  const chart = Chart.getChart(canvas);
  const name = `${canvas.closest(".card").querySelector("h3").textContent}: `;
  const texts = (chart.texts || []).map(({ text, left, right, middle }) =>
    ({ text: name + text, left, right, top: middle - 6, bottom: middle + 6 }));
  for (const { text, left, right, top, bottom } of texts) {
    if (left < -1 || right > chart.width + 1 || top < -1 || bottom > chart.height + 1) {
      problems.push(`"${text}" is beyond its chart`);
    }
  }
  check_overlaps(texts);
  for (const scale of Object.values(chart.scales)) {
    const numbers = numbers_of(scale, name);
    check_overlaps(numbers);
    if (scale.type === "logarithmic" && scale.min < scale.max && numbers.length < 2) {
      problems.push(`${name}an axis has ${numbers.length} numbers`);
    }
  }
}

check_page();
check_rows();
check_colours();
document.querySelectorAll("canvas").forEach(check_chart);
return [...new Set(problems)];
