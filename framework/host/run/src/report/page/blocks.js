// Makes the elements of the blocks. `controls` is the place beside a card's title.
const blocks = {
  card({ title, blocks, folded: isFolded }) {
    const controls = element("div", { class: "chips" });
    const content = () => blocks.map((block) => make(block, controls, title));
    if (isFolded) return element("section", { class: "card" }, folded(inline(title), content, ""));
    const shown = content();
    const heading = element("h2", {}, inline(title));
    const head = controls.hasChildNodes() ? element("div", { class: "chart-head" }, heading, controls) : heading;
    return element("section", { class: "card" }, head, ...shown);
  },
  group: ({ blocks }) => element("div", { class: "pair" }, ...blocks.map((block) => make(block))),
  heading: ({ text }) => element("h3", {}, inline(text)),
  note: ({ text }) => element("p", { class: "note" }, inline(text)),
  list: ({ items }) => element("ul", { class: "plain" }, ...items.map((item) => element("li", {}, inline(item)))),
  code: ({ text }) => element("pre", {}, text),
  picture: ({ svg, label }) => scrolling(element("img", { class: "model", alt: label, src: "data:image/svg+xml," + encodeURIComponent(svg) })),
  gallery: ({ pictures }) => element("div", { class: "slices gallery" }, ...pictures.map(({ picture, label, is_wrong }) =>
    element("figure", { class: is_wrong ? "wrong" : "" }, element("img", { src: picture, alt: "" }), element("figcaption", {}, inline(label))))),
  effects({ rows, shown }) {
    const most = Math.max(...rows.map(({ value }) => (isNumber(value) ? value : 0)));
    const line = ({ label, value, deviation }) => element("tr", {}, element("th", { scope: "row" }, inline(label)),
      element("td", {}, strip([["", 0, most > 0 && value > 0 ? value / most : 0]])), element("td", {}, inline(isNumber(deviation) ? { mean: value, deviation } : value)));
    const bars = (some) => element("table", { class: "bars" }, element("tbody", {}, ...some.map(line)));
    const rest = rows.slice(shown);
    return joined([bars(rows.slice(0, shown)), rest.length ? folded(rest.length + " more columns", () => [bars(rest)]) : ""]);
  },
  tiles: ({ tiles }) => element("div", { class: "tiles" }, ...tiles.map(({ label, value, detail }, i) =>
    element("div", { class: i ? "tile" : "tile main" }, element("span", {}, inline(label)),
      element("b", {}, inline(value), detail ? element("small", {}, " ", inline(detail)) : "")))),
  facts: ({ rows }) => element("table", { class: "text facts" }, element("tbody", {}, ...rows.map(([label, value]) =>
    element("tr", {}, element("th", { scope: "row" }, inline(label)), element("td", {}, inline(value)))))),
  table({ columns, rows, shown = rows.length, noun }) {
    const first = rows.slice(0, shown);
    const rest = rows.slice(shown);
    const more = rest.length ? folded(rest.length + (shown ? " more " : " ") + noun, () => [grid(columns, rest)]) : "";
    return joined([first.length ? grid(columns, first) : "", more]);
  },
  numbers,
  confusion,
  errors,
  data: (block) => dataRecord(block),
  structure: (block) => structure(block),
  adaptation: (block) => adaptation(block),
  device: (block) => device(block),
  environment: (block) => environment(block),
  search: () => searchCards(),
  bars: ({ bars }) => element("table", { class: "bars" }, element("tbody", {}, ...bars.map(({ label, share: part }) =>
    element("tr", {}, element("th", { scope: "row" }, inline(label)), element("td", {}, strip([["", 0, part]])), element("td", {}, share(part)))))),
  stretches,
  fits,
  epochs,
  trials,
  chart(block, controls, title) {
    const canvas = element("canvas", { role: "img", "aria-label": element("b", {}, inline(title)).textContent });
    return charts[block.chart](canvas, block, controls) || element("div", { class: "chart" }, canvas);
  },
};
const make = (block, controls, title) => blocks[block.block](block, controls, title);

const caption = (text) => element("p", { class: "note" }, text);
const scrolling = (...content) => element("div", { class: "scroll tall" }, ...content);

// A column is its name, or an object with it.
function grid(columns, rows) {
  const known = columns.map((column) => (column && column.name !== undefined ? column : { name: column }));
  const cell = (value, i) => element(i ? "td" : "th", { class: known[i] && known[i].left ? "left" : undefined, scope: i ? undefined : "row" },
    inline(value, known[i] && known[i].as));
  const head = known.map(({ name, left }) => element("th", { scope: "col", class: left ? "left" : undefined }, inline(name)));
  return scrolling(element("table", {}, element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map(cell))))));
}

