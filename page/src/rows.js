// One row per channel and per covariate on a shared time axis. A chart exists only while its row is near the screen.

import uPlot from "uplot";
import { column, fitting, meanOf, stateOf } from "./account.js";
import { colour, make } from "./page.js";
import { number, scales, signed } from "./words.js";

/** @import { Account, DrawnRow, Tick, Values, WhatIf } from "./types" */

const GUTTER = 56;
const RIGHT = 10;
const NEAR = "500px";
const MANY = 12;

/**
 * Lines from back to front: whose values, in which colour, how wide, how dashed.
 * @type {{ role: string, colour: string, width: number, dash?: number[] }[]}
 */
const LINES = [
  { role: "level", colour: "level", width: 1 },
  { role: "baseline", colour: "baseline", width: 1.2, dash: [2, 3] },
  { role: "known", colour: "known", width: 1.4 },
  { role: "look-back", colour: "look-back", width: 1.4 },
  { role: "edited", colour: "whatif", width: 1, dash: [1, 2] },
  { role: "truth", colour: "truth", width: 1.4 },
  { role: "what-if", colour: "whatif", width: 3 },
  { role: "forecast", colour: "forecast", width: 1.8, dash: [7, 4] },
];

/** What the readout calls the values of a channel. */
const READOUT = {
  "look-back": "value",
  forecast: "forecast",
  "what-if": "what-if",
  truth: "truth",
  baseline: "baseline",
};

export class Rows {
  /** @type {Account} set before anything is drawn */
  #account = /** @type {any} */ (null);
  /** @type {WhatIf | null} */
  #changed = null;
  /** @type {any[]} */
  #rows = [];
  #near;
  #width = 0;
  /** @type {any} */
  #hovered = null;

