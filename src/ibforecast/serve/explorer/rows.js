// One row per channel on a shared time axis; a row's chart exists only while the row is near the screen.

import uPlot from "./vendor/uPlot.esm.js";
import { column, meanOf, steps } from "./account.js";
import { colour, make } from "./page.js";
import { number, scales, signed, tickTexts, timeTicks, valueTicks } from "./words.js";

export const GUTTER = 56;
const RIGHT = 10;
const NEAR = "500px";

/** Lowest and highest value a channel's row must show, with some air; scrambled values may stick out. */
export function rangeOf(account, changed, channel) {
  const shown = [
    account.history,
    account.forecast,
    account.expected,
    account.truth,
    changed?.forecast,
    changed?.edited,
  ];
  const values = shown.flatMap((matrix) => (matrix ? column(matrix, channel) : [])).filter((value) => value !== null);
  const [low, high] = values.reduce(
    ([least, most], value) => [Math.min(least, value), Math.max(most, value)],
    [Infinity, -Infinity],
  );
  const flat = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
  const air = flat ? 0.5 * Math.abs(high) || 1 : 0.08 * (high - low);
  return [low - air, high + air];
}

/** How the gate of a token stands: as the model left it, or as it was turned by hand. */
export function stateOf(account, changed, patch, channel) {
  const [own, now] = [account.mask[patch][channel], (changed?.mask ?? account.mask)[patch][channel]];
  if (account.missing[patch][channel]) return "missing";
  if (own === now) return own ? "open" : "closed";
  return now ? "opened" : "shut";
}

export class Rows {
  #account = null;
  #changed = null;
  #rows = [];
  #near;
  #width = 0;

