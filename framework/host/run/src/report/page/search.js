// What the document has of a search: its trials in charts and tables, and as CSV.
const search = report.search || { trials: [], objectives: [], paths: [], dimensions: [], pareto: [], curves: [], importances: [] };
const MANY = 300;  // trials: smaller points and fainter lines
const all = search.trials;
const best = search.best === null ? null : all[search.best];
const isComplete = (trial) => trial.state === "complete";
const nameOf = (trial) => "trial " + trial.number;
const bestLabel = search.objectives.length > 1 ? "the model's trial" : "best trial";
const clipped = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// One objective at a time, the same in all charts.
const objective = () => picks.search;
const objectiveName = (o = objective()) => search.objectives[o].name;
const valueOf = (trial, o = objective()) => trial.values[o];
const lossOf = (trial, o = objective()) => (search.objectives[o].maximizes ? -valueOf(trial, o) : valueOf(trial, o));
const hasValue = (trial, o = objective()) => isComplete(trial) && valueOf(trial, o) !== null;
const compared = () => all.filter((trial) => hasValue(trial));
const comparedValues = () => compared().map((trial) => valueOf(trial));
const objectivePicker = (controls) => picker(controls, "search", "objective", search.objectives.map((one) => one.name));

// Of "optimizer.learning_rate" as much, from the end, as no other path has; "layers.1" rather than "1".
const labels = search.paths.map((path) => {
  const words = path.split(".");
  for (let i = words.length - 1; i > 0; --i) {
    if (/^\d+$/.test(words[i])) continue;
    const end = words.slice(i).join(".");
    if (!search.paths.some((other) => other !== path && (other === end || other.endsWith("." + end)))) return end;
  }
  return path;
});
// The dimensions by their importance for the first objective.
const byImportance = search.importances.slice(0, 1).flatMap(({ shares }) => shares.map((unused, d) => d).sort((a, b) => shares[b] - shares[a]));
const placeOf = (d, trial) => (trial.point ? trial.point[d] : null);
const linesOf = (trial) => trial.params.flatMap((value, d) => (value === null ? [] : [labels[d] + ": " + clipped(setting(value), 60)]));

// The scale of an objective: logarithmic where the reader sets it, or a few values dwarf all others.
const dwarfs = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length - 1] > 30 * sorted[Math.floor(sorted.length / 2)];
};
function objectiveScale(controls, values, draw) {
  let wanted = null;
  const isPossible = () => values().length > 0 && values().every((value) => value > 0);
  const isLogarithmic = () => isPossible() && (wanted === null ? dwarfs(values()) : wanted);
  const label = scaleButton(controls, () => { wanted = !isLogarithmic(); draw(); });
  const button = controls.lastChild;
  return () => {
    button.hidden = !isPossible();
    label(isLogarithmic());
    return isLogarithmic() ? "logarithmic" : "linear";
  };
}
const tickText = (value) => short(value, 4);
const numberTicks = (extra) => ({ ticks: Object.assign({ color: css("--soft"), maxRotation: 0, callback: tickText }, extra) });
// A logarithmic axis of several decades has ticks at the powers of ten, of one or two also at 2 and 5 times these.
function logarithmicTicks(low, high) {
  const kept = high / low > 300 ? [1] : high / low > 5 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  return { ...numberTicks(), type: "logarithmic", afterBuildTicks: (built) => {
    built.ticks = built.ticks.filter(({ value }) => kept.includes(Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9))));
  } };
}
function valueAxis(type, values) {
  const title = clipped(objectiveName(), 40);
  if (values.length === 0) return axis(title, { type });
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const room = low === high ? Math.abs(low) / 10 || 1 : 0;
  return axis(title, { type, suggestedMin: low - room, suggestedMax: high + room, ...(type === "logarithmic" ? logarithmicTicks(low, high) : numberTicks()) });
}
const trialTooltip = (lines) => ({
  displayColors: false,
  filter: (item, index) => index === 0 && item.raw.trial !== undefined,
  callbacks: {
    title: (items) => (items.length ? nameOf(items[0].raw.trial) : ""),
    label: (item) => [...lines(item), ...linesOf(item.raw.trial)],
  },
});
const valueLine = (item) => [objectiveName() + ": " + short(valueOf(item.raw.trial))];
const trialLegend = () => ({ display: true, labels: { color: css("--text"), usePointStyle: true, boxHeight: 7, filter: (item) => item.text !== "" } });
// Points of trials: `at` gives the place of one as [x, y].
const pointSet = (label, trials, at, order, style) => Object.assign({
  label, order, pointHitRadius: 4, pointRadius: all.length > MANY ? 2 : 3, borderWidth: 0,
  data: trials.map((trial) => { const [x, y] = at(trial); return { x, y, trial }; }),
}, style);
const hollow = () => ({ backgroundColor: "transparent", borderColor: colour(7), borderWidth: 1 });
const bestSet = (at, isShown) => pointSet(bestLabel, best !== null && isShown(best) ? [best] : [], at, -1, {
  pointRadius: 6, pointStyle: "rectRot", backgroundColor: colour(1), borderColor: css("--card"), borderWidth: 1,
});
const withData = (sets) => sets.filter((set) => set.data.length > 0 || set.isKept);
const scatterOf = (datasets, x, y, legend, tooltip, extra = {}) => ({
  type: "scatter",
  data: { datasets },
  options: { clip: 8, layout: { padding: { right: 8 } }, scales: { x, y }, plugins: { legend, tooltip } },
  ...extra,
});

