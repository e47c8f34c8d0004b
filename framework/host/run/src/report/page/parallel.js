// Parallel coordinates: an axis per dimension, the most important first, and one per objective.
charts.parallel = (canvas, block, controls) => {
  const ROOM = 76;  // pixels from axis to axis, at least
  const PAD = { left: 56, right: 64, top: 44, bottom: 8 };
  const NEAR = 12;
  const axes = [...byImportance.map(dimensionAxis), ...search.objectives.map((unused, o) => objectiveAxis(o))];
  const trials = all.filter((trial) => isComplete(trial) && trial.point);
  const unusedRoom = axes.some((one) => one.conditional) ? 26 : 0;
  const brushes = new Map();  // axis -> [from, to] on it
  const clear = element("button", { class: "chip", type: "button", hidden: "", click: () => { brushes.clear(); paint(); } }, "Show all");
  const hint = element("div", { class: "hint", hidden: "" });
  const frame = element("div", { class: "chart parallel" }, canvas);
  const base = element("canvas");
  let size = { width: 0, height: 0, ratio: 1 };
  let lit = null;
  canvas.setAttribute("aria-label", "The values of each complete trial as a line; the table of trials has them as numbers");
  controls.append(clear);
  objectivePicker(controls);
  frame.style.minWidth = PAD.left + PAD.right + ROOM * (axes.length - 1) + "px";

  const xOf = (a) => PAD.left + (axes.length > 1 ? (a * (size.width - PAD.left - PAD.right)) / (axes.length - 1) : 0);
  const bottom = () => size.height - PAD.bottom - unusedRoom;
  const yAt = (position) => bottom() - position * (bottom() - PAD.top);
  const yOf = (a, trial) => {
    const position = axes[a].at(trial);
    return position === null ? bottom() + 24 : yAt(position);
  };
  const isPicked = (trial) => [...brushes].every(([a, [from, to]]) => {
    const position = axes[a].at(trial);
    return position !== null && position >= from && position <= to;
  });
  function trace(ctx, trial, style, width) {
    Object.assign(ctx, { strokeStyle: style, lineWidth: width });
    ctx.beginPath();
    axes.forEach((unused, a) => ctx.lineTo(xOf(a), yOf(a, trial)));
    ctx.stroke();
  }
  // The text stays readable on lines.
  function write(ctx, text, x, y, most) {
    let shown = text;
    while (shown.length > 1 && ctx.measureText(shown).width > most) shown = clipped(shown, shown.length - 1);
    Object.assign(ctx, { lineWidth: 4, lineJoin: "round", strokeStyle: css("--card") });
    ctx.strokeText(shown, x, y);
    ctx.fillText(shown, x, y);
  }
  function paintAxis(ctx, one, a) {
    const room = axes.length > 1 ? xOf(1) - xOf(0) : ROOM;
    const fonts = getComputedStyle(document.body).fontFamily;
    ctx.fillStyle = css("--soft");
    ctx.fillRect(xOf(a) - 0.5, yAt(1), 1, yAt(0) - yAt(1));
    if (brushes.has(a)) {
      const [from, to] = brushes.get(a);
      ctx.fillStyle = withAlpha(colour(1), 0.35);
      ctx.fillRect(xOf(a) - 6, yAt(to), 12, yAt(from) - yAt(to));
    }
    Object.assign(ctx, { font: "11px " + fonts, textBaseline: "middle", textAlign: "left", fillStyle: css("--soft") });
    one.ticks.forEach((tick) => write(ctx, tick.text, xOf(a) + 5, yAt(tick.at), Math.min(room, 112) - 20));
    if (one.conditional) write(ctx, "unused", xOf(a) + 5, bottom() + 24, room - 24);
    Object.assign(ctx, { font: (one.strong ? "600 " : "") + "12px " + fonts, fillStyle: css("--text"), textAlign: "center" });
    // Titles of narrow axes are on two lines in turn.
    const isNarrow = room < 130;
    write(ctx, one.title, xOf(a), PAD.top - 18 - (isNarrow && a % 2 ? 15 : 0), (isNarrow ? 2 * room : room) - 12);
  }
  function paintBase() {
    const ctx = base.getContext("2d");
    ctx.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    ctx.clearRect(0, 0, size.width, size.height);
    const rank = (trial) => (valueOf(trial) === null ? Infinity : trial.feasible ? lossOf(trial) : Number.MAX_VALUE);
    const worstFirst = [...trials].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) > rank(a) ? 1 : -1));
    const least = trials.length > MANY ? 0.05 : 0.15;
    const steepness = 2 + Math.min(8, trials.length / 120);  // of many lines only the best are strong
    worstFirst.forEach((trial, i) => {
      const good = trials.length > 1 ? i / (trials.length - 1) : 1;
      const style = isPicked(trial) ? withAlpha(colour(0), least + (0.85 - least) * good ** steepness) : withAlpha(colour(7), 0.04);
      trace(ctx, trial, style, trials.length > MANY ? 1 : 1.4);
    });
    if (best !== null && trials.includes(best) && isPicked(best)) trace(ctx, best, colour(1), 2.5);
    axes.forEach((one, a) => paintAxis(ctx, one, a));
  }
  function paintOver() {
    const ctx = canvas.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(base, 0, 0);
    ctx.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    if (lit !== null) trace(ctx, lit, css("--text"), 2);
  }
  function paint() {
    size = { width: frame.clientWidth, height: frame.clientHeight, ratio: Math.max(1, window.devicePixelRatio || 1) };
    if (!size.width || !size.height) return;
    for (const one of [base, canvas]) {
      one.width = Math.round(size.width * size.ratio);
      one.height = Math.round(size.height * size.ratio);
    }
    Object.assign(canvas.style, { width: size.width + "px", height: size.height + "px" });
    clear.hidden = brushes.size === 0;
    paintBase();
    paintOver();
  }
  drawings.push({ key: "search", draw: paint });
  new ResizeObserver(() => { if (frame.clientWidth !== size.width) paint(); }).observe(frame);
  watchPointer();
  return joined([element("div", { class: "scroll" }, frame), caption("A line is a complete trial; the stronger its color, the better. Drag along an axis to select a range."), hint]);

  function watchPointer() {
    let dragged = null;  // { a, from }
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const axisNear = (x) => axes.findIndex((unused, a) => Math.abs(xOf(a) - x) < NEAR);
    const positionAt = (y) => Math.max(0, Math.min(1, (bottom() - y) / (bottom() - PAD.top)));
    const isClick = (y) => Math.abs(y - dragged.from) < 4;
    const listen = (name, handle) => canvas.addEventListener(name, (event) => handle(place(event), event));
    listen("pointerdown", ({ x, y }, event) => {
      const a = axisNear(x);
      if (a < 0) return;
      dragged = { a, from: y };
      canvas.setPointerCapture(event.pointerId);
    });
    listen("pointermove", ({ x, y }, event) => {
      if (!dragged) {
        canvas.style.cursor = axisNear(x) < 0 ? "default" : "ns-resize";
        light(nearest(x, y), event);
        return;
      }
      if (isClick(y)) brushes.delete(dragged.a);
      else brushes.set(dragged.a, [positionAt(Math.max(y, dragged.from)), positionAt(Math.min(y, dragged.from))]);
      paint();
    });
    listen("pointerup", ({ y }) => {
      if (dragged && isClick(y)) { brushes.delete(dragged.a); paint(); }
      dragged = null;
    });
    listen("pointercancel", () => { dragged = null; });
    listen("pointerleave", (at, event) => { if (!dragged) light(null, event); });
  }
  function nearest(x, y) {
    const a = Math.max(0, Math.min(axes.length - 2, axes.findIndex((unused, i) => xOf(i) > x) - 1));
    const part = axes.length > 1 ? (x - xOf(a)) / (xOf(a + 1) - xOf(a)) : 0;
    if (axes.length < 2 || part < -0.1 || part > 1.1) return null;
    const distance = (trial) => Math.abs(yOf(a, trial) + part * (yOf(a + 1, trial) - yOf(a, trial)) - y);
    return trials.filter(isPicked).reduce((found, trial) => (distance(trial) < (found ? distance(found) : NEAR) ? trial : found), null);
  }
  function light(trial, event) {
    hint.hidden = trial === null;
    if (trial !== null) {
      hint.textContent = [nameOf(trial), ...search.objectives.map((one, o) => one.name + ": " + short(valueOf(trial, o))), ...linesOf(trial)].join("\n");
      hint.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - hint.offsetWidth - 8)) + "px";
      hint.style.top = Math.min(event.clientY + 14, window.innerHeight - hint.offsetHeight - 8) + "px";
    }
    if (trial !== lit) { lit = trial; paintOver(); }
  }
};