// The content is made when it is opened.
function folded(title, content, look = "inner") {
  const details = element("details", { class: look }, element("summary", {}, title));
  details.addEventListener("toggle", () => details.append(...content()), { once: true });
  return details;
}

// A table of the result. In a column of whole numbers these are counts; in others each has its decimals.
function numbers({ head, row_labels, column_labels, values }) {
  const columns = values[0].map((unused, i) => ({ name: setting((column_labels && column_labels[i]) ?? ""), as: values.every((row) => Number.isInteger(row[i])) ? "count" : "number" }));
  const labelled = row_labels && row_labels.length > 0;
  return blocks.table({ columns: labelled ? [head, ...columns] : columns, noun: "rows", shown: 200,
    rows: labelled ? values.map((row, i) => [setting(row_labels[i] ?? String(i)), ...row]) : values });
}

function confusion({ row_labels, column_labels, values }) {
  const label = (labels, i) => setting((labels && labels[i]) ?? String(i));
  const withShares = values.length <= 20;
  const line = (cells, i) => {
    const total = cells.reduce((sum, cell) => sum + (cell || 0), 0);
    return element("tr", {}, element("th", { scope: "row" }, label(row_labels, i)), ...cells.map((cell, j) => {
      const part = total > 0 ? (cell || 0) / total : 0;
      const level = Math.ceil(Math.min(part, 1) * 5 - 1e-9);
      const look = level > 0 ? (i === j ? "good-" : "bad-") + level + (level > 3 ? " heavy" : "") : undefined;
      return element("td", { class: look }, count(cell || 0), withShares ? element("small", {}, Math.round(part * 100) + " %") : "");
    }), element("td", { class: "total" }, count(total)));
  };
  const head = element("tr", {}, element("th", { class: "axis" }, "actual ↓ predicted →"),
    ...values[0].map((unused, j) => element("th", { scope: "col" }, label(column_labels, j))), element("th", { class: "axis" }, "rows"));
  return joined([caption("Rows are the actual classes, columns the predicted ones; percentages are of the row."),
    scrolling(element("table", { class: "confusion" }, element("thead", {}, head), element("tbody", {}, ...values.map(line))))]);
}

// Stretches of a line: [class, begin, end] in shares of its length.
function strip(stretches, label) {
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const hidden = label ? { role: "img", "aria-label": label } : { "aria-hidden": true };
  const strip = svg("svg", { class: "strip", viewBox: "0 0 1000 12", preserveAspectRatio: "none", ...hidden });
  strip.append(...stretches.map(([look, begin, end]) =>
    svg("rect", { class: look, x: 1000 * begin, width: Math.max(1000 * (end - begin), end > begin ? 1.5 : 0), height: 12 })));
  return strip;
}

function stretches({ plan: { folds, steps, first, last } }) {
  const parts = Object.entries({ training: "trains", validation: "validates", test: "tests" }).filter(([key]) => folds.some((fold) => fold[key]));
  const spoken = (fold) => parts.filter(([key]) => fold[key])
    .map(([key, verb]) => verb + " on " + fold[key].map(([begin, end]) => begin + " to " + end).join(", ")).join("; ");
  const line = (fold) => element("tr", {}, element("th", { scope: "row" }, fold.name), element("td", {},
    strip(parts.flatMap(([key]) => (fold[key] || []).map(([begin, end]) => [key, begin / steps, end / steps])), spoken(fold))));
  return joined([
    element("p", { class: "note keys" }, ...parts.map(([key, verb]) => element("span", { class: "key" }, element("i", { class: key }), verb))),
    element("table", { class: "folds" }, element("tbody", {}, ...folds.map(line),
      element("tr", { class: "axis" }, element("th"), element("td", {}, element("span", {}, first), element("span", {}, last)))))]);
}

// The epochs of every training, as far as the document has them.
function epochs() {
  const { columns, fits } = report.epochs;
  const several = fits.length > 1;
  const heads = columns.map((name, i) => ({ name, as: i ? "number" : "setting" }));
  const rows = fits.flatMap((fit) => fit.rows.map((row, i) => [...(several ? [fit.name] : []), i === fit.best ? row[0] + " (best)" : row[0], ...row.slice(1)]));
  const all = fits.reduce((sum, fit) => sum + fit.epochs, 0);
  const table = grid(several ? [{ name: "training" }, ...heads] : heads, rows);
  if (rows.length === all) return table;
  return joined([caption(count(rows.length) + " of " + count(all) + " epochs are shown; history.csv beside this file has all."), table]);
}

function saveAs(name, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