// Value per trial, and the best so far.
charts.history = (canvas, block, controls) => {
  objectivePicker(controls);
  const scale = objectiveScale(controls, comparedValues, () => draw());
  const at = (trial) => [trial.number, valueOf(trial)];
  const draw = show(canvas, "search", () => {
    const last = new Map(search.curves[objective()].map(({ trial, points }) => [all[trial], points.filter(([, value]) => value !== null).at(-1)]));
    const pruned = all.filter((trial) => trial.state === "pruned" && last.get(trial));
    const failed = all.filter((trial) => trial.state === "failed");
    const line = [];
    compared().filter((trial) => trial.feasible).forEach((trial) => {
      if (!line.length || lossOf(trial) < lossOf(line[line.length - 1])) line.push(trial);
    });
    const soFar = pointSet("best so far", line, at, 0, { type: "line", stepped: true, borderColor: colour(1), backgroundColor: colour(1), borderWidth: 2,
      pointRadius: 0, pointHitRadius: 0, pointStyle: "line" });
    if (line.length) soFar.data.push({ ...soFar.data[line.length - 1], x: all[all.length - 1].number });
    const failures = {
      id: "failures",
      afterDatasetsDraw({ ctx, chartArea, scales }) {
        ctx.save();
        ctx.fillStyle = colour(4);
        failed.forEach(({ number }) => ctx.fillRect(scales.x.getPixelForValue(number) - 1, chartArea.bottom - 8, 2, 8));
        ctx.restore();
      },
    };
    const range = all.length > 1 ? { min: all[0].number, max: all[all.length - 1].number } : {};
    return scatterOf(withData([
      bestSet(at, hasValue),
      soFar,
      pointSet("complete", compared().filter((trial) => trial.feasible), at, 1, { backgroundColor: withAlpha(colour(0), 0.7) }),
      pointSet("violates a constraint", compared().filter((trial) => !trial.feasible), at, 2, hollow()),
      pointSet("pruned, last value", pruned, (trial) => [trial.number, last.get(trial)[1]], 3, {
        pointStyle: "crossRot", borderColor: withAlpha(colour(7), 0.6), backgroundColor: "transparent", borderWidth: 1 }),
      { label: "failed", data: [], isKept: failed.length > 0, pointStyle: "line", borderColor: colour(4), backgroundColor: colour(4), borderWidth: 2 },
    ]), axis("trial", { type: "linear", ...numberTicks({ precision: 0 }), ...range }), valueAxis(scale(), comparedValues()),
    trialLegend(), trialTooltip((item) => [item.dataset.label + ": " + short(item.raw.y)]), { plugins: [failures] });
  });
};