function positionOf(low, high, isLog) {
  const scaled = isLog ? Math.log : Number;
  return (value) => (value === null ? null : high > low ? (scaled(value) - scaled(low)) / (scaled(high) - scaled(low)) : 0.5);
}
function rangeTicks(low, high, isLog, position, isInteger) {
  const inside = [];
  if (isLog && high / low >= 100) {
    for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high) + 1e-9; ++power) inside.push(10 ** power);
  } else if (high > low) {
    for (const part of [0, 0.25, 0.5, 0.75, 1]) inside.push(isLog ? low * (high / low) ** part : low + part * (high - low));
  }
  return (inside.length ? inside : [low]).map((value) => (isInteger ? Math.round(value) : Number(value.toPrecision(3))))
    .map((value) => ({ at: position(value), text: tickText(value) }));
}
function dimensionAxis(d) {
  const { choices, when, low, high, log, integer } = search.dimensions[d];
  const position = choices ? (choice) => (choice === null ? null : (choice + 0.5) / choices.length) : positionOf(low, high, log);
  const step = choices ? Math.ceil(choices.length / 16) : 0;
  const ticks = choices ? choices.map((value, choice) => ({ at: position(choice), text: setting(value) })).filter((tick, choice) => choice % step === 0)
    : rangeTicks(low, high, log, position, integer);
  return { title: labels[d], conditional: when !== null, ticks, at: (trial) => position(placeOf(d, trial)) };
}
function objectiveAxis(o) {
  const values = all.filter((trial) => hasValue(trial, o)).map((trial) => valueOf(trial, o));
  const low = Math.min(...values);
  const high = Math.max(...values);
  const isLog = values.length > 0 && low > 0 && dwarfs(values);
  const position = positionOf(low, high, isLog);
  return { title: objectiveName(o), strong: true, conditional: false, ticks: values.length ? rangeTicks(low, high, isLog, position) : [],
    at: (trial) => position(valueOf(trial, o)) };
}

