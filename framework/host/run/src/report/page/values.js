// Writes the values of the document as text and as elements, see blocks.h. Unknown is a dash.
const report = JSON.parse(document.getElementById("report-document").textContent);
const DASH = "–";
const isNumber = (value) => typeof value === "number";
const whole = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, "\u202F");
const signed = (text) => text.replace(/^-/, "−");

// Four decimals for everyday sizes, an exponent beyond.
function number(value) {
  if (!isNumber(value)) return DASH;
  const size = Math.abs(value);
  return signed(size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(3) : value.toFixed(size >= 1000 ? 1 : 4));
}
// As short as it stays readable: for charts.
function short(value, digits = 5) {
  if (!isNumber(value)) return "not a number";
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(digits));
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? rounded.toExponential() : String(rounded);
}
// A count may have become a fraction through weights.
function count(value) {
  if (!isNumber(value)) return DASH;
  const rounded = Math.round(value);
  return Math.abs(value - rounded) < 1e-9 && Math.abs(rounded) < 1e15 ? signed(whole(String(rounded))) : number(value);
}
function seconds(value) {
  if (!isNumber(value)) return DASH;
  if (value < 59.95) return value.toFixed(value < 1 ? 2 : 1) + " s";
  const full = Math.round(value);
  const two = (part) => String(Math.floor(part)).padStart(2, "0");
  return full < 3600 ? Math.floor(full / 60) + " min " + two(full % 60) + " s" : Math.floor(full / 3600) + " h " + two((full % 3600) / 60) + " min";
}
function bytes(value) {
  if (!isNumber(value)) return DASH;
  const unit = ["GiB", "MiB", "KiB"].findIndex((unused, i) => value >= 1024 ** (3 - i));
  return unit < 0 ? value + " bytes" : (value / 1024 ** (3 - unit)).toFixed(1) + " " + ["GiB", "MiB", "KiB"][unit];
}
const share = (value) => (isNumber(value) ? (100 * value).toFixed(1) + " %" : DASH);
// Text without quotes, a component as "sgd: momentum 0.9", of a list of components how many.
function setting(value) {
  if (typeof value === "string") return value;
  if (isNumber(value) && !Number.isInteger(value)) return String(Number(value.toPrecision(6)));
  if (!value || !value.use) return JSON.stringify(value);
  const hasComponents = (list) => Array.isArray(list) && list.some((one) => one && typeof one === "object" && !Array.isArray(one));
  const parameters = Object.entries(value).filter(([key, one]) => key !== "use" && one !== null)
    .map(([key, one]) => key + " " + (hasComponents(one) ? "of " + one.length : setting(one)));
  return parameters.length ? value.use + ": " + parameters.join(", ") : value.use;
}
function shape(extents) {
  if (Array.isArray(extents)) return extents.map(setting).join(" × ") || "1";
  if (extents === null || typeof extents !== "object") return setting(extents);
  return Object.entries(extents).map(([port, one]) => port + ": " + shape(one)).join(", ");
}

// An element; attributes that are undefined or false are left out, functions listen to events.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}
const writers = { number, count, seconds, bytes, share, setting, shape };
const marked = {
  soft: ({ soft, title }) => element("span", { class: "spread", title }, inline(soft)),
  code: ({ code }) => element("code", {}, inline(code)),
  path: ({ path }) => joined(path.split(/(?<=\.)/), (word) => [word, element("wbr")]),
  mean: ({ mean, deviation }) => joined([number(mean), deviation === null ? "" : element("small", { class: "spread" }, " ± " + number(deviation))]),
  unknown: ({ unknown }) => element("span", { title: unknown, "aria-label": "unknown: " + unknown }, DASH),
};
function joined(parts, make = (part) => [part]) {
  const all = document.createDocumentFragment();
  all.append(...parts.flatMap(make));
  return all;
}
// A value as a node; `as` names how to write a bare number or null.
function inline(value, as = "number") {
  if (typeof value === "string") return document.createTextNode(value);
  if (Array.isArray(value)) return joined(value.map((part) => inline(part)));
  if (value === null || typeof value !== "object") return document.createTextNode(writers[as](value));
  const [kind] = Object.keys(value).filter((key) => key in marked || key in writers);
  return marked[kind] ? marked[kind](value) : document.createTextNode(writers[kind](value[kind]));
}