// Two objectives against each other. The line parts what some trial reached from what none did.
charts.pareto = (canvas) => {
  const at = (trial) => trial.values;
  const isValued = (trial) => hasValue(trial, 0) && hasValue(trial, 1);
  const isOnFront = new Set(search.pareto.map((place) => all[place]));
  const title = (o) => axis(clipped(objectiveName(o), 40) + (search.objectives[o].maximizes ? " (maximized)" : " (minimized)"), { type: "linear", ...numberTicks() });
  const values = (item) => search.objectives.map((one, o) => one.name + ": " + short(valueOf(item.raw.trial, o)));
  show(canvas, "search", () => {
    const front = all.filter((trial) => isValued(trial) && isOnFront.has(trial)).sort((a, b) => lossOf(a, 0) - lossOf(b, 0));
    const others = all.filter((trial) => isValued(trial) && !isOnFront.has(trial));
    return scatterOf(withData([
      bestSet(at, isValued),
      pointSet("Pareto front", front, at, 0, { type: "line", stepped: true, borderColor: withAlpha(colour(0), 0.6), backgroundColor: colour(0), borderWidth: 1.5, pointRadius: 4 }),
      pointSet("others", others.filter((trial) => trial.feasible), at, 1, { backgroundColor: withAlpha(colour(7), 0.5) }),
      pointSet("violates a constraint", others.filter((trial) => !trial.feasible), at, 2, hollow()),
    ]), title(0), title(1), trialLegend(), trialTooltip(values));
  });
};

// Value against each dimension. Trials with the same choice stand beside each other.
charts.slices = (canvas, block, controls) => {
  objectivePicker(controls);
  const draws = [];
  const scale = objectiveScale(controls, comparedValues, () => draws.forEach((draw) => draw()));
  const figure = (d) => {
    const dimension = search.dimensions[d];
    const beside = (trial) => ((trial.number * 0.618034) % 1 - 0.5) * 0.5;
    const at = (trial) => [placeOf(d, trial) + (dimension.choices ? beside(trial) : 0), valueOf(trial)];
    const isShown = (trial) => hasValue(trial) && placeOf(d, trial) !== null;
    const slice = element("canvas", { role: "img", "aria-label": "Objective by " + search.paths[d] });
    const rank = new Map(all.map((trial, i) => [trial, 0.2 + 0.75 * (i / Math.max(1, all.length - 1))]));
    const range = () => (dimension.choices
      ? { ...numberTicks({ callback: (value) => clipped(setting(dimension.choices[value] ?? ""), 14), autoSkipPadding: 6 }), type: "linear", min: -0.5,
        max: dimension.choices.length - 0.5, grid: { display: false }, afterBuildTicks: (built) => { built.ticks = dimension.choices.map((unused, value) => ({ value })); } }
      : { type: "linear", ...(dimension.log ? logarithmicTicks(dimension.low, dimension.high) : numberTicks({ maxTicksLimit: 6 })), min: dimension.low, max: dimension.high });
    draws.push(show(slice, "search", () => {
      const trials = compared().filter(isShown);
      return scatterOf([bestSet(at, isShown), pointSet("", trials, at, 1, {
        pointRadius: trials.length > MANY ? 2 : 3, pointBorderWidth: trials.map((trial) => (trial.feasible ? 0 : 1)), pointBorderColor: colour(7),
        pointBackgroundColor: trials.map((trial) => (trial.feasible ? withAlpha(colour(0), rank.get(trial)) : "transparent")),
      })], axis("", { ...range(), title: { display: false } }), valueAxis(scale(), comparedValues()), { display: false }, trialTooltip(valueLine));
    }));
    return element("figure", {}, element("figcaption", {}, search.paths[d]), element("div", { class: "chart slice" }, slice));
  };
  return joined([element("div", { class: "slices" }, ...byImportance.map(figure)),
    caption("A point is a complete trial; the stronger its color, the later." + (search.constrained ? " Hollow ones violate a constraint." : ""))]);
};

