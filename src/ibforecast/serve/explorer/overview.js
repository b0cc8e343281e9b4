// The second tab: a model over a whole table, its gates and its errors.

import uPlot from "./vendor/uPlot.esm.js";
import { Grid } from "./grid.js";
import { byId, colour } from "./page.js";
import { counted, dayTicks, number, percent, tickTexts, valueTicks } from "./words.js";

const GUTTER = 56;

export class Overview {
  #history = null;
  #charts = [];

  /** `onMoment(label)` is told which moment is to be looked at closely. */
  constructor(onMoment) {
    this.onMoment = onMoment;
    this.grid = new Grid(
      byId("frequency"),
      "How often each gate is open: channels by patches, the newest at the right",
      { tallest: 30 },
    );
    new ResizeObserver(() => this.#resize()).observe(byId("errors"));
  }

  show(history, model) {
    this.#history = history;
    const { channels, open_frequency: frequency, windows, available } = history;
    byId("over").textContent =
      `${counted(windows, "window")}, evenly spaced among ${available.toLocaleString("en")}, from ${history.moments[0]} to ${history.moments.at(-1)}.`;
    this.grid.show(channels, frequency.length, (patch, channel) => ({
      value: frequency[patch][channel],
      state: "",
      label: `${channels[channel]}, patch ${patch + 1} of ${frequency.length}: open in ${percent(frequency[patch][channel])} of the windows`,
    }));
    for (const chart of this.#charts) chart.destroy();
    this.#charts = [
      this.#chart(byId("errors"), [
        { values: history.squared_error, name: "forecast", width: 1.6 },
        { values: history.absolute_error, name: "baseline", width: 1.4 },
      ]),
      this.#chart(
        byId("rates"),
        [
          { values: history.open_rate, name: "open", width: 1.6 },
          { values: history.open_rate.map(() => model.budget), name: "ink", width: 1, dash: [6, 4] },
        ],
        true,
      ),
    ];
    const mean = (values) => {
      const known = values.filter((value) => value !== null);
      return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    };
    byId("error-words").textContent =
      `Mean squared error ${number(mean(history.squared_error))}, mean absolute error ${number(mean(history.absolute_error))}, in standardised units.`;
    byId("rate-words").textContent =
      `On average ${percent(mean(history.open_rate))} of a window is read, at most ${percent(Math.max(...history.open_rate))}; the budget allows ${percent(model.budget)}.`;
  }

  redraw() {
    for (const chart of this.#charts) chart.redraw(false);
  }

  #chart(host, lines, fromNought = true) {
    const { moments } = this.#history;
    const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
    const [low, high] = [fromNought ? 0 : Math.min(...values), Math.max(...values, 1e-9)];
    const grid = { stroke: () => colour("grid"), width: 1 };
    const axis = {
      stroke: () => colour("faint-ink"),
      font: "11px system-ui, sans-serif",
      ticks: { show: false },
      grid,
    };
    const wide = () => Math.max(host.clientWidth - GUTTER, 200);
    const ticks = () => dayTicks(moments, Math.max(3, Math.floor(wide() / 110)));
    const chart = new uPlot(
      {
        width: host.clientWidth,
        height: host.clientHeight,
        padding: [8, 14, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "overview" } },
        scales: { x: { time: false }, y: { range: [low, high * 1.08] } },
        axes: [
          {
            ...axis,
            size: 30,
            gap: 8,
            splits: () => ticks().map((tick) => tick.at),
            values: () => ticks().map((tick) => tick.text),
          },
          {
            ...axis,
            size: GUTTER,
            splits: (_chart, _axis, least, most) => [0, ...valueTicks(least, most)],
            values: (_chart, splits) => tickTexts(splits),
          },
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
      [moments.map((_, at) => at), ...lines.map((line) => line.values)],
      host,
    );
    chart.over.addEventListener("click", () => this.onMoment(moments[chart.posToIdx(chart.cursor.left)]));
    return chart;
  }

  #resize() {
    for (const [chart, host] of this.#charts.map((chart) => [chart, chart.root.parentNode])) {
      if (host?.clientWidth) chart.setSize({ width: host.clientWidth, height: host.clientHeight });
    }
  }
}
