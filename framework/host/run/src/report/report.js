"use strict";
// Draws the report's charts from the data in the page and keeps them in step with theme and toggles.
// What report_search.js needs of it is returned.
const report = (function () {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const charts = [];
  const hidden = new Set();

  for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;

  // Light, dark, or what the system says. The choice is kept where the browser lets a file keep it.
  const themes = ["auto", "light", "dark"];
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try { return localStorage.getItem("treadle-theme"); } catch (ignored) { return null; }
  };
  const store = (theme) => {
    try { localStorage.setItem("treadle-theme", theme); } catch (ignored) { /* not kept, then */ }
  };
  let theme = themes.includes(stored()) ? stored() : "auto";
  let onPaper = false;  // paper is light
  const isDark = () => !onPaper && (theme === "dark" || (theme === "auto" && systemDark.matches));
  function showTheme() {
    if (onPaper) root.setAttribute("data-theme", "light");
    else if (theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    byId("theme").textContent = "Theme: " + theme;
  }
  showTheme();

  const palettes = {
    light: ["#2f5fd0", "#d1681b", "#16945a", "#a23fb3", "#c8313f", "#0c8a9e", "#8a6d0b", "#5d6b82", "#7a4bd1", "#4f7d16", "#b3437c", "#7a4a2a"],
    dark: ["#82a8ff", "#ffa05c", "#4fd394", "#dd8bec", "#ff7f86", "#4cc9dd", "#e0bd4a", "#a5b1c4", "#b79cff", "#a9d65c", "#ff8fc4", "#cf9a72"],
  };
  const colour = (index) => {
    const palette = isDark() ? palettes.dark : palettes.light;
    return palette[index % palette.length];
  };
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const withAlpha = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

  const shown = (value) => {
    if (value === null || value === undefined) return "not a number";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
  };

  function axis(title, extra) {
    return Object.assign({
      title: { display: true, text: title, color: css("--soft") },
      grid: { color: css("--line") },
      ticks: { color: css("--soft"), maxRotation: 0 },
    }, extra);
  }

  // A chart is drawn by a function, so that it can be drawn anew in other colours.
  function drawBy(id, draw) {
    const canvas = byId(id);
    if (!canvas) return;
    charts.push({ id, draw: () => draw(canvas) });
    draw(canvas);
  }
  // A chart of Chart.js, from a function that describes it.
  function show(id, describe) {
    let chart = null;
    drawBy(id, (canvas) => {
      if (chart) chart.destroy();
      const described = describe();
      const options = Object.assign({
        responsive: true, maintainAspectRatio: false, animation: false, normalized: true,
      }, described.options);
      options.plugins = Object.assign({ legend: { display: false } }, described.options.plugins);
      chart = new Chart(canvas, { type: described.type, data: described.data, options, plugins: described.plugins || [] });
    });
  }
  const redraw = (ids) => charts.filter((chart) => !ids || ids.includes(chart.id)).forEach((chart) => chart.draw());

  const curves = data.curves;
  const points = (curve, values) => curve.epochs.map((epoch, i) => ({ x: epoch, y: values[i] }));

  function line(curve, index, label, values, dashed) {
    const single = curve.epochs.length === 1;
    const many = curves.length > 1;
    const paint = many ? colour(index) : colour(dashed ? 1 : 0);
    return {
      label, data: points(curve, values), borderColor: dashed && many ? withAlpha(paint, 0.55) : paint,
      backgroundColor: paint, borderWidth: dashed ? 1.5 : 2, borderDash: dashed ? [5, 4] : [],
      pointRadius: values.map((v, i) => (single || (!dashed && curve.best[i]) ? 3.5 : 0)),
      pointHoverRadius: 4, pointHitRadius: 6, spanGaps: false, hidden: hidden.has(curve.fit),
    };
  }

  function curveOptions(title, logarithmic, legend) {
    return {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: axis("epoch", { type: "linear", ticks: { color: css("--soft"), precision: 0, maxRotation: 0 } }),
        y: axis(title, logarithmic ? { type: "logarithmic" } : {}),
      },
      plugins: {
        legend: {
          display: legend,
          labels: { color: css("--text"), boxWidth: 22, boxHeight: 0 },
        },
        tooltip: {
          callbacks: {
            title: (items) => (items.length ? "epoch " + items[0].parsed.x : ""),
            label: (item) => item.dataset.label + ": " + shown(item.parsed.y),
          },
        },
      },
    };
  }

  let logarithmic = false;
  show("loss-chart", () => {
    const datasets = [];
    curves.forEach((curve, index) => {
      const prefix = curves.length > 1 ? curve.fit + " " : "";
      if (curve.val_loss.some((v) => v !== null)) {
        datasets.push(line(curve, index, prefix + "validation", curve.val_loss, false));
        datasets.push(line(curve, index, prefix + "training", curve.train_loss, true));
      } else {
        datasets.push(line(curve, index, prefix + "training", curve.train_loss, curves.length > 1));
      }
    });
    return { type: "line", data: { datasets }, options: curveOptions("loss", logarithmic, curves.length === 1) };
  });

  const picker = byId("metric-picker");
  show("metric-chart", () => {
    const name = picker.value;
    const datasets = [];
    curves.forEach((curve, index) => {
      if (curve.metrics[name]) datasets.push(line(curve, index, curves.length > 1 ? curve.fit : name, curve.metrics[name], false));
    });
    return { type: "line", data: { datasets }, options: curveOptions(name, false, false) };
  });
  show("rate-chart", () => ({
    type: "line",
    data: { datasets: curves.map((curve, index) => line(curve, index, curve.fit, curve.learning_rate, false)) },
    options: curveOptions("learning rate", false, false),
  }));

  // What a loop written by hand recorded: one line a tag.
  show("trends-chart", () => {
    const options = curveOptions("", false, true);
    options.scales.y.ticks = Object.assign({}, options.scales.y.ticks, { count: 5, callback: shown });
    return {
      type: "line",
      data: {
        datasets: data.trends.map((trend, index) => ({
          label: trend.name, data: trend.values.map((value, i) => ({ x: i + 1, y: value })), borderColor: colour(index),
          backgroundColor: colour(index), borderWidth: 2, pointRadius: trend.values.length === 1 ? 3.5 : 0, pointHoverRadius: 4,
          pointHitRadius: 6,
        })),
      },
      options,
    };
  });

  if (picker) picker.addEventListener("change", () => redraw(["metric-chart"]));
  const scale = byId("log-scale");
  if (scale) {
    scale.addEventListener("click", () => {
      logarithmic = !logarithmic;
      scale.textContent = logarithmic ? "Scale: logarithmic" : "Scale: linear";
      redraw(["loss-chart"]);
    });
  }

  // One switch per training; all curve charts obey it.
  const chips = byId("fit-chips");
  function paintChips() {
    if (!chips) return;
    [...chips.querySelectorAll("i")].forEach((dot, index) => { dot.style.background = colour(index); });
  }
  if (chips && curves.length > 1) {
    curves.forEach((curve) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.setAttribute("aria-pressed", "true");
      chip.append(document.createElement("i"), curve.fit);
      chip.addEventListener("click", () => {
        const off = !hidden.has(curve.fit);
        if (off) hidden.add(curve.fit); else hidden.delete(curve.fit);
        chip.setAttribute("aria-pressed", String(!off));
        redraw(["loss-chart", "metric-chart", "rate-chart"]);
      });
      chips.append(chip);
    });
    paintChips();
  }

  // A target of several numbers: one of them at a time.
  const outputPicker = byId("output-picker");
  const output = () => data.residuals[outputPicker ? Number(outputPicker.value) : 0];
  if (outputPicker) outputPicker.addEventListener("change", () => redraw(["scatter-chart", "histogram-chart"]));

  show("scatter-chart", () => {
    const sample = output().sample;
    const all = sample.flat().filter((v) => v !== null);
    const low = Math.min(...all);
    const high = Math.max(...all);
    return {
      type: "scatter",
      data: {
        datasets: [
          { label: "rows", data: sample.map((row) => ({ x: row[0], y: row[1] })),
            backgroundColor: withAlpha(colour(0), sample.length > 300 ? 0.35 : 0.6), pointRadius: sample.length > 300 ? 2 : 3 },
          { label: "perfect", type: "line", data: [{ x: low, y: low }, { x: high, y: high }],
            borderColor: css("--soft"), borderWidth: 1.5, borderDash: [5, 4], pointRadius: 0, pointHitRadius: 0 },
        ],
      },
      options: {
        scales: { x: axis("actual", { type: "linear" }), y: axis("predicted", { type: "linear" }) },
        plugins: {
          tooltip: { callbacks: { label: (item) => "actual " + shown(item.parsed.x) + ", predicted " + shown(item.parsed.y) } },
        },
      },
    };
  });

  show("histogram-chart", () => {
    const bins = output().histogram;
    return {
      type: "bar",
      data: {
        labels: bins.map((bin) => shown((bin[0] + bin[1]) / 2)),
        datasets: [{ label: "rows", data: bins.map((bin) => bin[2]), backgroundColor: withAlpha(colour(0), 0.75),
          categoryPercentage: 1, barPercentage: 0.95 }],
      },
      options: {
        scales: { x: axis("actual − predicted", { grid: { display: false } }), y: axis("rows", { beginAtZero: true }) },
        plugins: {
          tooltip: {
            callbacks: {
              title: (items) => {
                const bin = bins[items[0].dataIndex];
                return shown(bin[0]) + " … " + shown(bin[1]);
              },
            },
          },
        },
      },
    };
  });

  // Forecasts: what came before, what was predicted, and intervals as bands.
  const forecastPicker = byId("forecast-picker");
  if (forecastPicker) forecastPicker.addEventListener("change", () => redraw(["forecast-chart"]));
  show("forecast-chart", () => {
    const forecast = data.forecasts[Number(forecastPicker.value)];
    const at = (column) => forecast.rows.map((row) => ({ x: row[2], y: row[column] }));
    const predicted = (column) => at(column).filter((point) => point.y !== null);
    const lines = { pointRadius: 0, pointHitRadius: 6, borderWidth: 2, spanGaps: false };
    const datasets = [
      Object.assign({ label: "actual", data: at(3), borderColor: colour(7), backgroundColor: colour(7) }, lines),
      Object.assign({ label: "predicted", data: predicted(4), borderColor: colour(0), backgroundColor: colour(0) }, lines),
    ];
    forecast.bands.forEach((band) => {
      const edge = { borderWidth: 0, pointRadius: 0, pointHitRadius: 0, borderColor: "transparent" };
      datasets.push(Object.assign({ label: band.label, data: predicted(band.lower), fill: "+1",
        backgroundColor: withAlpha(colour(0), 0.18) }, edge));
      datasets.push(Object.assign({ label: "", data: predicted(band.upper), fill: false }, edge));
    });
    const options = curveOptions(forecast.number, false, true);
    options.scales.x = axis("step", { type: "linear", ticks: { color: css("--soft"), precision: 0, maxRotation: 0 } });
    options.plugins.legend.labels.filter = (item) => item.text !== "";
    options.plugins.legend.labels.boxHeight = 6;
    options.plugins.tooltip.callbacks.title = (items) => (items.length ? "step " + items[0].parsed.x : "");
    options.plugins.tooltip.filter = (item) => item.dataset.borderWidth > 0;
    return { type: "line", data: { datasets }, options };
  });

  const stepPicker = byId("by-step-picker");
  if (stepPicker) stepPicker.addEventListener("change", () => redraw(["by-step-chart"]));
  show("by-step-chart", () => {
    const metric = data.by_step[Number(stepPicker.value)];
    const options = curveOptions(metric.name, false, false);
    options.scales.x = axis("step", { type: "linear", ticks: { color: css("--soft"), precision: 0, maxRotation: 0 } });
    options.plugins.tooltip.callbacks.title = (items) => (items.length ? "step " + items[0].parsed.x : "");
    return {
      type: "line",
      data: { datasets: [{ label: metric.name, data: metric.values.map((y, i) => ({ x: i + 1, y })), borderColor: colour(0),
        backgroundColor: colour(0), borderWidth: 2, pointRadius: metric.values.length > 40 ? 0 : 2.5, pointHitRadius: 6 }] },
      options,
    };
  });

  // A model that goes on learning: a level for each window of rows, and the changes of its task.
  const adaptationPicker = byId("adaptation-picker");
  if (adaptationPicker) adaptationPicker.addEventListener("change", () => redraw(["adaptation-chart"]));
  show("adaptation-chart", () => {
    const { ends, numbers, changes } = data.adaptation;
    const name = adaptationPicker.value;
    const values = numbers[name];
    const options = curveOptions(name, false, false);
    const last = ends[ends.length - 1];
    options.layout = { padding: { top: 16 } };
    options.scales.x = axis("row", { type: "linear", min: ends[0], max: last,
      ticks: { color: css("--soft"), precision: 0, maxRotation: 0 } });
    options.plugins.tooltip.callbacks.title = (items) => {
      const window = items.length ? Math.min(items[0].dataIndex, values.length - 1) : 0;
      return "rows " + ends[window] + " to " + (ends[window + 1] - 1);
    };
    const marks = {
      id: "marks",
      afterDatasetsDraw(chart) {
        const { ctx, chartArea, scales } = chart;
        let free = chartArea.left;  // where the next name may begin
        ctx.save();
        ctx.strokeStyle = colour(1);
        ctx.fillStyle = css("--text");
        ctx.font = "11px sans-serif";
        ctx.setLineDash([5, 4]);
        changes.forEach((change) => {
          const x = scales.x.getPixelForValue(change.row);
          ctx.beginPath();
          ctx.moveTo(x, chartArea.top);
          ctx.lineTo(x, chartArea.bottom);
          ctx.stroke();
          const width = ctx.measureText(change.task).width;
          const left = Math.min(x, chartArea.right - width);
          if (left < free) return;
          ctx.fillText(change.task, left, chartArea.top - 4);
          free = left + width + 8;
        });
        ctx.restore();
      },
    };
    return {
      type: "line",
      data: { datasets: [{ label: name, data: ends.map((x, i) => ({ x, y: values[Math.min(i, values.length - 1)] })),
        borderColor: colour(0), backgroundColor: colour(0), borderWidth: 2, stepped: true, pointRadius: 0, pointHoverRadius: 4,
        pointHitRadius: 6 }] },
      options, plugins: [marks],
    };
  });

  const repaint = () => { paintChips(); redraw(); };
  byId("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    store(theme);
    showTheme();
    repaint();
  });
  systemDark.addEventListener("change", repaint);
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, () => { onPaper = printing; showTheme(); repaint(); });
  }

  return { data, byId, drawBy, show, redraw, axis, css, colour, withAlpha, shown };
})();
