// Charts of Chart.js, described by functions, so that they can be drawn anew: in other colours, or
// for another choice of the reader.
const drawings = [];  // { key, draw }
const redraw = (key) => drawings.filter((one) => key === undefined || one.key === key).forEach((one) => one.draw());

function show(canvas, key, describe) {
  let chart = null;
  const draw = () => {
    if (chart) chart.destroy();
    const { type, data, options, plugins = [] } = describe();
    Object.assign(options, { responsive: true, maintainAspectRatio: false, animation: false, normalized: options.normalized !== false });
    options.plugins = Object.assign({ legend: { display: false } }, options.plugins);
    chart = new Chart(canvas, { type, data, options, plugins });
  };
  drawings.push({ key, draw });
  return draw;
}

function axis(title, extra) {
  return Object.assign({
    title: { display: true, text: title, color: css("--soft") },
    grid: { color: css("--line") },
    ticks: { color: css("--soft"), maxRotation: 0 },
  }, extra);
}
const wholeTicks = () => ({ type: "linear", ticks: { color: css("--soft"), precision: 0, maxRotation: 0 } });

// Choices by key: charts with the same key show the same of their views, and their pickers agree.
const picks = {};
const pickedNames = {};
function picker(controls, key, label, names) {
  picks[key] = 0;
  pickedNames[key] = pickedNames[key] ?? names[0];
  if (names.length < 2) return;
  controls.append(element("select", { class: "chip", "aria-label": label, "data-key": key, change: (event) => {
    picks[key] = Number(event.target.value);
    pickedNames[key] = names[picks[key]];
    document.querySelectorAll("select").forEach((other) => { if (other.dataset.key === key) other.value = event.target.value; });
    redraw(key);
  } }, ...names.map((name, i) => element("option", { value: i }, name))));
}
function scaleButton(controls, toggle) {
  const button = element("button", { class: "chip", type: "button", click: toggle }, "Scale: linear");
  controls.append(button);
  return (isLogarithmic) => { button.textContent = isLogarithmic ? "Scale: logarithmic" : "Scale: linear"; };
}

function lineOptions(x, y, legend, options = {}) {
  return Object.assign({
    interaction: { mode: "nearest", axis: "x", intersect: false },
    scales: { x: axis(x, wholeTicks()), y: axis(y) },
    plugins: {
      legend: { display: legend, labels: { color: css("--text"), boxWidth: 22, boxHeight: 0, filter: (item) => item.text !== "" } },
      tooltip: {
        filter: (item) => item.dataset.borderWidth > 0,
        callbacks: {
          title: (items) => (items.length ? x + " " + short(items[0].parsed.x) : ""),
          label: (item) => item.dataset.label + ": " + short(item.parsed.y),
        },
      },
    },
  }, options);
}
const lineSet = (label, points, paint, style) => Object.assign({
  label, data: points.map(([x, y]) => ({ x, y })), borderColor: paint, backgroundColor: paint, borderWidth: 2, pointHoverRadius: 4,
  pointRadius: points.length === 1 ? 3.5 : 0, pointHitRadius: 6, spanGaps: false,
}, style);

// One switch per training; all charts of curves obey it.
const hidden = new Set();
function fits() {
  const chip = ({ name }, index) => element("button", { class: "chip", type: "button", "aria-pressed": "true", click: (event) => {
    if (!hidden.delete(name)) hidden.add(name);
    event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(name)));
    redraw("curves");
  } }, dot(index), name);
  return element("div", { class: "chips fits" }, element("span", { class: "note" }, "Show"), ...report.epochs.fits.map(chip));
}
function dot(index) {
  const made = element("i");
  drawings.push({ draw: () => { made.style.background = colour(index); } });
  return made;
}
function fitLine(fit, index, column, label, dashed) {
  const place = report.epochs.columns.indexOf(column);
  const many = report.epochs.fits.length > 1;
  const paint = many ? colour(index) : colour(dashed ? 1 : 0);
  const single = fit.rows.length === 1;
  return lineSet(label, fit.rows.map((row) => [row[0], row[place]]), paint, {
    borderColor: dashed && many ? withAlpha(paint, 0.55) : paint, borderWidth: dashed ? 1.5 : 2, borderDash: dashed ? [5, 4] : [],
    pointRadius: fit.rows.map((row, i) => (single || (!dashed && i === fit.best) ? 3.5 : 0)), hidden: hidden.has(fit.name),
  });
}