  /** `onToken(patch, channel)` is told of clicks into a patch. */
  constructor(host, axis, readout, onToken) {
    Object.assign(this, { host, axis, readout, onToken });
    this.#near = new IntersectionObserver((seen) => seen.forEach((entry) => this.#turn(entry)), { rootMargin: NEAR });
    new ResizeObserver(() => this.#resize()).observe(host);
    host.addEventListener("mouseleave", () => this.#tell(null));
  }

  /** Show an account, and beside it what is different, if anything. */
  show(account, changed) {
    const other = this.#account?.channels.join("\n") !== account.channels.join("\n");
    const longer = this.#account && this.#account.times.length !== account.times.length;
    [this.#account, this.#changed] = [account, changed];
    if (other || longer) this.#build();
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
    this.host.classList.toggle("many", this.#account.channels.length > 12);
    this.#rows = this.#account.channels.map((name, channel) => {
      const facts = make("div", { class: "facts" });
      const plot = make("div", { class: "plot", role: "img" });
      const heading = make("div", { class: "heading" }, make("h3", { title: name }, name), facts);
      const element = make("section", { class: "row", "aria-label": name }, heading, plot);
      element.dataset.channel = name;
      return { channel, element, facts, plot, chart: null, stale: true };
    });
    this.host.replaceChildren(...this.#rows.map((row) => row.element));
    this.#rows.forEach((row, channel) => {
      row.element.row = channel;
      this.#near.observe(row.element);
    });
  }

  #turn(entry) {
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
    const [account, changed, channel] = [this.#account, this.#changed, row.channel];
    row.chart.setData(this.#data(channel), false);
    const [low, high] = rangeOf(account, changed, channel);
    row.chart.batch(() => {
      row.chart.setScale("x", { min: -0.5, max: account.times.length - 0.5 });
      row.chart.setScale("y", { min: low, max: high });
    });
    const open = column(changed?.mask ?? account.mask, channel).filter(Boolean).length;
    const old = meanOf(account.forecast, channel);
    const shift = changed?.shift[channel];
    const moved = shift && shift.largest !== 0;
    row.element.classList.toggle("moved", Boolean(moved));
    row.facts.replaceChildren(
      make("span", {}, `read ${open} of ${account.patches}`),
      old === null
        ? make("span", {}, "not forecast")
        : make("span", {}, "mean ", make("b", { class: "is-forecast" }, number(old))),
      ...(changed
        ? [
            make("span", {}, "what-if ", make("b", { class: "is-whatif" }, number(meanOf(changed.forecast, channel)))),
            make(
              "span",
              { class: "shift" },
              moved ? `shift ${signed(shift.largest)}, ${scales(shift.in_scales)}` : "not moved",
            ),
          ]
        : []),
    );
    const told = changed ? `; in the what-if ${number(meanOf(changed.forecast, channel))}` : "";
    row.plot.setAttribute(
      "aria-label",
      `${account.channels[channel]}: ${open} of ${account.patches} patches read, mean forecast ${number(old)}${told}`,
    );
  }

  #data(channel) {
    const [account, changed] = [this.#account, this.#changed];
    const { lookBack, horizon } = account;
    const past = (matrix) => [...column(matrix, channel), ...Array(horizon).fill(null)];
    const future = (matrix) => [
      ...Array(lookBack).fill(null),
      ...(matrix ? column(matrix, channel) : Array(horizon).fill(null)),
    ];
    return [
      account.times.map((_, step) => step),
      account.times.map(() => account.level[channel]),
      column(account.expected, channel),
      past(account.history),
      changed?.history
        ? past(changed.history).map((value, step) => (value === account.history[step]?.[channel] ? null : value))
        : past(account.history).fill(null),
      future(account.truth),
      future(changed?.forecast),
      future(account.forecast),
    ];
  }

  #chart(row) {
    const line = (name, width, dash) => ({
      stroke: () => colour(name),
      width,
      dash,
      points: { show: true, size: 5, filter: lonely },
    });
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
          splits: () => this.#ticks().map((tick) => tick.at),
          grid,
        },
        {
          size: GUTTER,
          gap: 6,
          font: "11px system-ui, sans-serif",
          stroke: () => colour("faint-ink"),
          ticks: { show: false },
          splits: (_chart, _axis, low, high) => valueTicks(low, high, row.plot.clientHeight > 90 ? 3 : 2),
          values: (_chart, splits) => tickTexts(splits),
          grid,
        },
      ],
      series: [
        {},
        line("level", 1),
        line("baseline", 1.2, [2, 3]),
        line("history", 1.4),
        line("whatif", 1, [1, 2]),
        line("truth", 1.4),
        line("whatif", 3),
        line("forecast", 1.8, [7, 4]),
      ],
      hooks: {
        drawClear: [(chart) => this.#shade(chart, row.channel)],
        draw: [(chart) => made(chart, this.#account.lookBack)],
        setCursor: [(chart) => this.#hover(chart, row)],
      },
    };
    const chart = new uPlot(options, this.#data(row.channel), row.plot);
    chart.over.addEventListener("mouseenter", () => (this.hovered = row));
    chart.over.addEventListener("click", () => {
      const step = Math.round(chart.posToVal(chart.cursor.left, "x"));
      if (step >= 0 && step < this.#account.lookBack)
        this.onToken(Math.floor(step / this.#account.patchLen), row.channel);
    });
    row.stale = true;
    return chart;
  }

  #shade(chart, channel) {
    const account = this.#account;
    const { ctx: pen, bbox } = chart;
    pen.save();
    for (let patch = 0; patch < account.patches; patch += 1) {
      const state = stateOf(account, this.#changed, patch, channel);
      if (state === "closed") continue;
      const [first, last] = steps(account, patch);
      const left = Math.round(chart.valToPos(first - 0.5, "x", true)) + 1;
      const right = Math.round(chart.valToPos(last + 0.5, "x", true)) - 1;
      const box = [left, bbox.top, right - left, bbox.height];
      if (state === "missing") hatch(pen, box);
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
    if (this.hovered !== row) return;
    const step = chart.cursor.idx;
    this.#tell(
      step === null || step === undefined || chart.cursor.left < 0 ? null : this.#words(step, row.channel),
      row,
      chart.cursor.left,
    );
  }

  #words(step, channel) {
    const [account, changed] = [this.#account, this.#changed];
    const baseline = ["baseline", account.expected[step][channel]];
    const ahead = step - account.lookBack;
    const patch = Math.floor(step / account.patchLen);
    const values =
      ahead < 0
        ? [["value", account.history[step][channel]], baseline]
        : [
            ["forecast", account.forecast[ahead][channel]],
            ["what-if", changed?.forecast[ahead][channel]],
            ["truth", account.truth?.[ahead][channel]],
            baseline,
          ];
    const gate =
      ahead < 0
        ? `${stateOf(account, changed, patch, channel)}, p ${account.probability[patch][channel].toFixed(3)}`
        : null;
    return {
      time: account.times[step],
      values: [...values, ...account.known.map((one) => [one.covariate, one.values[step]])].filter(
        ([, value]) => value !== undefined && value !== null,
      ),
      gate,
    };
  }

  #tell(words, row, left) {
    this.readout.hidden = !words;
    if (!words) return;
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

  #ticks() {
    return timeTicks(this.#account.times, Math.max(3, Math.floor((this.#width || 800) / 84)));
  }

  #drawAxis() {
    const count = this.#account.times.length;
    const place = (element, step) => {
      element.style.left = `${(100 * (step + 0.5)) / count}%`;
      return element;
    };
    const marks = this.#ticks().map(({ at, lines }) =>
      place(make("span", { class: "tick" }, ...lines.flatMap((text) => [text, make("br")]).slice(0, -1)), at),
    );
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

/** The moment the forecast was made. */
function made(chart, lookBack) {
  const { ctx: pen, bbox } = chart;
  const at = Math.round(chart.valToPos(lookBack - 0.5, "x", true)) + 0.5;
  pen.save();
  pen.strokeStyle = colour("ink");
  pen.lineWidth = devicePixelRatio;
  pen.beginPath();
  pen.moveTo(at, bbox.top);
  pen.lineTo(at, bbox.top + bbox.height);
  pen.stroke();
  pen.restore();
}

function hatch(pen, [left, top, width, height]) {
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