  /** `onToken(patch, channel)` is called on a click into a patch. */
  constructor(host, axis, readout, onToken) {
    this.host = host;
    this.axis = axis;
    this.readout = readout;
    this.onToken = onToken;
    this.#near = new IntersectionObserver((seen) => seen.forEach((entry) => this.#enter(entry)), { rootMargin: NEAR });
    new ResizeObserver(() => this.#resize()).observe(host);
    host.addEventListener("mouseleave", () => this.#showReadout(null));
  }

  /**
   * Show an explanation and, if there is one, a what-if.
   * @param {Account} account
   * @param {WhatIf | null} changed
   */
  show(account, changed) {
    const layout = (one) => [one.times.length, ...one.rows.map((row) => `${row.kind} ${row.name}`)].join("\n");
    const isOther = !this.#account || layout(this.#account) !== layout(account);
    [this.#account, this.#changed] = [account, changed];
    if (isOther) this.#build();
    for (const row of this.#rows) row.stale = true;
    for (const row of this.#rows) if (row.chart) this.#update(row);
    this.#drawAxis();
  }

  /** Draw again in other colours. */
  redraw() {
    for (const row of this.#rows) row.chart?.redraw(false);
  }

  #build() {
    this.#near.disconnect();
    for (const row of this.#rows) row.chart?.destroy();
    this.host.classList.toggle("many", this.#account.rows.length > MANY);
    this.#rows = this.#account.rows.map(({ name, kind }, number) => {
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
      row.chart.setScale("x", { min: -0.5, max: this.#account.times.length - 0.5 });
      row.chart.setScale("y", { min: low, max: high });
    });
    const drawn = this.#account.rows[row.number];
    if (drawn.kind === "channel") this.#describe(row, drawn);
    else {
      row.facts.replaceChildren(make("span", {}, "known ahead"));
      row.plot.setAttribute("aria-label", `${drawn.name}: known ahead`);
    }
  }

  /** Write the facts of a channel next to its chart. */
  #describe(row, drawn) {
    const [account, changed, channel] = [this.#account, this.#changed, row.number];
    const isOpen = (_, patch) => ["open", "opened"].includes(stateOf(account, changed, patch, channel));
    const open = account.scene.gates.state.filter(isOpen).length;
    const forecast = meanOf(drawn.values.forecast);
    const whatIf = changed && forecast !== null ? meanOf(column(changed.forecast, channel)) : null;
    const shift = changed?.shift[channel];
    const shifted = shift?.largest ? `shift ${signed(shift.largest)}, ${scales(shift.in_scales)}` : null;
    row.element.classList.toggle("moved", shifted !== null);
    row.facts.replaceChildren(
      make("span", {}, `read ${open} of ${account.patches}`),
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
    row.plot.setAttribute("aria-label", `${drawn.name}: ${open} of ${account.patches} patches read, ${mean}${after}`);
  }

  /**
   * The values of a role in a row, one per step.
   * @returns {Values | undefined}
   */
  #values(number, role) {
    const [account, changed] = [this.#account, this.#changed];
    const row = account.rows[number];
    if (!(role === "what-if" || role === "edited")) return row.values[role];
    if (!changed || row.kind !== "channel") return undefined;
    if (role === "what-if")
      return row.values.forecast && [...Array(account.lookBack).fill(null), ...column(changed.forecast, number)];
    if (!changed.history) return undefined;
    const own = column(account.history, number);
    const shown = column(changed.history, number).map((value, step) => (value === own[step] ? null : value));
    return [...shown, ...Array(account.times.length - account.lookBack).fill(null)];
  }

  #data(number) {
    const steps = this.#account.times.length;
    const none = Array(steps).fill(null);
    return [none.map((_, step) => step), ...LINES.map(({ role }) => this.#values(number, role) ?? none)];
  }

  /** The row's range, extended to a what-if; scrambled values may stick out. */
  #extent(number) {
    const { low, high, kind } = this.#account.rows[number];
    const edited = kind === "channel" && this.#changed?.edited ? column(this.#changed.edited, number) : [];
    const values = [...(this.#values(number, "what-if") ?? []), ...edited].filter((value) => value !== null);
    return [Math.min(low, ...values), Math.max(high, ...values)];
  }

  /** The range of the value axis: the row's own, or the extended one with some air. */
  #range(number) {
    const row = this.#account.rows[number];
    const [low, high] = this.#extent(number);
    const air = 0.1 * (high - low);
    return [low < row.low ? low - air : low, high > row.high ? high + air : high];
  }

  /**
   * The row's ticks, or the ends of an extent for which they would lie too close together.
   * @returns {Tick[]}
   */
  #valueTicks(row) {
    const { low, high, ticks } = this.#account.rows[row.number];
    const extent = this.#extent(row.number);
    if (extent[1] - extent[0] < 2 * (high - low)) return fitting(ticks, row.plot.clientHeight > 90 ? 3 : 2);
    return extent.map((at) => ({ at, lines: [number(at)] }));
  }

  #chart(row) {
    const series = LINES.map(({ colour: name, width, dash }) => ({
      stroke: () => colour(name),
      width,
      dash,
      points: { show: true, size: 5, filter: lonely },
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
        draw: [(chart) => drawMade(chart, this.#account.scene.time.made)],
        setCursor: [(chart) => this.#hover(chart, row)],
      },
    };
    const chart = new uPlot(/** @type {any} */ (options), /** @type {any} */ (this.#data(row.number)), row.plot);
    chart.over.addEventListener("mouseenter", () => (this.#hovered = row));
    chart.over.addEventListener("click", () => {
      const step = Math.round(chart.posToVal(chart.cursor.left ?? -1, "x"));
      const isChannel = this.#account.rows[row.number].kind === "channel";
      if (isChannel && step >= 0 && step < this.#account.lookBack)
        this.onToken(Math.floor(step / this.#account.patchLen), row.number);
    });
    row.stale = true;
    return chart;
  }

  /** Shade the tokens of a row: the scene's bands, and the gates turned by hand. */
  #shade(chart, number) {
    const account = this.#account;
    if (account.rows[number].kind !== "channel") return;
    const { ctx: pen, bbox } = chart;
    pen.save();
    for (let patch = 0; patch < account.patches; patch += 1) {
      const state = stateOf(account, this.#changed, patch, number);
      if (state === "closed") continue;
      const left = Math.round(chart.valToPos(patch * account.patchLen - 0.5, "x", true)) + 1;
      const right = Math.round(chart.valToPos((patch + 1) * account.patchLen - 0.5, "x", true)) - 1;
      /** @type {[number, number, number, number]} */
      const box = [left, bbox.top, right - left, bbox.height];
      if (state === "missing") drawHatch(pen, box);
      else {
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

  #hover(chart, row) {
    if (this.#hovered !== row) return;
    const step = chart.cursor.idx;
    const isOutside = step === null || step === undefined || chart.cursor.left < 0;
    this.#showReadout(isOutside ? null : this.#readoutOf(step, row.number), row, chart.cursor.left);
  }

  #readoutOf(step, number) {
    const account = this.#account;
    const { kind, name } = account.rows[number];
    const names = kind === "channel" ? READOUT : { known: name };
    const values = Object.entries(names).map(([role, text]) => [text, this.#values(number, role)?.[step] ?? null]);
    const patch = Math.floor(step / account.patchLen);
    const isToken = kind === "channel" && step < account.lookBack;
    const probability = isToken ? account.scene.gates.probability[patch][number].toFixed(2) : "";
    return {
      time: account.times[step],
      values: values.filter(([, value]) => value !== null),
      gate: isToken ? `${stateOf(account, this.#changed, patch, number)}, probability ${probability}` : null,
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
    const wished = plot.left - host.left + GUTTER + left + 14;
    const flipped = wished + wide > host.width ? wished - wide - 28 : wished;
    this.readout.style.left = `${Math.max(flipped, 0)}px`;
    this.readout.style.top = `${plot.top - host.top + 6}px`;
  }

  #timeTicks() {
    return fitting(this.#account.scene.time.ticks, Math.max(3, Math.floor((this.#width || 800) / 72)));
  }

  #drawAxis() {
    const count = this.#account.times.length;
    const marks = this.#timeTicks().map(({ at, lines }) => {
      const mark = make("span", { class: "tick" }, ...lines.flatMap((text) => [text, make("br")]).slice(0, -1));
      mark.style.left = `${(100 * (at + 0.5)) / count}%`;
      return mark;
    });
    this.axis.replaceChildren(...marks);
  }

  #resize() {
    if (!this.#account || !this.host.clientWidth) return;
    const plot = this.#rows[0]?.plot;
    this.#width = plot ? plot.clientWidth - GUTTER - RIGHT : 0;
    for (const row of this.#rows) {
      if (row.chart) row.chart.setSize({ width: row.plot.clientWidth, height: row.plot.clientHeight });
    }
    this.#drawAxis();
  }
}

/** Points for values without a neighbour, which no line would show. */
function lonely(chart, series) {
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