const charts = {
  loss(canvas, block, controls) {
    const { fits } = report.epochs;
    const many = fits.length > 1;
    let isLogarithmic = false;
    const label = scaleButton(controls, () => { isLogarithmic = !isLogarithmic; draw(); });
    const isValidated = (fit) => fit.rows.some((row) => row[2] !== null);
    const draw = show(canvas, "curves", () => {
      label(isLogarithmic);
      const options = lineOptions("epoch", "loss", !many);
      if (isLogarithmic) options.scales.y.type = "logarithmic";
      return { type: "line", options, data: { datasets: fits.flatMap((fit, index) => {
        const prefix = many ? fit.name + " " : "";
        const training = (dashed) => fitLine(fit, index, "training loss", prefix + "training", dashed);
        return isValidated(fit) ? [fitLine(fit, index, "validation loss", prefix + "validation", false), training(true)] : [training(many)];
      }) } };
    });
  },
  curve(canvas, block, controls) {
    picker(controls, "curves", "metric", block.columns);
    const { fits } = report.epochs;
    show(canvas, "curves", () => {
      const name = block.columns[picks.curves];
      const hasName = (fit) => fit.rows.some((row) => row[report.epochs.columns.indexOf(name)] !== null);
      return { type: "line", options: lineOptions("epoch", name, false), data: {
        datasets: fits.flatMap((fit, index) => (hasName(fit) ? [fitLine(fit, index, name, fits.length > 1 ? fit.name : name, false)] : [])),
      } };
    });
  },
  lines: (canvas, { x, lines }) => { showLines(canvas, [], x, [{ lines }]); },
  forecasts: (canvas, { tables }, controls) => { showLines(canvas, controls, "step", tables.flatMap(forecastViews)); },
  by_step: (canvas, { tables }, controls) => {
    const points = (values, i) => values.map((row, step) => [step + 1, row[i]]);
    const views = tables.flatMap(({ target, column_labels, values }) => column_labels.map((label, i) => {
      const name = (target ? target + "/" : "") + setting(label);
      return { name, y: name, lines: [{ label: name, points: points(values, i) }] };
    }));
    showLines(canvas, controls, "step", views);
  },
  decision_curves: (canvas, { tables }, controls) => { showLines(canvas, controls, "", tables.flatMap(curveViews)); },
  reliability: (canvas, { tables }, controls) => {
    const x = "predicted probability";
    const y = "share that is right";
    showLines(canvas, controls, x, tables.map(({ target, values }) => ({ name: target || y, y, shares: { x, most: 1 }, lines: [
      { label: "calibrated", muted: true, points: [[0, 0], [1, 1]] }, { label: target || "model", points: values.map(([confidence, accuracy]) => [confidence, accuracy]) },
    ] })));
  },
  scores: (canvas, { tables }, controls) => {
    const key = "view " + drawings.length;
    picker(controls, key, canvas.getAttribute("aria-label"), tables.map(({ target }) => target));
    show(canvas, key, () => {
      const { column_labels, values } = tables[picks[key]];
      const classes = column_labels.slice(2);
      return {
        type: "bar",
        data: { labels: values.map(([from, to]) => short((from + to) / 2)), datasets: classes.map((name, i) => ({
          label: name, data: values.map((row) => row[i + 2]), backgroundColor: withAlpha(colour(i), 0.75), categoryPercentage: 1, barPercentage: 0.95,
        })) },
        options: {
          scales: { x: axis("predicted probability of " + classes[1], { stacked: true, grid: { display: false } }), y: axis("rows", { stacked: true, beginAtZero: true }) },
          plugins: { legend: { display: true, labels: { color: css("--text"), boxWidth: 12 } } },
        },
      };
    });
  },
  // A level for each window, with marks where the task changes.
  timeline: (canvas, { names, windows, changes, valueIn }, controls) => {
    const MOST_MARKS = 200;  // more would hide the line
    const last = windows[windows.length - 1];
    const marks = changes.filter((change) => change.window !== null).slice(0, MOST_MARKS).map(({ row, task }) => ({ x: row, text: task }));
    showLines(canvas, controls, "row", names.map((name) => ({ name, y: name, marks, stepped: true, lines: [{ label: name,
      points: [...windows.map((window) => [window.first_row, valueIn(window, name)]), [last.first_row + last.rows, valueIn(last, name)]] }] })));
  },
  // The mean prediction by the value of a column: lines for numbers, bars for categories.
  dependence: (canvas, { views, outputs, classes }, controls) => {
    const key = "view " + drawings.length;
    picker(controls, key, "column", views.map(({ column }) => column));
    show(canvas, key, () => {
      const { column, kind, values, predictions } = views[picks[key]];
      const isCategory = kind === "category";
      const several = outputs.length > 1;
      const y = classes ? (several ? "mean probability" : "mean probability of " + outputs[0]) : "mean prediction";
      const options = lineOptions(column, y, several);
      options.scales.x = axis(column, isCategory ? { grid: { display: false } } : { type: "linear" });
      if (isCategory) {
        return { type: "bar", options: { scales: options.scales, plugins: { legend: { display: several, labels: { color: css("--text"), boxWidth: 12 } } } },
          data: { labels: values, datasets: outputs.map((name, i) => ({ label: name, data: predictions.map((row) => row[i]), backgroundColor: withAlpha(colour(i), 0.75), maxBarThickness: 48 })) } };
      }
      return { type: "line", options, data: { datasets: outputs.map((name, i) =>
        lineSet(name, predictions.map((row, at) => [values[at], row[i]]), colour(i), { pointRadius: 2.5 })) } };
    });
  },
  scatter: (canvas, { tables }, controls) => showOutputs(canvas, tables, controls, (points) => {
    const all = points.flat().filter(isNumber);
    const ends = [all.reduce((a, b) => Math.min(a, b), Infinity), all.reduce((a, b) => Math.max(a, b), -Infinity)];
    const many = points.length > 300;
    return {
      type: "scatter",
      data: { datasets: [
        { label: "rows", data: points.map(([x, y]) => ({ x, y })), backgroundColor: withAlpha(colour(0), many ? 0.35 : 0.6), pointRadius: many ? 2 : 3 },
        lineSet("perfect", ends.map((end) => [end, end]), css("--soft"), { type: "line", borderWidth: 1.5, borderDash: [5, 4], pointHitRadius: 0 }),
      ] },
      options: {
        scales: { x: axis("actual", { type: "linear" }), y: axis("predicted", { type: "linear" }) },
        plugins: { tooltip: { callbacks: { label: (item) => "actual " + short(item.parsed.x) + ", predicted " + short(item.parsed.y) } } },
      },
    };
  }),
  histogram: (canvas, { tables }, controls) => showOutputs(canvas, tables, controls, (bins) => ({
    type: "bar",
    data: {
      labels: bins.map(([from, to]) => short((from + to) / 2)),
      datasets: [{ label: "rows", data: bins.map((bin) => bin[2]), backgroundColor: withAlpha(colour(0), 0.75), categoryPercentage: 1, barPercentage: 0.95 }],
    },
    options: {
      scales: { x: axis("actual − predicted", { grid: { display: false } }), y: axis("rows", { beginAtZero: true }) },
      plugins: { tooltip: { callbacks: { title: (items) => items.map(({ dataIndex }) => short(bins[dataIndex][0]) + " … " + short(bins[dataIndex][1])) } } },
    },
  })),
};