// All curves of a state are one line with gaps, so that a thousand trials are a handful of lines.
charts.learning = (canvas, block, controls) => {
  objectivePicker(controls);
  const values = () => search.curves[objective()].flatMap(({ points }) => points.map(([, y]) => y)).filter(isNumber);
  const scale = objectiveScale(controls, values, () => draw());
  const styles = { complete: [0, 0.6], paused: [6, 0.6], pruned: [7, 0.4], failed: [4, 0.5], other: [7, 0.4] };  // colour, strength
  const set = (label, curves, paint, alpha, style) => {
    const data = curves.flatMap(({ trial, points }) => [
      ...points.map(([x, y]) => ({ x, y, trial: all[trial], radius: points.length === 1 ? 2 : 0 })), { x: points[points.length - 1][0], y: null, trial: all[trial], radius: 0 }]);
    return Object.assign({ label, data, borderColor: withAlpha(paint, alpha), backgroundColor: paint, borderWidth: 1,
      pointHoverRadius: 3, pointHitRadius: 3, pointRadius: data.map((point) => point.radius) }, style);
  };
  const draw = show(canvas, "search", () => {
    const curves = search.curves[objective()];
    const stateOf = (curve) => all[curve.trial].state;
    const crowd = Math.min(1, (30 / curves.length) ** 0.6);  // many lines are faint ones
    const ofBest = curves.filter((curve) => all[curve.trial] === best);
    const ofState = [...new Set(curves.map(stateOf))].map((state) => {
      const members = curves.filter((curve) => all[curve.trial] !== best && stateOf(curve) === state);
      const [paint, alpha] = styles[state] || styles.other;
      return set(state + " " + members.length, members, colour(paint), alpha * crowd, { order: 1 + Object.keys(styles).indexOf(state in styles ? state : "other") });
    });
    return {
      type: "line",
      data: { datasets: withData([set(ofBest.length ? bestLabel + " " + best.number : "", ofBest, colour(1), 1, { borderWidth: 2.5, order: 0 }), ...ofState]) },
      options: {
        normalized: false,
        clip: 8,  // a curve of one epoch is a point
        interaction: { mode: "nearest", axis: "xy", intersect: true },
        scales: {
          x: axis("epoch", { type: "linear", min: Math.min(...curves.map(({ points }) => points[0][0])), ...numberTicks({ precision: 0 }) }),
          y: valueAxis(scale(), values()),
        },
        plugins: { legend: trialLegend(), tooltip: trialTooltip((item) => [item.raw.trial.state + ", epoch " + item.raw.x + ": " + short(item.raw.y)]) },
      },
    };
  });
};

// Tables of trials, with a column for everything that any trial of the search has.
function trials({ places, shown, csv }, controls) {
  const hasEpochs = all.some((trial) => trial.epochs !== null);
  const hasErrors = all.some((trial) => trial.error);
  const columns = [{ name: "trial", as: "setting" }, { name: "state", left: true }, ...search.objectives.map(({ name }) => name),
    ...(search.constrained ? ["violation"] : []), ...(hasEpochs ? ["epochs"] : []), ...search.paths, ...(hasErrors ? [{ name: "error", left: true }] : [])];
  const row = (trial) => [trial.number, trial.state, ...trial.values, ...(search.constrained ? [trial.feasible ? "none" : trial.violation] : []),
    ...(hasEpochs ? [trial.epochs === null ? "" : { count: trial.epochs }] : []),
    ...trial.params.map((value) => (value === null ? "" : clipped(setting(value), 60))), ...(hasErrors ? [trial.error] : [])];
  if (csv) controls.append(element("button", { class: "chip", type: "button", click: () => saveAs(csv, trialsAsCsv()) }, "Save as CSV"));
  return blocks.table({ columns, rows: places.map((place) => row(all[place])), shown, noun: places.length - shown === 1 ? "trial" : "trials" });
}

// All digits, one trial a line, in the order of their numbers.
function trialsAsCsv() {
  const field = (value) => {
    const text = value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
    return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  const isViolated = all.some((trial) => !trial.feasible);
  const head = ["trial", "state", ...search.objectives.map((one) => one.name), ...(isViolated ? ["feasible"] : []), "epochs", ...search.paths, "error"];
  const rows = all.map((trial) => [trial.number, trial.state, ...trial.values, ...(isViolated ? [trial.feasible] : []), trial.epochs, ...trial.params, trial.error]);
  return [head, ...rows].map((row) => row.map(field).join(",") + "\n").join("");
}

