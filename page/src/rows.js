// One row per channel and per covariate on a shared time axis. A chart exists only while its row is near the screen.

import uPlot from "uplot";
import { column, fitting, meanOf, stateOf } from "./explanation.js";
import { colour, make } from "./page.js";
import { number, scales, signed } from "./words.js";

/** @import { Explanation, DrawnRow, Tick, Values, WhatIf } from "./types" */

const GUTTER = 56;
const RIGHT = 10;
const NEAR = "500px";
const MANY = 12;

/**
 * Lines from back to front: role, colour, width and dashes.
 * @type {{ role: string, colour: string, width: number, dash?: number[] }[]}
 */
const LINES = [
  { role: "level", colour: "level", width: 1 },
  { role: "baseline", colour: "baseline", width: 1.2, dash: [2, 3] },
  { role: "usual", colour: "baseline", width: 1, dash: [1, 3] },
  { role: "calendar", colour: "baseline", width: 1.2, dash: [5, 3] },
  { role: "known", colour: "known", width: 1.4 },
  { role: "look-back", colour: "look-back", width: 1.4 },
  { role: "edited", colour: "whatif", width: 1, dash: [1, 2] },
  { role: "truth", colour: "truth", width: 1.4 },
  { role: "what-if", colour: "whatif", width: 3 },
  { role: "forecast", colour: "forecast", width: 1.8, dash: [7, 4] },
];

/** Names of the values of a channel in the box at the pointer. */
const READOUT = {
  "look-back": "value",
  forecast: "forecast",
  "what-if": "what-if",
  truth: "truth",
  baseline: "baseline",
  usual: "profile",
  calendar: "calendar",
};

export class Rows {
  /** @type {Explanation} set before anything is drawn */
  #explanation = /** @type {any} */ (null);
  /** @type {WhatIf | null} */
  #changed = null;
  /** @type {any[]} */
  #rows = [];
  #near;
  #width = 0;
  /** @type {any} */
  #hovered = null;
  /** @type {{ channel: string, step: number, place: [number, number] | null, tones: Record<string, number> | null }} */
  #chosen = { channel: "", step: 0, place: null, tones: null };