// Views of lines and bands over a common axis; one at a time.
function showLines(canvas, controls, x, views) {
  const key = "view " + drawings.length;
  picker(controls, key, canvas.getAttribute("aria-label"), views.map((view) => view.name));
  show(canvas, key, () => {
    const { lines, bands = [], y = "", stepped = false, marks = [], shares = null } = views[picks[key]];
    const many = lines.length > 1;
    const options = lineOptions(shares ? shares.x : x, y, many);
    if (shares) options.scales = { x: axis(shares.x, { type: "linear", min: 0, max: 1 }), y: axis(y, { min: 0, max: shares.most }) };
    const muted = lines.filter((line) => line.muted).length;  // these are first
    const datasets = lines.map((line, index) => lineSet(line.label, line.points, colour(line.muted ? 7 : index - muted), {
      stepped, pointRadius: line.points.length === 1 ? 3.5 : !many && !stepped && line.points.length <= 40 ? 2.5 : 0,
    }));
    bands.forEach(({ label, points }) => {
      const edge = { borderWidth: 0, pointRadius: 0, pointHitRadius: 0, borderColor: "transparent" };
      datasets.push(lineSet(label, points.map(([at, lower]) => [at, lower]), "", { ...edge, fill: "+1", backgroundColor: withAlpha(colour(0), 0.18) }));
      datasets.push(lineSet("", points.map(([at, , upper]) => [at, upper]), "", { ...edge, fill: false }));
    });
    if (bands.length) options.plugins.legend.labels.boxHeight = 6;
    if (stepped) {
      const [{ points }] = lines;
      Object.assign(options.scales.x, { min: points[0][0], max: points[points.length - 1][0] });
      options.layout = { padding: { top: 16 } };
      options.plugins.tooltip.callbacks.title = (items) => {
        const at = items.length ? Math.min(items[0].dataIndex, points.length - 2) : 0;
        return x + "s " + points[at][0] + " to " + (points[at + 1][0] - 1);
      };
    }
    return { type: "line", data: { datasets }, options, plugins: [drawnMarks(marks)] };
  });
}

