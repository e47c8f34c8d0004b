// Parallel coordinates: an axis per dimension, the most important first, and one per objective.
class ParallelCoordinates {
  static ROOM = 76;  // pixels from axis to axis, at least
  static PAD = { left: 56, right: 64, top: 44, bottom: 8 };
  static NEAR = 12;

  constructor(canvas, controls) {
    this.canvas = canvas;
    this.axes = [...byImportance.map(dimensionAxis), ...search.objectives.map((unused, o) => objectiveAxis(o))];
    this.trials = all.filter((trial) => isComplete(trial) && trial.point);
    this.unusedRoom = this.axes.some((one) => one.conditional) ? 26 : 0;
    this.brushes = new Map();  // axis -> [from, to] on it
    this.base = element("canvas");  // everything but the line under the pointer
    this.size = { width: 0, height: 0, ratio: 1 };
    this.lit = null;
    this.dragged = null;  // { a, from }
    this.clear = element("button", { class: "chip", type: "button", hidden: "", click: () => { this.brushes.clear(); this.paint(); } }, "Show all");
    this.hint = element("div", { class: "hint", hidden: "" });
    this.frame = element("div", { class: "chart parallel" }, canvas);
    this.frame.style.minWidth = ParallelCoordinates.PAD.left + ParallelCoordinates.PAD.right + ParallelCoordinates.ROOM * (this.axes.length - 1) + "px";
    controls.append(this.clear);
    drawings.push({ key: "search", draw: () => this.paint() });
    new ResizeObserver(() => { if (this.frame.clientWidth !== this.size.width) this.paint(); }).observe(this.frame);
    this.listen();
  }

  xOf(a) {
    const { left, right } = ParallelCoordinates.PAD;
    return left + (this.axes.length > 1 ? (a * (this.size.width - left - right)) / (this.axes.length - 1) : 0);
  }
  get top() { return ParallelCoordinates.PAD.top; }
  get bottom() { return this.size.height - ParallelCoordinates.PAD.bottom - this.unusedRoom; }
  yAt(position) { return this.bottom - position * (this.bottom - this.top); }
  yOf(a, trial) {
    const position = this.axes[a].at(trial);
    return position === null ? this.bottom + 24 : this.yAt(position);
  }
  isPicked(trial) {
    return [...this.brushes].every(([a, [from, to]]) => {
      const position = this.axes[a].at(trial);
      return position !== null && position >= from && position <= to;
    });
  }