  /** `onToken(patch, channel)` is called on a click in a patch, `onStep(step, channel)` on one ahead. */
  constructor(host, axis, readout, onToken, onStep) {
    this.host = host;
    this.axis = axis;
    this.readout = readout;
    this.onToken = onToken;
    this.onStep = onStep;
    this.#near = new IntersectionObserver((seen) => seen.forEach((entry) => this.#enter(entry)), { rootMargin: NEAR });
    new ResizeObserver(() => this.#resize()).observe(host);
    host.addEventListener("mouseleave", () => this.#showReadout(null));
  }

  /**
   * Show an explanation and, if there is one, a what-if.
   * @param {Explanation} explanation
   * @param {WhatIf | null} changed
   */
  show(explanation, changed) {
    const layout = (one) => [one.times.length, ...one.rows.map((row) => `${row.kind} ${row.name}`)].join("\n");
    const isOther = !this.#explanation || layout(this.#explanation) !== layout(explanation);
    [this.#explanation, this.#changed] = [explanation, changed];
    if (isOther) this.#build();
    for (const row of this.#rows) row.stale = true;
    for (const row of this.#rows) if (row.chart) this.#update(row);
    this.#drawAxis();
  }

  /** Draw again, for example in the colours of another theme. */
  redraw() {
    for (const row of this.#rows) row.chart?.redraw(false);
  }

  /** Mark the step of the receipt that is shown (0 is the mean, without a mark), its amounts and the chosen place. */
  choose(chosen) {
    const isSame = JSON.stringify(chosen) === JSON.stringify(this.#chosen);
    this.#chosen = chosen;
    if (!isSame) this.redraw();
  }

  #build() {
    this.#near.disconnect();
    for (const row of this.#rows) row.chart?.destroy();
    this.host.classList.toggle("many", this.#explanation.rows.length > MANY);
    this.#rows = this.#explanation.rows.map(({ name, kind }, number) => {
      const facts = make("div", { class: "facts" });
      const plot = make("div", { class: "plot", role: "img" });
      const heading = make("div", { class: "heading" }, make("h3", { title: name }, name), facts);
      const element = make("section", { class: `row ${kind}`, "aria-label": name }, heading, plot);
      element.dataset.channel = name;
      return { number, element, facts, plot, chart: null, stale: true };
    });
    this.host.replaceChildren(...this.#rows.map((row) => row.element));
    this.#rows.forEach((row) => {
      row.element.row = row.number;
      this.#near.observe(row.element);
    });
  }

  #enter(entry) {
    const row = this.#rows[entry.target.row];
    // The observer may still report a row of the previous explanation.
    if (!row || row.element !== entry.target) return;
    if (entry.isIntersecting && !row.chart) {
      row.chart = this.#chart(row);
      this.#update(row);
    } else if (!entry.isIntersecting && row.chart) {
      row.chart.destroy();
      row.chart = null;
    }
  }

  #update(row) {
    if (!row.stale) return;
    row.stale = false;
    const [low, high] = this.#range(row.number);
    row.chart.setData(this.#data(row.number), false);
    row.chart.batch(() => {
      row.chart.setScale("x", { min: -0.5, max: this.#explanation.times.length - 0.5 });
      row.chart.setScale("y", { min: low, max: high });
    });
    const drawn = this.#explanation.rows[row.number];
    if (drawn.kind === "channel") this.#describe(row, drawn);
    else {
      row.facts.replaceChildren(make("span", {}, "known ahead"));
      row.plot.setAttribute("aria-label", `${drawn.name}: known ahead`);
    }
  }

  /** Write the facts of a channel next to its chart. */
  #describe(row, drawn) {
    const [explanation, changed, channel] = [this.#explanation, this.#changed, row.number];
    const isOpen = (_, patch) => ["open", "opened"].includes(stateOf(explanation, changed, patch, channel));
    const open = explanation.scene.gates.state.filter(isOpen).length;
    const forecast = meanOf(drawn.values.forecast);
    const whatIf = changed && forecast !== null ? meanOf(column(changed.forecast, channel)) : null;
    const shift = changed?.shift[channel];
    const shifted = shift?.largest ? `shift ${signed(shift.largest)}, ${scales(shift.in_scales)}` : null;
    row.element.classList.toggle("moved", shifted !== null);
    row.facts.replaceChildren(
      make("span", {}, `read ${open} of ${explanation.patches}`),
      forecast === null
        ? make("span", {}, "not forecast")
        : make("span", {}, "mean ", make("b", { class: "is-forecast" }, number(forecast))),
      ...(whatIf === null
        ? []
        : [
            make("span", {}, "what-if ", make("b", { class: "is-whatif" }, number(whatIf))),
            make("span", { class: "shift" }, shifted ?? "not moved"),
          ]),
    );
    const mean = forecast === null ? "not forecast" : `mean forecast ${number(forecast)}`;
    const after = whatIf === null ? "" : `; in the what-if ${number(whatIf)}`;
    row.plot.setAttribute("aria-label", `${drawn.name}: ${open} of ${explanation.patches} patches read, ${mean}${after}`);
  }

  /**
   * Return the values of a role in a row, one per step; undefined if it has none.
   * @returns {Values | undefined}
   */
  #values(number, role) {
    const [explanation, changed] = [this.#explanation, this.#changed];
    const row = explanation.rows[number];
    if (!(role === "what-if" || role === "edited")) return row.values[role];
    if (!changed || row.kind !== "channel") return undefined;
    if (role === "what-if")
      return row.values.forecast && [...Array(explanation.lookBack).fill(null), ...column(changed.forecast, number)];
    if (!changed.history) return undefined;
    const own = column(explanation.history, number);
    const shown = column(changed.history, number).map((value, step) => (value === own[step] ? null : value));
    return [...shown, ...Array(explanation.times.length - explanation.lookBack).fill(null)];
  }

  #data(number) {
    const steps = this.#explanation.times.length;
    const none = Array(steps).fill(null);
    return [none.map((_, step) => step), ...LINES.map(({ role }) => this.#values(number, role) ?? none)];
  }

  /** Return the row's range, extended to the values of a what-if; scrambled values may stick out. */
  #extent(number) {
    const { low, high, kind } = this.#explanation.rows[number];
    const edited = kind === "channel" && this.#changed?.edited ? column(this.#changed.edited, number) : [];
    const values = [...(this.#values(number, "what-if") ?? []), ...edited].filter((value) => value !== null);
    return [Math.min(low, ...values), Math.max(high, ...values)];
  }

  /** Return the range of the value axis: the row's own, or the extended one with a margin. */
  #range(number) {
    const row = this.#explanation.rows[number];
    const [low, high] = this.#extent(number);
    const air = 0.1 * (high - low);
    return [low < row.low ? low - air : low, high > row.high ? high + air : high];
  }

  /**
   * Return the row's ticks, or only the ends of the extent if the ticks would be too close together.
   * @returns {Tick[]}
   */
  #valueTicks(row) {
    const { low, high, ticks } = this.#explanation.rows[row.number];
    const extent = this.#extent(row.number);
    if (extent[1] - extent[0] < 2 * (high - low)) return fitting(ticks, row.plot.clientHeight > 90 ? 3 : 2);
    return extent.map((at) => ({ at, lines: [number(at)] }));
  }

  #chart(row) {
    const series = LINES.map(({ colour: name, width, dash }) => ({
      stroke: () => colour(name),
      width,
      dash,
      points: { show: true, size: 5, filter: isolated },
    }));
    const grid = { stroke: () => colour("grid"), width: 1 };
    const options = {
      width: this.host.clientWidth && row.plot.clientWidth,
      height: row.plot.clientHeight,
      padding: [4, RIGHT, 4, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: false, y: false, setScale: false },
        sync: { key: "rows", setSeries: false },
        points: { size: 6 },
      },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [
        {
          show: true,
          size: 0,
          values: () => [],
          ticks: { show: false },
          splits: () => this.#timeTicks().map((tick) => tick.at),
          grid,
        },
        {
          size: GUTTER,
          gap: 6,
          font: "11px system-ui, sans-serif",
          stroke: () => colour("faint-ink"),
          ticks: { show: false },
          splits: () => this.#valueTicks(row).map((tick) => tick.at),
          values: () => this.#valueTicks(row).map((tick) => tick.lines[0]),
          grid,
        },
      ],
      series: [{}, ...series],
      hooks: {
        drawClear: [(chart) => this.#shade(chart, row.number)],
        draw: [
          (chart) => this.#mark(chart, row.number),
          (chart) => drawMade(chart, this.#explanation.scene.time.made),
          (chart) => this.#drawChosen(chart, row.number),
        ],
        setCursor: [(chart) => this.#hover(chart, row)],
      },
    };
    const chart = new uPlot(/** @type {any} */ (options), /** @type {any} */ (this.#data(row.number)), row.plot);
    chart.over.addEventListener("mouseenter", () => (this.#hovered = row));
    chart.over.addEventListener("click", () => {
      const step = Math.round(chart.posToVal(chart.cursor.left ?? -1, "x"));
      const isChannel = this.#explanation.rows[row.number].kind === "channel";
      if (isChannel && step >= 0 && step < this.#explanation.lookBack)
        this.onToken(Math.floor(step / this.#explanation.patchLen), row.number);
      else if (isChannel && step >= this.#explanation.lookBack && step < this.#explanation.times.length)
        this.onStep(step - this.#explanation.lookBack + 1, row.number);
    });
    row.stale = true;
    return chart;
  }

  /** Shade the tokens of a row: the scene's bands, and the gates turned by hand. */
  #shade(chart, number) {
    const explanation = this.#explanation;
    if (explanation.rows[number].kind !== "channel") return;
    const { ctx: pen, bbox } = chart;
    pen.save();
    for (let patch = 0; patch < explanation.patches; patch += 1) {
      const state = stateOf(explanation, this.#changed, patch, number);
      if (state === "closed") continue;
      const isThin = explanation.patchLen === 1;
      const gap = isThin ? 0 : 1;
      const left = Math.round(chart.valToPos(patch * explanation.patchLen - 0.5, "x", true)) + gap;
      const right = Math.round(chart.valToPos((patch + 1) * explanation.patchLen - 0.5, "x", true)) - gap;
      /** @type {[number, number, number, number]} */
      const box = [left, bbox.top, right - left, bbox.height];
      const tone = state === "open" ? (this.#chosen.tones?.[`${patch}.${number}`] ?? null) : null;
      if (state === "missing") drawHatch(pen, box);
      else if (tone !== null) {
        pen.globalAlpha = 0.2 + 0.8 * Math.sqrt(Math.abs(tone));
        pen.fillStyle = colour(tone > 0 ? "raises" : tone < 0 ? "lowers" : "hatch");
        pen.fillRect(...box);
        pen.globalAlpha = 1;
      }
      else if (isThin && state !== "shut") {
        // Two outlines would hide a band of one step.
        pen.fillStyle = colour(state === "opened" ? "opened-wash" : "open-wash");
        pen.fillRect(...box);
      } else {
        pen.fillStyle = colour(state === "opened" ? "opened-wash" : "open-wash");
        if (state !== "shut") pen.fillRect(...box);
        pen.strokeStyle = colour(state === "open" ? "open" : "whatif");
        pen.setLineDash(state === "open" ? [] : [4 * devicePixelRatio, 3 * devicePixelRatio]);
        pen.lineWidth = devicePixelRatio;
        pen.strokeRect(box[0] + 0.5, box[1] + 0.5, box[2] - 1, box[3] - 1);
      }
    }
    pen.restore();
  }

  /** Mark the values that were read with points, if each is a token by itself. */
  #mark(chart, number) {
    const explanation = this.#explanation;
    const { kind, values } = explanation.rows[number];
    if (kind !== "channel" || explanation.patchLen > 1) return;
    const { ctx: pen } = chart;
    pen.save();
    for (let step = 0; step < explanation.patches; step += 1) {
      const state = stateOf(explanation, this.#changed, step, number);
      const value = values["look-back"]?.[step] ?? null;
      if (value === null || !(state === "open" || state === "opened")) continue;
      pen.fillStyle = colour(state === "open" ? "open" : "whatif");
      pen.beginPath();
      pen.arc(chart.valToPos(step, "x", true), chart.valToPos(value, "y", true), 2.4 * devicePixelRatio, 0, 2 * Math.PI);
      pen.fill();
    }
    pen.restore();
  }

  #drawChosen(chart, number) {
    const [explanation, { channel, step, place }] = [this.#explanation, this.#chosen];
    const row = explanation.rows[number];
    const { ctx: pen, bbox } = chart;
    pen.save();
    pen.lineWidth = 1.5 * devicePixelRatio;
    if (row.kind === "channel" && row.name === channel && step > 0) {
      const at = explanation.lookBack + step - 1;
      const [x, y] = [chart.valToPos(at, "x", true), chart.valToPos(row.values.forecast?.[at] ?? 0, "y", true)];
      pen.strokeStyle = colour("forecast");
      pen.beginPath();
      pen.moveTo(x, bbox.top);
      pen.lineTo(x, bbox.top + bbox.height);
      pen.stroke();
      pen.beginPath();
      pen.arc(x, y, 4 * devicePixelRatio, 0, 2 * Math.PI);
      pen.fillStyle = colour("card");
      pen.fill();
      pen.stroke();
    }
    if (row.kind === "channel" && place && place[1] === number) {
      const left = chart.valToPos(place[0] * explanation.patchLen - 0.5, "x", true);
      const right = chart.valToPos((place[0] + 1) * explanation.patchLen - 0.5, "x", true);
      pen.strokeStyle = colour("ink");
      pen.strokeRect(left, bbox.top, right - left, bbox.height);
    }
    pen.restore();
  }

  #hover(chart, row) {
    if (this.#hovered !== row) return;
    const step = chart.cursor.idx;
    const isOutside = step === null || step === undefined || chart.cursor.left < 0;
    this.#showReadout(isOutside ? null : this.#readoutOf(step, row.number), row, chart.cursor.left);
  }

  #readoutOf(step, number) {
    const explanation = this.#explanation;
    const { kind, name } = explanation.rows[number];
    const names = kind === "channel" ? READOUT : { known: name };
    const values = Object.entries(names).map(([role, text]) => [text, this.#values(number, role)?.[step] ?? null]);
    const patch = Math.floor(step / explanation.patchLen);
    const isToken = kind === "channel" && step < explanation.lookBack;
    const probability = isToken ? explanation.scene.gates.probability[patch][number].toFixed(2) : "";
    return {
      time: explanation.times[step],
      values: values.filter(([, value]) => value !== null),
      gate: isToken ? `${stateOf(explanation, this.#changed, patch, number)}, probability ${probability}` : null,
    };
  }

  /** @param {any} row */
  #showReadout(words, row = null, left = 0) {
    this.readout.hidden = !words;
    if (!words || !row) return;
    this.readout.replaceChildren(
      make("b", {}, words.time),
      ...words.values.map(([name, value]) => make("span", {}, `${name} `, make("b", {}, number(value)))),
      ...(words.gate ? [make("span", {}, `gate ${words.gate}`)] : []),
    );
    const [plot, host] = [row.plot.getBoundingClientRect(), this.readout.offsetParent.getBoundingClientRect()];
    const wide = this.readout.offsetWidth;
    const right = plot.left - host.left + GUTTER + left + 14;
    const flipped = right + wide > host.width ? right - wide - 28 : right;
    this.readout.style.left = `${Math.max(flipped, 0)}px`;
    this.readout.style.top = `${plot.top - host.top + 6}px`;
  }

  #timeTicks() {
    return fitting(this.#explanation.scene.time.ticks, Math.max(3, Math.floor((this.#width || 800) / 72)));
  }

  #drawAxis() {
    const count = this.#explanation.times.length;
    const marks = this.#timeTicks().map(({ at, lines }) => {
      const mark = make("span", { class: "tick" }, ...lines.flatMap((text) => [text, make("br")]).slice(0, -1));
      mark.style.left = `${(100 * (at + 0.5)) / count}%`;
      return mark;
    });
    this.axis.replaceChildren(...marks);
  }

  #resize() {
    if (!this.#explanation || !this.host.clientWidth) return;
    const plot = this.#rows[0]?.plot;
    this.#width = plot ? plot.clientWidth - GUTTER - RIGHT : 0;
    for (const row of this.#rows) {
      if (row.chart) row.chart.setSize({ width: row.plot.clientWidth, height: row.plot.clientHeight });
    }
    this.#drawAxis();
  }
}

/** Return the values without a neighbour, which need a point because a line does not show them. */
function isolated(chart, series) {
  const values = chart.data[series];
  return values.flatMap((value, at) => (value != null && values[at - 1] == null && values[at + 1] == null ? [at] : []));
}

/** Draw the moment at which the forecast was made. */
function drawMade(chart, made) {
  const { ctx: pen, bbox } = chart;
  const at = Math.round(chart.valToPos(made, "x", true)) + 0.5;
  pen.save();
  pen.strokeStyle = colour("ink");
  pen.lineWidth = devicePixelRatio;
  pen.beginPath();
  pen.moveTo(at, bbox.top);
  pen.lineTo(at, bbox.top + bbox.height);
  pen.stroke();
  pen.restore();
}

function drawHatch(pen, [left, top, width, height]) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.strokeStyle = colour("hatch");
  pen.lineWidth = devicePixelRatio;
  pen.beginPath();
  for (let x = left - height; x < left + width; x += 7 * devicePixelRatio) {
    pen.moveTo(x, top + height);
    pen.lineTo(x + height, top);
  }
  pen.stroke();
  pen.restore();
}