// ROC, precision and recall, and lift: a line for each class.
function curveViews({ target, row_labels, column_labels, values }) {
  const place = (name) => column_labels.indexOf(name);
  const classes = [...new Set(row_labels)];
  const view = (name, x, y, [of, from], [least, most], muted) => ({
    name: (target ? target + ": " : "") + name, y, shares: { x, most },
    lines: [...muted, ...classes.map((one) => ({ label: one, points: values.filter((row, i) => row_labels[i] === one && row[of] !== null && row[from] !== null)
      .map((row) => [row[of], row[from]]).filter(([, value]) => value >= least) }))],
  });
  return [
    view("ROC", "false positive rate", "true positive rate", [place("false_positive_rate"), place("true_positive_rate")], [0, 1],
      [{ label: "chance", muted: true, points: [[0, 0], [1, 1]] }]),
    view("precision and recall", "recall", "precision", [place("true_positive_rate"), place("precision")], [0, 1], []),
    view("lift", "share of rows selected", "lift", [place("selected"), place("lift")], [0, undefined], []),
  ];
}

// A view for each forecast and number, with a band from a quantile to the one above 0.5 that is as far from the other end.
function forecastViews({ target, row_labels = [], column_labels, values }) {
  const [STEP, ACTUAL, PREDICTED] = [2, 3, 4];
  const quantiles = column_labels.map((label, column) => ({ label, column, level: /^q0?\.\d+$/.test(label) ? Number(label.slice(1)) : null }))
    .filter(({ level }) => level > 0 && level < 1).sort((a, b) => a.level - b.level);
  const pairs = quantiles.map((lower, i) => [lower, quantiles[quantiles.length - 1 - i]]).filter(([lower, upper]) => lower.level < 0.5 && upper.level > 0.5);
  const several = values.some((row) => row[1] !== 0);
  const views = new Map();
  values.forEach((row, i) => {
    const key = row[0] + " " + row[1];
    const y = several ? (target ? target + "." : "number ") + row[1] : target;
    if (!views.has(key)) views.set(key, { name: [row_labels[i], y].filter((word) => word).map(setting).join(", "), y, rows: [] });
    views.get(key).rows.push(row);
  });
  const points = (rows, ...columns) => rows.filter((row) => row[columns[0]] !== null).map((row) => [row[STEP], ...columns.map((column) => row[column])]);
  return [...views.values()].map(({ name, y, rows }) => ({
    name, y,
    lines: [{ label: "actual", muted: true, points: rows.map((row) => [row[STEP], row[ACTUAL]]) }, { label: "predicted", points: points(rows, PREDICTED) }],
    bands: pairs.map(([lower, upper]) => ({ label: lower.label + " to " + upper.label, points: points(rows, lower.column, upper.column) })),
  }));
}

// The rows of each output: a target of several numbers has the output in the first column of its tables.
const outputsOf = (tables) => tables.flatMap(({ target, column_labels, values }) => {
  if (column_labels[0] !== "output") return [{ name: target, rows: values }];
  const outputs = [];
  values.forEach(([output, ...row]) => (outputs[output] = outputs[output] || []).push(row));
  return outputs.map((rows, i) => ({ name: outputs.length === 1 ? target : (target ? target + "." : "output ") + i, rows }));
});
function showOutputs(canvas, tables, controls, describe) {
  const outputs = outputsOf(tables);
  picker(controls, "output", "output", outputs.map((output) => output.name));
  show(canvas, "output", () => {
    const name = pickedNames.output;
    return describe((outputs.find((output) => output.name === name) || { rows: [] }).rows);
  });
}
function errors({ tables }) {
  const mean = (rows, of) => rows.reduce((sum, row) => sum + of(row), 0) / rows.length;
  let most = 0;
  const line = ({ name, rows }) => {
    const known = rows.filter((row) => row.every(isNumber));
    most = Math.max(most, known.length);
    return [name, mean(known, ([actual, predicted]) => Math.abs(actual - predicted)),
      Math.sqrt(mean(known, ([actual, predicted]) => (actual - predicted) ** 2)), mean(known, ([actual, predicted]) => actual - predicted)];
  };
  const table = grid(["output", "mean absolute", "root mean square", "mean of actual − predicted"], outputsOf(tables).map(line));
  return joined([table, caption("Of the sample of " + count(most) + " evaluated rows that is drawn here, in the data's units.")]);
}

// Dashed lines with names above them, as far as these have room.
const drawnMarks = (all) => ({
  id: "marks",
  afterDatasetsDraw({ ctx, chartArea, scales }) {
    let free = chartArea.left;  // where the next name may begin
    ctx.save();
    ctx.strokeStyle = colour(1);
    ctx.fillStyle = css("--text");
    ctx.font = "11px sans-serif";
    ctx.setLineDash([5, 4]);
    all.forEach((mark) => {
      const x = scales.x.getPixelForValue(mark.x);
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      const width = ctx.measureText(mark.text).width;
      const left = Math.min(x, chartArea.right - width);
      if (left < free) return;
      ctx.fillText(mark.text, left, chartArea.top - 4);
      free = left + width + 8;
    });
    ctx.restore();
  },
});