  trace(ctx, trial, style, width) {
    Object.assign(ctx, { strokeStyle: style, lineWidth: width });
    ctx.beginPath();
    this.axes.forEach((unused, a) => ctx.lineTo(this.xOf(a), this.yOf(a, trial)));
    ctx.stroke();
  }
  // The text stays readable on lines.
  write(ctx, text, x, y, most) {
    let shown = text;
    while (shown.length > 1 && ctx.measureText(shown).width > most) shown = clipped(shown, shown.length - 1);
    Object.assign(ctx, { lineWidth: 4, lineJoin: "round", strokeStyle: css("--card") });
    ctx.strokeText(shown, x, y);
    ctx.fillText(shown, x, y);
  }
  paintAxis(ctx, one, a) {
    const room = this.axes.length > 1 ? this.xOf(1) - this.xOf(0) : ParallelCoordinates.ROOM;
    const x = this.xOf(a);
    const fonts = getComputedStyle(document.body).fontFamily;
    ctx.fillStyle = css("--soft");
    ctx.fillRect(x - 0.5, this.yAt(1), 1, this.yAt(0) - this.yAt(1));
    if (this.brushes.has(a)) {
      const [from, to] = this.brushes.get(a);
      ctx.fillStyle = withAlpha(colour(1), 0.35);
      ctx.fillRect(x - 6, this.yAt(to), 12, this.yAt(from) - this.yAt(to));
    }
    Object.assign(ctx, { font: "11px " + fonts, textBaseline: "middle", textAlign: "left", fillStyle: css("--soft") });
    one.ticks.forEach((tick) => this.write(ctx, tick.text, x + 5, this.yAt(tick.at), Math.min(room, 112) - 20));
    if (one.conditional) this.write(ctx, "unused", x + 5, this.bottom + 24, room - 24);
    Object.assign(ctx, { font: (one.strong ? "600 " : "") + "12px " + fonts, fillStyle: css("--text"), textAlign: "center" });
    // Titles of narrow axes are on two lines in turn.
    const isNarrow = room < 130;
    this.write(ctx, one.title, x, this.top - 18 - (isNarrow && a % 2 ? 15 : 0), (isNarrow ? 2 * room : room) - 12);
  }
  paintBase() {
    const ctx = this.base.getContext("2d");
    const count = this.trials.length;
    ctx.setTransform(this.size.ratio, 0, 0, this.size.ratio, 0, 0);
    ctx.clearRect(0, 0, this.size.width, this.size.height);
    const rank = (trial) => (valueOf(trial) === null ? Infinity : trial.feasible ? lossOf(trial) : Number.MAX_VALUE);
    const worstFirst = [...this.trials].sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) > rank(a) ? 1 : -1));
    const least = count > MANY ? 0.05 : 0.15;
    const steepness = 2 + Math.min(8, count / 120);  // of many lines only the best are strong
    worstFirst.forEach((trial, i) => {
      const good = count > 1 ? i / (count - 1) : 1;
      const style = this.isPicked(trial) ? withAlpha(colour(0), least + (0.85 - least) * good ** steepness) : withAlpha(colour(7), 0.04);
      this.trace(ctx, trial, style, count > MANY ? 1 : 1.4);
    });
    if (best !== null && this.trials.includes(best) && this.isPicked(best)) this.trace(ctx, best, colour(1), 2.5);
    this.axes.forEach((one, a) => this.paintAxis(ctx, one, a));
  }
  paintOver() {
    const ctx = this.canvas.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.canvas.width, this.canvas.height);
    ctx.drawImage(this.base, 0, 0);
    ctx.setTransform(this.size.ratio, 0, 0, this.size.ratio, 0, 0);
    if (this.lit !== null) this.trace(ctx, this.lit, css("--text"), 2);
  }
  paint() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    this.size = { width, height, ratio };
    if (!width || !height) return;
    for (const one of [this.base, this.canvas]) Object.assign(one, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    Object.assign(this.canvas.style, { width: width + "px", height: height + "px" });
    this.clear.hidden = this.brushes.size === 0;
    this.paintBase();
    this.paintOver();
  }

  listen() {
    const on = (name, handle) => this.canvas.addEventListener(name, (event) => {
      const box = this.canvas.getBoundingClientRect();
      handle(event.clientX - box.left, event.clientY - box.top, event);
    });
    const axisNear = (x) => this.axes.findIndex((unused, a) => Math.abs(this.xOf(a) - x) < ParallelCoordinates.NEAR);
    const isClick = (y) => Math.abs(y - this.dragged.from) < 4;
    on("pointerdown", (x, y, event) => {
      if (axisNear(x) < 0) return;
      this.dragged = { a: axisNear(x), from: y };
      this.canvas.setPointerCapture(event.pointerId);
    });
    on("pointermove", (x, y, event) => {
      if (this.dragged) {
        this.brush(isClick(y) ? null : [Math.max(y, this.dragged.from), Math.min(y, this.dragged.from)]);
        return;
      }
      this.canvas.style.cursor = axisNear(x) < 0 ? "default" : "ns-resize";
      this.light(this.nearest(x, y), event);
    });
    on("pointerup", (x, y) => {
      if (this.dragged && isClick(y)) this.brush(null);
      this.dragged = null;
    });
    on("pointercancel", () => { this.dragged = null; });
    on("pointerleave", (x, y, event) => { if (!this.dragged) this.light(null, event); });
  }
  // Selects the trials between two heights on the dragged axis; null: all of them.
  brush(heights) {
    const position = (y) => Math.max(0, Math.min(1, (this.bottom - y) / (this.bottom - this.top)));
    if (heights) this.brushes.set(this.dragged.a, heights.map(position));
    else this.brushes.delete(this.dragged.a);
    this.paint();
  }
  nearest(x, y) {
    const last = this.axes.length - 2;
    const a = Math.max(0, Math.min(last, this.axes.findIndex((unused, i) => this.xOf(i) > x) - 1));
    if (last < 0) return null;
    const part = (x - this.xOf(a)) / (this.xOf(a + 1) - this.xOf(a));
    if (part < -0.1 || part > 1.1) return null;
    const distance = (trial) => Math.abs(this.yOf(a, trial) + part * (this.yOf(a + 1, trial) - this.yOf(a, trial)) - y);
    const closer = (found, trial) => (distance(trial) < (found ? distance(found) : ParallelCoordinates.NEAR) ? trial : found);
    return this.trials.filter((trial) => this.isPicked(trial)).reduce(closer, null);
  }
  light(trial, event) {
    this.hint.hidden = trial === null;
    if (trial !== null) {
      this.hint.textContent = [nameOf(trial), ...search.objectives.map((one, o) => one.name + ": " + short(valueOf(trial, o))), ...linesOf(trial)].join("\n");
      this.hint.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - this.hint.offsetWidth - 8)) + "px";
      this.hint.style.top = Math.min(event.clientY + 14, window.innerHeight - this.hint.offsetHeight - 8) + "px";
    }
    if (trial === this.lit) return;
    this.lit = trial;
    this.paintOver();
  }
}

charts.parallel = (canvas, block, controls) => {
  canvas.setAttribute("aria-label", "The values of each complete trial as a line; the table of trials has them as numbers");
  const { frame, hint } = new ParallelCoordinates(canvas, controls);
  objectivePicker(controls);
  return joined([element("div", { class: "scroll" }, frame),
    caption("A line is a complete trial; the stronger its color, the better. Drag along an axis to select a range."), hint]);
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

