// The drivers of a channel over a whole table: its sources, and a map of their lags.

import { Grid } from "./grid.js";
import { byId, fill, make } from "./page.js";
import { counted, percent, shortened } from "./words.js";

/** @import { Drivers, Model } from "./types" */

const SOURCES = 12;

export class DriversView {
  #grid = new Grid(byId("lags"), "What moves the channel: sources by patches, the newest at the right", { tallest: SOURCES });

  /**
   * Show the sources of a channel, the largest first, and a map of their lags.
   * @param {Drivers} drivers
   * @param {Model} model
   */
  show(drivers, channel, model) {
    const rows = drivers.rows.filter((row) => row.channel === channel);
    const sources = sourcesOf(rows);
    byId("drivers-words").textContent = sources.length
      ? `${movedWords(sources, channel)} Shares of all amounts in the forecast of ${channel}, on ${counted(drivers.windows, "window")}. They describe the model, not the world.`
      : `Nothing that was read moves ${channel}.`;
    const most = Math.max(...sources.map((one) => one.share), 1e-9);
    byId("sources").tBodies[0].replaceChildren(
      ...sources.slice(0, SOURCES).map((one) => {
        const bar = make("i");
        bar.style.width = `${(100 * one.share) / most}%`;
        return make(
          "tr",
          {},
          make("th", { scope: "row", title: one.source }, sourceName(one, channel)),
          make("td", {}, percent(one.share)),
          make("td", {}, one.where),
          make("td", { class: "bar", "aria-hidden": "true" }, bar),
        );
      }),
    );
    this.#showLags(rows, sources, channel, model);
  }

  #showLags(rows, sources, channel, { patches = 0, patch_len: patchLen = 1 }) {
    const read = rows.filter((row) => row.steps_back !== null);
    const names = sources.map((one) => one.source).filter((name) => read.some((row) => row.source === name));
    byId("lags-part").hidden = !names.length;
    const cells = new Map(read.map((row) => [`${row.source}\n${patches - 1 - row.steps_back / patchLen}`, row]));
    const most = Math.max(...read.map((row) => row.share), 1e-9);
    byId("lags-most").textContent = percent(most);
    this.#grid.show(names.slice(0, SOURCES), patches, (patch, number) => {
      const [name, row] = [names[number], cells.get(`${names[number]}\n${patch}`)];
      const back = lagWords((patches - 1 - patch) * patchLen);
      const label = row
        ? `${name}, ${back}: ${percent(row.share)} of what moves ${channel}; read in ${percent(row.read)} of the windows`
        : `${name}, ${back}: never read`;
      // The square root, because a few large shares would otherwise leave all others nearly white.
      return { value: row ? Math.sqrt(row.share / most) : 0, state: "", label };
    });
  }
}

/** Return the sources of a channel with their summed shares and where each is strongest, the largest first. */
function sourcesOf(rows) {
  const names = [...new Set(rows.map((row) => row.source))];
  const sums = names.map((source) => {
    const own = rows.filter((row) => row.source === source);
    const strongest = own.reduce((one, other) => (other.share > one.share ? other : one));
    const { part } = strongest;
    const where = part === "read" ? `most ${lagWords(strongest.steps_back)}` : part === "unread" || part === "limit" ? "" : part;
    return { source, part, share: own.reduce((sum, row) => sum + row.share, 0), where };
  });
  return sums.filter((one) => one.share > 0).sort((one, other) => other.share - one.share);
}

/** Return how much of what moves a channel is its own past, and what moves it most from outside. */
function movedWords(sources, channel) {
  const own = sources.find((one) => one.source === channel);
  const outside = sources.filter((one) => one.source !== channel && one.part !== "unread" && one.part !== "limit");
  const past = own ? `${percent(own.share)} of what moves ${channel} is its own past` : `Its own past does not move ${channel}`;
  if (!outside.length) return `${past}.`;
  const rest = percent(outside.reduce((sum, one) => sum + one.share, 0));
  return `${past}; ${rest} comes from outside, first from ${outside[0].source}.`;
}

function sourceName({ source, part }, channel) {
  if (source === channel) return "its own past";
  if (part === "limit") return "limits";
  return part === "unread" ? "not read" : shortened(source, 16);
}

function lagWords(steps) {
  return steps ? `${counted(steps, "step")} back` : "at the newest step";
}

/** Let the page choose among the channels that a model forecasts. */
export function fillDriverChannels(model) {
  const names = model.channels.filter((name) => !model.past?.includes(name));
  fill(byId("drivers-channel"), names, names.includes(byId("drivers-channel").value) ? undefined : names[0]);
  return names;
}
