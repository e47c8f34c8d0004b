// Lays out records of the result that have a form of their own, as cards of other blocks.
const cardOf = (title, ...content) => blocks.card({ title, blocks: content.filter((block) => block && (!block.rows || block.rows.length)) });
const noteOf = (...text) => ({ block: "note", text });
const tableOf = (columns, rows, noun, shown) => ({ block: "table", columns, rows, noun, shown });
const sideBySide = (...cards) => element("div", { class: "pair" }, ...cards);

// Rows, columns with types and missing values, the balance of classes or the range of numbers. Of a stream, the first rows are described.
function dataRecord({ record: { rows, described_rows, inputs, targets } }) {
  const SHOWN = 12;
  const described = described_rows ?? rows ?? 0;
  const part = (of) => ({ share: described > 0 ? of / described : null });
  const columns = (inputs || []).flatMap((port) => port.columns || []).map(({ name, type, categories, missing }) => [name,
    categories === undefined ? type : [type, ", ", { count: categories }, " values"], missing > 0 ? [{ count: missing }, " ", { soft: part(missing) }] : "none"]);
  const target = ({ name, classes, numbers }) => (classes && classes.length
    ? tableOf(["class", "rows", "share"], classes.map((one) => [one.name, { count: one.rows }, part(one.rows)]), "classes", SHOWN)
    : tableOf(["target", "smallest", "mean", "largest"],
      (numbers || []).map((one, i) => [numbers.length === 1 ? name : name + "." + i, one.smallest, one.mean, one.largest]), "numbers", SHOWN));
  const facts = [["rows", isNumber(rows) ? { count: rows } : "a stream"], ...(described_rows === undefined ? [] : [["described here", ["the first ", { count: described }]]]),
    ...(inputs || []).map((port) => ["input " + port.name, { shape: port.shape }]), ...(targets || []).map((one) => ["target", one.name])];
  return sideBySide(cardOf("Data", { block: "facts", rows: facts }, tableOf(["column", "type", "missing"], columns, "columns", SHOWN)),
    ...(targets || []).map((one) => cardOf(targets.length === 1 ? "Target" : "Target " + one.name, target(one))));
}

// The operations that a search of the model's structure selected, place by place.
function structure({ record }) {
  const operations = [...new Set(record.choices.flatMap(({ weights }) => Object.keys(weights)))];
  const rows = record.choices.map(({ name, chosen, weights }) =>
    [name, chosen ?? "left out", ...operations.map((one) => (isNumber(weights[one]) ? { share: weights[one] } : ""))]);
  return cardOf("Structure: " + record.structure, tableOf(["place", { name: "chosen", left: true }, ...operations], rows),
    noteOf("Weights of the operations in the mixture at the end. ", { code: "architecture.json" }, " beside this file is the document of the selected network: ",
      { code: "workflow-runner run architecture.json" }, " trains it from scratch."));
}

// How a model that was tested on each batch before it was trained on it followed its task.
function adaptation({ record }) {
  const { windows, changes = [], recovery: { metric, threshold, share: fraction }, metric_list = [], variances } = record;
  const names = [...new Set([metric, ...metric_list.map((one) => one.name), "loss"])];
  const valueIn = (numbers, name) => (numbers ? (name === "loss" ? numbers.loss : numbers.metrics[name]) ?? null : null);
  const passed = (count) => (count === null ? "never" : { count });
  const goals = [...(isNumber(threshold) ? [[["windows to ", threshold], "windows_to_threshold"]] : []),
    ...(isNumber(fraction) ? [[["windows to ", { share: fraction }, " of before"], "windows_to_share"]] : [])];
  const change = (one) => [one.task, { count: one.row }, ...(one.window === null ? ["not reached", "", ...goals.map(() => "")]
    : [valueIn(one.before, metric), valueIn(one.after, metric), ...goals.map(([, key]) => passed(one[key]))])];
  const deviation = (variance) => (isNumber(variance) ? Math.sqrt(variance) : null);
  return joined([
    cardOf(["Tested, then trained on, in windows of ", { count: record.window_rows }, " rows"], { block: "chart", chart: "timeline", names, windows, changes, valueIn }),
    changes.length ? cardOf("Changes of the task",
      tableOf(["task", "from row", metric + " before", metric + " after", ...goals.map(([title]) => title)], changes.map(change), "changes", 50),
      noteOf("Before: the window before the one with the change; after: the one with the change. Windows are counted from that one, 0 for itself, up to the next change.")) : "",
    cardOf("Over the windows", tableOf(["", "mean", "deviation", "variance"], names.map((name) =>
      [name, valueIn(record, name), deviation(valueIn(variances, name)), valueIn(variances, name)])),
    noteOf("Deviation and variance of the population of windows: the smaller, the more stable.")),
  ]);
}

