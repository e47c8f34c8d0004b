"use strict";
// Draws what a report has of a search: history, Pareto front, parallel coordinates, slices, learning
// curves; and saves the trials as CSV. Trials are columns, and `t` is the place of one in them.
(function () {
  const { data, byId, drawBy, show, redraw, axis, css, colour, withAlpha, shown } = report;
  const search = data.search;
  if (!search) return;

  const MANY = 300;  // trials: smaller points and fainter lines
  const all = search.numbers.map((number, t) => t);
  const isComplete = (t) => search.states[t] === "complete";
  const nameOf = (t) => "trial " + search.numbers[t];
  const bestLabel = search.objectives.length > 1 ? "the model's trial" : "best trial";
  const clipped = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  let objective = 0;
  const objectiveName = (o = objective) => search.objectives[o].name;
  const valueOf = (t, o = objective) => search.values[o][t];
  const lossOf = (t, o = objective) => (search.objectives[o].maximizes ? -valueOf(t, o) : valueOf(t, o));
  const hasValue = (t) => isComplete(t) && valueOf(t) !== null;
  const compared = () => all.filter(hasValue);

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
  const dimensionValue = (d, t) => {
    if (!search.placed[t]) return null;
    const { indices } = search.dimensions[d];
    const value = (indices || search.params[d])[t];
    return value === undefined ? null : value;
  };
  const valueText = (d, t) => {
    const value = search.params[d][t];
    if (value === null || value === undefined) return null;
    const dimension = search.dimensions[d];
    if (dimension && dimension.indices) return dimension.choices[dimension.indices[t]];
    return typeof value === "number" ? shown(value) : typeof value === "string" ? value : JSON.stringify(value);
  };
  const linesOf = (t) => labels.map((label, d) => [label, valueText(d, t)])
    .filter(([, text]) => text !== null && text !== undefined)
    .map(([label, text]) => label + ": " + clipped(text, 60));

  // One objective at a time, the same in all charts.
  const pickers = [...document.querySelectorAll("select[id$='-objective']")];
  pickers.forEach((picker) => picker.addEventListener("change", () => {
    objective = Number(picker.value);
    pickers.forEach((other) => { other.value = picker.value; });
    redraw();
  }));

  // The scale of an objective: logarithmic where the reader wants it, or a few values dwarf all others.
  const dwarfs = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[sorted.length - 1] > 30 * sorted[Math.floor(sorted.length / 2)];
  };
  function scaleOf(id, charts, values) {
    const button = byId(id + "-scale");
    let wanted = null;
    const isPossible = () => values().length > 0 && values().every((value) => value > 0);
    const isLogarithmic = () => isPossible() && (wanted === null ? dwarfs(values()) : wanted);
    button.addEventListener("click", () => {
      wanted = !isLogarithmic();
      redraw(charts);
    });
    return () => {
      button.hidden = !isPossible();
      button.textContent = isLogarithmic() ? "Scale: logarithmic" : "Scale: linear";
      return isLogarithmic() ? "logarithmic" : "linear";
    };
  }
  const comparedValues = () => compared().map((t) => valueOf(t));

  const tickText = (value) => {
    const size = Math.abs(value);
    const rounded = Number(value.toPrecision(4));
    return size !== 0 && (size < 1e-3 || size >= 1e5) ? rounded.toExponential() : String(rounded);
  };
  const numberTicks = (extra) => ({ ticks: Object.assign({ color: css("--soft"), maxRotation: 0, callback: tickText }, extra) });
  // A logarithmic axis of several decades has ticks at the powers of ten, of one or two also at 2 and 5 times these.
  const logarithmicTicks = (low, high) => {
    const kept = high / low > 300 ? [1] : high / low > 5 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
    return Object.assign(numberTicks(), {
      afterBuildTicks: (built) => {
        built.ticks = built.ticks.filter(({ value }) => kept.includes(Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9))));
      },
    });
  };
  function valueAxis(type, values) {
    if (values.length === 0) return axis(clipped(objectiveName(), 40), { type });
    const low = values.reduce((a, b) => Math.min(a, b));
    const high = values.reduce((a, b) => Math.max(a, b));
    const room = low === high ? Math.abs(low) / 10 || 1 : 0;
    return axis(clipped(objectiveName(), 40), Object.assign({ type, suggestedMin: low - room, suggestedMax: high + room },
      type === "logarithmic" ? logarithmicTicks(low, high) : numberTicks()));
  }
  const trialTooltip = {
    displayColors: false,
    callbacks: {
      title: (items) => (items.length ? nameOf(items[0].raw.t) : ""),
      label: (item) => [objectiveName() + ": " + shown(valueOf(item.raw.t)), ...linesOf(item.raw.t)],
    },
    filter: (item, index) => index === 0 && item.raw.t !== undefined,
  };
  const legend = (display) => ({
    display, labels: { color: css("--text"), usePointStyle: true, boxHeight: 7, filter: (item) => item.text !== "" },
  });
  const points = (trials, x, style) => Object.assign({ data: trials.map((t) => ({ x: x(t), y: valueOf(t), t })), pointHitRadius: 4 }, style);
  const bestPoint = (x) => points(search.best !== null && hasValue(search.best) ? [search.best] : [], x, {
    label: bestLabel, order: -1, pointRadius: 6, pointStyle: "rectRot", backgroundColor: colour(1), borderColor: css("--card"), borderWidth: 1,
  });

  // Value per trial, and the best so far.
  const lastValues = () => new Map(search.curves[objective].map((curve) => {
    const values = curve.values.filter((value) => value !== null);
    return [curve.trial, values.length ? values[values.length - 1] : null];
  }));
  if (byId("search-history-chart")) {
    const scale = scaleOf("search-history-chart", ["search-history-chart"], comparedValues);
    const number = (t) => search.numbers[t];
    const radius = all.length > MANY ? 2 : 3;
    show("search-history-chart", () => {
      const last = lastValues();
      const pruned = all.filter((t) => search.states[t] === "pruned" && (last.get(t) ?? null) !== null);
      const best = [];
      compared().filter((t) => search.feasible[t]).forEach((t) => {
        if (!best.length || lossOf(t) < lossOf(best[best.length - 1])) best.push(t);
      });
      const line = best.map((t) => ({ x: number(t), y: valueOf(t), t }));
      if (best.length) line.push({ x: number(all.length - 1), y: valueOf(best[best.length - 1]), t: best[best.length - 1] });
      const failed = all.filter((t) => search.states[t] === "failed");
      const marks = {
        id: "failed",
        afterDatasetsDraw({ ctx, chartArea, scales }) {
          ctx.save();
          ctx.strokeStyle = colour(4);
          ctx.lineWidth = 2;
          ctx.beginPath();
          failed.forEach((t) => {
            ctx.moveTo(scales.x.getPixelForValue(number(t)), chartArea.bottom);
            ctx.lineTo(scales.x.getPixelForValue(number(t)), chartArea.bottom - 8);
          });
          ctx.stroke();
          ctx.restore();
        },
      };
      const type = scale();
      return {
        type: "scatter",
        data: {
          datasets: [
            bestPoint(number),
            { label: "best so far", type: "line", data: line, stepped: true, borderColor: colour(1), backgroundColor: colour(1), borderWidth: 2,
              pointRadius: 0, pointHitRadius: 0, pointStyle: "line", order: 0 },
            points(compared().filter((t) => search.feasible[t]), number, { label: "complete", order: 1, pointRadius: radius,
              backgroundColor: withAlpha(colour(0), 0.7), borderWidth: 0 }),
            points(compared().filter((t) => !search.feasible[t]), number, { label: "breaks a constraint", order: 2, pointRadius: radius,
              backgroundColor: "transparent", borderColor: colour(7), borderWidth: 1 }),
            { label: "pruned, last value", data: pruned.map((t) => ({ x: number(t), y: last.get(t), t })), order: 3, pointRadius: radius,
              pointStyle: "crossRot", borderColor: withAlpha(colour(7), 0.6), backgroundColor: "transparent", pointHitRadius: 4 },
            { label: failed.length ? "failed" : "", data: [], pointStyle: "line", borderColor: colour(4), backgroundColor: colour(4), borderWidth: 2 },
          ].filter((set) => set.data.length > 0 || (set.label === "failed")),
        },
        options: {
          clip: 8,
          layout: { padding: { right: 8 } },
          scales: {
            x: axis("trial", Object.assign({ type: "linear" }, numberTicks({ precision: 0 }),
              all.length > 1 ? { min: number(0), max: number(all.length - 1) } : {})),
            y: valueAxis(type, comparedValues()),
          },
          plugins: {
            legend: legend(true),
            tooltip: Object.assign({}, trialTooltip, {
              callbacks: { title: trialTooltip.callbacks.title, label: (item) => [item.dataset.label + ": " + shown(item.raw.y), ...linesOf(item.raw.t)] },
            }),
          },
        },
        plugins: [marks],
      };
    });
  }

  // Two objectives against each other. The line parts what some trial reached from what none did.
  show("pareto-chart", () => {
    const at = (t) => ({ x: search.values[0][t], y: search.values[1][t], t });
    const valued = all.filter((t) => isComplete(t) && search.values[0][t] !== null && search.values[1][t] !== null);
    const isOnFront = new Set(search.pareto);
    const front = valued.filter((t) => isOnFront.has(t)).sort((a, b) => lossOf(a, 0) - lossOf(b, 0));
    const title = (o) => clipped(objectiveName(o), 40) + (search.objectives[o].maximizes ? " (maximized)" : " (minimized)");
    const best = search.best === null || !valued.includes(search.best) ? [] : [at(search.best)];
    const others = valued.filter((t) => !isOnFront.has(t));
    return {
      type: "scatter",
      data: {
        datasets: [
          { label: bestLabel, data: best, order: -1, pointRadius: 6, pointStyle: "rectRot", backgroundColor: colour(1), borderColor: css("--card"), borderWidth: 1 },
          { label: "Pareto front", type: "line", data: front.map(at), stepped: true, borderColor: withAlpha(colour(0), 0.6), backgroundColor: colour(0),
            borderWidth: 1.5, pointRadius: 4, pointHitRadius: 4, order: 0 },
          { label: "others", data: others.filter((t) => search.feasible[t]).map(at), pointRadius: all.length > MANY ? 2 : 3, pointHitRadius: 4,
            backgroundColor: withAlpha(colour(7), 0.5), borderWidth: 0, order: 1 },
          { label: "breaks a constraint", data: others.filter((t) => !search.feasible[t]).map(at), pointRadius: all.length > MANY ? 2 : 3,
            pointHitRadius: 4, backgroundColor: "transparent", borderColor: colour(7), borderWidth: 1, order: 2 },
        ].filter((set) => set.data.length > 0),
      },
      options: {
        layout: { padding: { right: 8 } },
        scales: { x: axis(title(0), Object.assign({ type: "linear" }, numberTicks())), y: axis(title(1), Object.assign({ type: "linear" }, numberTicks())) },
        plugins: {
          legend: legend(true),
          tooltip: Object.assign({}, trialTooltip, {
            callbacks: {
              title: trialTooltip.callbacks.title,
              label: (item) => [...search.objectives.map((one, o) => one.name + ": " + shown(valueOf(item.raw.t, o))), ...linesOf(item.raw.t)],
            },
          }),
        },
      },
    };
  });

  // Value against each dimension. Trials with the same choice stand beside each other.
  if (byId("slices-scale")) {
    const scale = scaleOf("slices", search.order.map((d) => "slice-" + d), comparedValues);
    search.order.forEach((d) => {
      const dimension = search.dimensions[d];
      const beside = (t) => ((search.numbers[t] * 0.618034) % 1 - 0.5) * 0.5;
      const x = (t) => dimensionValue(d, t) + (dimension.choices ? beside(t) : 0);
      show("slice-" + d, () => {
        const trials = compared().filter((t) => dimensionValue(d, t) !== null);
        const strength = (t) => 0.2 + 0.75 * (t / Math.max(1, all.length - 1));
        const isBestHere = search.best !== null && dimensionValue(d, search.best) !== null;
        const type = scale();
        const range = dimension.choices
          ? Object.assign(numberTicks({ callback: (value) => clipped(dimension.choices[value] ?? "", 14), autoSkipPadding: 6 }),
            { type: "linear", min: -0.5, max: dimension.choices.length - 0.5, grid: { display: false },
              afterBuildTicks: (built) => { built.ticks = dimension.choices.map((unused, value) => ({ value })); } })
          : Object.assign(dimension.log ? logarithmicTicks(dimension.low, dimension.high) : numberTicks({ maxTicksLimit: 6 }),
            { type: dimension.log ? "logarithmic" : "linear", min: dimension.low, max: dimension.high });
        return {
          type: "scatter",
          data: {
            datasets: [
              isBestHere ? bestPoint(x) : { data: [] },
              // Hollow where a constraint is broken.
              points(trials, x, { order: 1, pointRadius: trials.length > MANY ? 2 : 3,
                pointBorderWidth: trials.map((t) => (search.feasible[t] ? 0 : 1)), pointBorderColor: colour(7),
                pointBackgroundColor: trials.map((t) => (search.feasible[t] ? withAlpha(colour(0), strength(t)) : "transparent")) }),
            ],
          },
          options: {
            clip: 8,
            layout: { padding: { right: 8 } },
            scales: { x: axis("", Object.assign(range, { title: { display: false } })), y: valueAxis(type, comparedValues()) },
            plugins: { tooltip: trialTooltip },
          },
        };
      });
    });
  }

  // All curves of a state are one line with gaps, so that a thousand trials are a handful of lines.
  if (byId("learning-chart")) {
    const curveValues = () => search.curves[objective].flatMap((curve) => curve.values).filter((value) => value !== null);
    const scale = scaleOf("learning-chart", ["learning-chart"], curveValues);
    const styles = {
      complete: { paint: 0, alpha: 0.6, order: 1 },
      paused: { paint: 6, alpha: 0.6, order: 2 },
      pruned: { paint: 7, alpha: 0.4, order: 3 },
      failed: { paint: 4, alpha: 0.5, order: 4 },
      other: { paint: 7, alpha: 0.4, order: 5 },
    };
    const joined = (curves) => curves.flatMap(({ trial, epochs, values }) => [
      ...epochs.map((x, i) => ({ x, y: values[i], t: trial, single: epochs.length === 1 })),
      { x: epochs[epochs.length - 1], y: null, t: trial },
    ]);
    show("learning-chart", () => {
      const curves = search.curves[objective];
      const states = [...new Set(curves.map((curve) => search.states[curve.trial]))];
      const crowd = Math.min(1, (30 / curves.length) ** 0.6);  // many lines are faint ones
      const set = (label, members, paint, alpha, style) => {
        const line = joined(members);
        return Object.assign({ label, data: line, borderColor: withAlpha(paint, alpha), backgroundColor: paint, borderWidth: 1,
          pointHoverRadius: 3, pointHitRadius: 3, pointRadius: line.map((point) => (point.single ? 2 : 0)) }, style);
      };
      const best = curves.filter((curve) => curve.trial === search.best);
      const datasets = states.map((state) => {
        const members = curves.filter((curve) => curve.trial !== search.best && search.states[curve.trial] === state);
        const { paint, alpha, order } = styles[state] || styles.other;
        return set(state + " " + members.length, members, colour(paint), alpha * crowd, { order });
      }).filter((one) => one.data.length > 0);
      if (best.length) {
        datasets.unshift(set(bestLabel + " " + search.numbers[search.best], best, colour(1), 1, { borderWidth: 2.5, order: 0 }));
      }
      return {
        type: "line",
        data: { datasets },
        options: {
          normalized: false,
          clip: 8,  // a curve of one epoch is a point
          interaction: { mode: "nearest", axis: "xy", intersect: true },
          scales: {
            x: axis("epoch", Object.assign({ type: "linear", min: Math.min(...curves.map((curve) => curve.epochs[0])) }, numberTicks({ precision: 0 }))),
            y: valueAxis(scale(), curveValues()),
          },
          plugins: {
            legend: legend(true),
            tooltip: {
              displayColors: false,
              filter: (item, index) => index === 0,
              callbacks: {
                title: (items) => (items.length ? nameOf(items[0].raw.t) + " (" + search.states[items[0].raw.t] + ")" : ""),
                label: (item) => ["epoch " + item.raw.x + ": " + shown(item.raw.y), ...linesOf(item.raw.t)],
              },
            },
          },
        },
      };
    });
  }

  // Parallel coordinates: an axis per dimension, the most important first, and one per objective.
  const parallel = byId("parallel-chart");
  if (parallel) {
    const ROOM = 76;  // pixels from axis to axis, at least
    const PAD = { left: 56, right: 64, top: 44, bottom: 8 };
    const NEAR = 12;
    const positionOf = (low, high, isLog) => (value) => {
      const scaled = isLog ? Math.log : Number;
      return high > low ? (scaled(value) - scaled(low)) / (scaled(high) - scaled(low)) : 0.5;
    };
    function rangeTicks(low, high, isLog, position, isInteger) {
      const inside = [];
      if (isLog && high / low >= 100) {
        for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high) + 1e-9; ++power) inside.push(10 ** power);
      } else if (high > low) {
        for (const share of [0, 0.25, 0.5, 0.75, 1]) inside.push(isLog ? low * (high / low) ** share : low + share * (high - low));
      }
      return (inside.length ? inside : [low]).map((value) => (isInteger ? Math.round(value) : Number(value.toPrecision(3))))
        .map((value) => ({ at: position(value), text: tickText(value) }));
    }
    function dimensionAxis(d) {
      const dimension = search.dimensions[d];
      const titled = { title: labels[d], conditional: dimension.conditional };
      if (dimension.choices) {
        const position = (choice) => (choice + 0.5) / dimension.choices.length;
        const step = Math.ceil(dimension.choices.length / 16);
        return Object.assign(titled, {
          at: (t) => (dimensionValue(d, t) === null ? null : position(dimensionValue(d, t))),
          ticks: dimension.choices.map((text, choice) => ({ at: position(choice), text })).filter((tick, choice) => choice % step === 0),
        });
      }
      const position = positionOf(dimension.low, dimension.high, dimension.log);
      return Object.assign(titled, {
        at: (t) => (dimensionValue(d, t) === null ? null : position(dimensionValue(d, t))),
        ticks: rangeTicks(dimension.low, dimension.high, dimension.log, position, dimension.integer),
      });
    }
    function objectiveAxis(o) {
      const values = all.filter((t) => isComplete(t) && valueOf(t, o) !== null).map((t) => valueOf(t, o));
      const low = Math.min(...values);
      const high = Math.max(...values);
      const isLog = values.length > 0 && low > 0 && dwarfs(values);
      const position = positionOf(low, high, isLog);
      return {
        title: objectiveName(o), strong: true, conditional: false, at: (t) => (valueOf(t, o) === null ? null : position(valueOf(t, o))),
        ticks: values.length ? rangeTicks(low, high, isLog, position) : [],
      };
    }
    const axes = [...search.order.map(dimensionAxis), ...search.objectives.map((unused, o) => objectiveAxis(o))];
    const trials = all.filter((t) => isComplete(t) && search.placed[t]);
    const hasUnused = axes.some((one) => one.conditional);
    const brushes = new Map();  // axis -> [from, to] on it
    const hint = byId("parallel-hint");
    const clear = byId("parallel-clear");
    const base = document.createElement("canvas");
    let size = { width: 0, height: 0, ratio: 1 };
    let lit = null;

    const frame = parallel.parentElement;
    frame.style.minWidth = PAD.left + PAD.right + ROOM * (axes.length - 1) + "px";
    const xOf = (a) => PAD.left + (axes.length > 1 ? (a * (size.width - PAD.left - PAD.right)) / (axes.length - 1) : 0);
    const bottom = () => size.height - PAD.bottom - (hasUnused ? 26 : 0);
    const yAt = (position) => bottom() - position * (bottom() - PAD.top);
    const yOf = (a, t) => {
      const position = axes[a].at(t);
      return position === null ? bottom() + 24 : yAt(position);
    };
    const isPicked = (t) => [...brushes].every(([a, [from, to]]) => {
      const position = axes[a].at(t);
      return position !== null && position >= from && position <= to;
    });
    function trace(ctx, t) {
      ctx.beginPath();
      axes.forEach((unused, a) => (a ? ctx.lineTo(xOf(a), yOf(a, t)) : ctx.moveTo(xOf(a), yOf(a, t))));
      ctx.stroke();
    }
    // The text stays readable on lines.
    function write(ctx, text, x, y, most) {
      let shownText = text;
      while (shownText.length > 1 && ctx.measureText(shownText).width > most) shownText = clipped(shownText, shownText.length - 1);
      ctx.lineWidth = 4;
      ctx.lineJoin = "round";
      ctx.strokeStyle = css("--card");
      ctx.strokeText(shownText, x, y);
      ctx.fillText(shownText, x, y);
    }
    function paintBase() {
      const ctx = base.getContext("2d");
      ctx.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
      ctx.clearRect(0, 0, size.width, size.height);
      const rank = (t) => (valueOf(t) === null ? Infinity : search.feasible[t] ? lossOf(t) : Number.MAX_VALUE);
      const worstFirst = [...trials].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) > rank(a) ? 1 : -1));
      const least = trials.length > MANY ? 0.05 : 0.15;
      const paint = colour(0);
      const steepness = 2 + Math.min(8, trials.length / 120);  // of many lines only the best are strong
      ctx.lineWidth = trials.length > MANY ? 1 : 1.4;
      worstFirst.forEach((t, i) => {
        const good = trials.length > 1 ? i / (trials.length - 1) : 1;
        ctx.strokeStyle = withAlpha(isPicked(t) ? paint : colour(7), isPicked(t) ? least + (0.85 - least) * good ** steepness : 0.04);
        trace(ctx, t);
      });
      if (search.best !== null && trials.includes(search.best) && isPicked(search.best)) {
        ctx.strokeStyle = colour(1);
        ctx.lineWidth = 2.5;
        trace(ctx, search.best);
      }
      const room = axes.length > 1 ? xOf(1) - xOf(0) : ROOM;
      const fonts = getComputedStyle(document.body).fontFamily;
      axes.forEach((one, a) => {
        ctx.strokeStyle = css("--soft");
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.moveTo(xOf(a), yAt(0));
        ctx.lineTo(xOf(a), yAt(1));
        ctx.stroke();
        if (brushes.has(a)) {
          const [from, to] = brushes.get(a);
          ctx.fillStyle = withAlpha(colour(1), 0.35);
          ctx.fillRect(xOf(a) - 6, yAt(to), 12, yAt(from) - yAt(to));
        }
        ctx.font = "11px " + fonts;
        ctx.textBaseline = "middle";
        ctx.textAlign = "left";
        ctx.fillStyle = css("--soft");
        one.ticks.forEach((tick) => write(ctx, tick.text, xOf(a) + 5, yAt(tick.at), Math.min(room, 112) - 20));
        if (one.conditional) write(ctx, "unused", xOf(a) + 5, bottom() + 24, room - 24);
        ctx.font = (one.strong ? "600 " : "") + "12px " + fonts;
        ctx.fillStyle = css("--text");
        ctx.textAlign = "center";
        // Titles of narrow axes are on two lines in turn.
        const isNarrow = room < 130;
        write(ctx, one.title, xOf(a), PAD.top - 18 - (isNarrow && a % 2 ? 15 : 0), (isNarrow ? 2 * room : room) - 12);
      });
    }
    function paintOver() {
      const ctx = parallel.getContext("2d");
      ctx.setTransform(1, 0, 0, 1, 0, 0);
      ctx.clearRect(0, 0, parallel.width, parallel.height);
      ctx.drawImage(base, 0, 0);
      if (lit === null) return;
      ctx.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
      ctx.strokeStyle = css("--text");
      ctx.lineWidth = 2;
      trace(ctx, lit);
    }
    function paint() {
      const ratio = Math.max(1, window.devicePixelRatio || 1);
      size = { width: frame.clientWidth, height: frame.clientHeight, ratio };
      for (const canvas of [base, parallel]) {
        canvas.width = Math.round(size.width * ratio);
        canvas.height = Math.round(size.height * ratio);
      }
      parallel.style.width = size.width + "px";
      parallel.style.height = size.height + "px";
      clear.hidden = brushes.size === 0;
      paintBase();
      paintOver();
    }
    drawBy("parallel-chart", paint);
    new ResizeObserver(() => { if (frame.clientWidth !== size.width) paint(); }).observe(frame);

    const place = (event) => {
      const box = parallel.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    function nearest({ x, y }) {
      const a = Math.max(0, Math.min(axes.length - 2, axes.findIndex((unused, i) => xOf(i) > x) - 1));
      const share = axes.length > 1 ? (x - xOf(a)) / (xOf(a + 1) - xOf(a)) : 0;
      if (axes.length < 2 || share < -0.1 || share > 1.1) return null;
      let found = null;
      let least = NEAR;
      trials.filter(isPicked).forEach((t) => {
        const distance = Math.abs(yOf(a, t) + share * (yOf(a + 1, t) - yOf(a, t)) - y);
        if (distance < least) { least = distance; found = t; }
      });
      return found;
    }
    function light(t, event) {
      hint.hidden = t === null;
      if (t !== null) {
        hint.textContent = [nameOf(t), ...search.objectives.map((one, o) => one.name + ": " + shown(valueOf(t, o))), ...linesOf(t)].join("\n");
        const width = hint.offsetWidth;
        hint.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8)) + "px";
        hint.style.top = Math.min(event.clientY + 14, window.innerHeight - hint.offsetHeight - 8) + "px";
      }
      if (t !== lit) { lit = t; paintOver(); }
    }
    let dragged = null;  // { axis, from }
    const positionAt = (y) => Math.max(0, Math.min(1, (bottom() - y) / (bottom() - PAD.top)));
    parallel.addEventListener("pointerdown", (event) => {
      const { x, y } = place(event);
      const a = axes.findIndex((unused, i) => Math.abs(xOf(i) - x) < NEAR);
      if (a < 0) return;
      dragged = { a, from: y };
      parallel.setPointerCapture(event.pointerId);
    });
    parallel.addEventListener("pointermove", (event) => {
      const at = place(event);
      if (!dragged) {
        parallel.style.cursor = axes.some((unused, i) => Math.abs(xOf(i) - at.x) < NEAR) ? "ns-resize" : "default";
        return light(nearest(at), event);
      }
      if (Math.abs(at.y - dragged.from) < 4) brushes.delete(dragged.a);
      else brushes.set(dragged.a, [positionAt(Math.max(at.y, dragged.from)), positionAt(Math.min(at.y, dragged.from))]);
      paint();
    });
    parallel.addEventListener("pointerup", (event) => {
      if (dragged && Math.abs(place(event).y - dragged.from) < 4) { brushes.delete(dragged.a); paint(); }
      dragged = null;
    });
    parallel.addEventListener("pointercancel", () => { dragged = null; });
    parallel.addEventListener("pointerleave", (event) => { if (!dragged) light(null, event); });
    clear.addEventListener("click", () => { brushes.clear(); paint(); });
  }

  // The trials with all digits, one a line, in the order of their numbers.
  const save = byId("trials-csv");
  if (save) {
    const field = (value) => {
      const text = value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
      return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
    };
    const isInfeasible = search.feasible.includes(false);
    const table = () => {
      const rows = [["trial", "state", ...search.objectives.map((one) => one.name), ...(isInfeasible ? ["feasible"] : []), "epochs", ...search.paths, "error"]];
      all.forEach((t) => rows.push([search.numbers[t], search.states[t], ...search.values.map((values) => values[t]),
        ...(isInfeasible ? [search.feasible[t]] : []), search.epochs[t], ...search.params.map((column) => column[t]), search.errors[t]]));
      return rows.map((row) => row.map(field).join(",") + "\n").join("");
    };
    save.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
      link.download = "trials.csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();
