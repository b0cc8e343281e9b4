// The second tab: the gates and errors of a model over a whole table.

import uPlot from "uplot";
import { meanOf } from "./explanation.js";
import { Grid } from "./grid.js";
import { byId, colour } from "./page.js";
import { counted, local, number, percent } from "./words.js";

/** @import { History, Model, Values } from "./types" */

const GUTTER = 56;

export class Overview {
  /** @type {uPlot[]} */
  #charts = [];

  /** `onMoment(moment)` is called on a click in a chart. */
  constructor(onMoment) {
    this.onMoment = onMoment;
    this.grid = new Grid(
      byId("frequency"),
      "How often each gate is open: channels by patches, the newest at the right",
      { tallest: 30 },
    );
    new ResizeObserver(() => this.#resize()).observe(byId("errors"));
  }

  /**
   * Show a model's history over a table.
   * @param {History} history
   * @param {Model} model
   */
  show(history, model) {
    const { windows, available, moments } = history;
    const zone = model.zone ? ` (${model.zone})` : "";
    byId("over").textContent =
      `${counted(windows, "window")}, evenly spaced among ${available.toLocaleString("en")}, from ${local(moments[0])} to ${local(moments.at(-1))}${zone}.`;
    // The mask of a sealed model is fixed: a map of frequencies would be that mask, and the read rate a straight line.
    byId("fixed-card").hidden = !model.sealed;
    byId("frequency-card").hidden = byId("rates-card").hidden = Boolean(model.sealed);
    for (const chart of this.#charts) chart.destroy();
    this.#charts = [
      this.#chart(byId("errors"), history.moments, [
        { values: history.squared_error, name: "forecast", width: 1.6 },
        { values: history.absolute_error, name: "baseline", width: 1.4 },
      ]),
    ];
    byId("error-words").textContent =
      `Mean squared error ${number(meanOf(history.squared_error))}, mean absolute error ${number(meanOf(history.absolute_error))}, in standardised units.`;
    if (model.sealed) byId("fixed-words").textContent = fixedWords(history);
    else this.#showGates(history, model);
  }

  /**
   * Show how often each gate is open, and the read rate.
   * @param {History} history
   * @param {Model} model
   */
  #showGates(history, model) {
    const { channels, open_frequency: frequency } = history;
    this.grid.show(channels, frequency.length, (patch, channel) => ({
      value: frequency[patch][channel],
      state: "",
      label: `${channels[channel]}, patch ${patch + 1} of ${frequency.length}: open in ${percent(frequency[patch][channel])} of the windows`,
    }));
    this.#charts.push(
      this.#chart(byId("rates"), history.moments, [
        { values: history.open_rate, name: "open", width: 1.6 },
        { values: history.open_rate.map(() => model.budget), name: "ink", width: 1, dash: [6, 4] },
      ]),
    );
    byId("rate-words").textContent =
      `On average ${percent(meanOf(history.open_rate))} of a window is read, at most ${percent(Math.max(...history.open_rate))}; the budget allows ${percent(model.budget)}.`;
  }

  redraw() {
    for (const chart of this.#charts) chart.redraw(false);
  }

  /**
   * Make a chart whose value axis starts at zero.
   * @param {string[]} moments
   * @param {{ values: Values, name: string, width: number, dash?: number[] }[]} lines
   */
  #chart(host, moments, lines) {
    const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
    const seconds = moments.map(secondsOf);
    const isTime = seconds.every(Number.isFinite);
    const axis = {
      stroke: () => colour("faint-ink"),
      font: "11px system-ui, sans-serif",
      ticks: { show: false },
      grid: { stroke: () => colour("grid"), width: 1 },
    };
    const chart = new uPlot(
      {
        width: host.clientWidth,
        height: host.clientHeight,
        padding: [8, 14, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "overview" } },
        tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1e3), "Etc/UTC"),
        scales: { x: { time: isTime }, y: { range: [0, 1.08 * Math.max(...values, 1e-9)] } },
        axes: [
          { ...axis, space: 80 },
          { ...axis, size: GUTTER },
        ],
        series: [
          {},
          ...lines.map((line) => ({
            stroke: () => colour(line.name),
            width: line.width,
            dash: line.dash,
            points: { show: false },
          })),
        ],
      },
      [isTime ? seconds : moments.map((_, at) => at), ...lines.map((line) => line.values)],
      host,
    );
    chart.over.addEventListener("click", () => this.onMoment(moments[chart.posToIdx(chart.cursor.left ?? 0)]));
    return chart;
  }

  #resize() {
    for (const chart of this.#charts) {
      const host = chart.root.parentElement;
      if (host?.clientWidth) chart.setSize({ width: host.clientWidth, height: host.clientHeight });
    }
  }
}

/**
 * Return why there is no history of masks, and how often a missing value was not read.
 * @param {History} history
 */
function fixedWords({ open_frequency: frequency, open_rate: rates, windows }) {
  const places = frequency.flat();
  const read = places.filter((share) => share > 0).length;
  const reduced = rates.filter((rate) => Math.round(rate * places.length) < read).length;
  const gaps = `In ${reduced.toLocaleString("en")} of ${counted(windows, "window")} at least one of them was missing, and nothing was read in its place: the lowest read rate is ${percent(Math.min(...rates))}.`;
  return [
    `This model is sealed: it reads the same ${read.toLocaleString("en")} of ${places.length.toLocaleString("en")} places in every window, ${percent(read / places.length)}.`,
    "They were chosen in training, so a history of masks would show nothing more. The view of one forecast shows them.",
    ...(reduced ? [gaps] : []),
  ].join(" ");
}

/** Return a moment in seconds since 1970; without an offset it is taken as UTC. NaN if it is not a date. */
function secondsOf(moment) {
  const [, date, clock, offset] = /^(\d{4}-\d\d-\d\d)(?:[T ]([\d:.]+)(Z|[+-]\d\d:\d\d)?)?$/.exec(moment) ?? [];
  return Date.parse(`${date}T${clock ?? "00:00"}${offset ?? "Z"}`) / 1000;
}