// The work of a device that is not the CPU.
function device({ record: one }) {
  const rows = [["device", one.name], ["peak memory", { bytes: one.memory_peak_bytes }], ["reserved memory", { bytes: one.memory_reserved_bytes }],
    ["copies to the device", [{ count: one.copies_to_device }, ", ", { bytes: one.bytes_to_device }]],
    ["copies to the host", [{ count: one.copies_to_host }, ", ", { bytes: one.bytes_to_host }]],
    ["waits of the host", [{ count: one.waits }, ", ", { seconds: one.seconds_waiting }]]];
  if (one.busy_seconds > 0) {
    rows.push(["busy with steps", { seconds: one.busy_seconds }], ["idle between steps", [{ seconds: one.idle_seconds }, ", ", { share: one.idle_fraction }]]);
  }
  return cardOf("Device", { block: "facts", rows });
}

// "peak_memory_bytes" is shown as "peak memory".
function environment({ record }) {
  const rows = Object.entries(record).filter(([key]) => key !== "plugins").map(([key, value]) => {
    const isSize = key.endsWith("_bytes") && isNumber(value);
    return [(isSize ? key.slice(0, -"_bytes".length) : key).replaceAll("_", " "), isSize ? { bytes: value } : { setting: value }];
  });
  const plugins = (record.plugins || []).map(({ id, version, build_id: build }) => [id, version, { code: String(build).slice(0, 16) }]);
  return cardOf("Environment", { block: "facts", rows }, tableOf(["plugin", "version", "build"], plugins, plugins.length === 1 ? "plugin" : "plugins", 0));
}

// Charts and tables of the trials of a search.
function searchCards() {
  const several = search.objectives.length > 1;
  const { importances, pareto, order } = search;
  const chart = (kind) => ({ block: "chart", chart: kind });
  const history = all.length && search.objectives.length ? cardOf("Optimization history", chart("history")) : "";
  const front = { block: "trials", places: pareto, shown: pareto.length };
  const frontNote = noteOf("No other trial is as good in every objective and better in one.");
  return joined([
    importances.length ? sideBySide(history, importanceCard(several)) : history,
    several && pareto.length && search.objectives.length === 2 ? cardOf("Pareto front", chart("pareto")) : "",
    several && pareto.length ? cardOf(search.objectives.length === 2 ? "Trials of the Pareto front" : "Pareto front", front, frontNote) : "",
    ...(importances.length ? [cardOf("Parallel coordinates", chart("parallel")), cardOf("Slices", chart("slices"))] : []),
    search.curves.some((curves) => curves.length) ? cardOf("Learning curves of the trials", chart("learning")) : "",
    all.length ? cardOf("Trials", { block: "trials", places: order, shown: 50, csv: "trials.csv" }) : "",
  ]);
}
function importanceCard(several) {
  const ENOUGH = 5;  // the distribution of fewer best trials is a guess (the advice of Optuna's documentation)
  const condition = ({ parent, choices }) => ({ soft: ["if " + search.paths[parent] + " is " + choices.map((one) => setting(search.dimensions[parent].choices[one])).join(" or ")] });
  const label = (d) => [{ path: search.paths[d] }, ...(search.dimensions[d].when ? [" ", condition(search.dimensions[d].when)] : [])];
  const content = ({ shares, best: bestCount, trials: count }) => {
    if (bestCount === 0) return [noteOf("Fewer than three complete trials have a value.")];
    if (shares.every((one) => one === 0)) return [noteOf("Nothing sets the best trials apart.")];
    const bars = shares.map((one, d) => ({ label: label(d), share: one })).sort((a, b) => b.share - a.share);
    return [{ block: "bars", bars }, noteOf("The share of each value in whether a trial is among the best ", { count: bestCount }, " of ", { count },
      bestCount < ENOUGH ? ". So few say little: take it as a guess." : ".")];
  };
  const heading = ({ name, maximizes }) => ({ block: "heading", text: [name + " ", { soft: maximizes ? "maximized" : "minimized" }] });
  return cardOf("Importance", ...search.importances.flatMap((one, o) => [...(several ? [heading(search.objectives[o])] : []), ...content(one)]),
    noteOf("PED-ANOVA (Watanabe et al. 2023) of the complete trials, each dimension by itself."));
}

