// The drivers of a channel over a whole table: its sources, and maps of their lags and of groups of windows.

import { Grid } from "./grid.js";
import { byId, fill, make } from "./page.js";
import { counted, number, percent, shortened } from "./words.js";

/** @import { Drivers, Model } from "./types" */

const SOURCES = 12;
/** The largest number of groups whose names are all shown. */
const NAMED = 12;

export class DriversView {
  #grid = new Grid(byId("lags"), "What moves the channel: sources by patches, the newest at the right", { tallest: SOURCES });
  #groups = new Grid(byId("groups"), "What moves the channel: sources by groups of windows", { tallest: SOURCES });

  /** Hide the groups, because others are being computed. */
  hideGroups() {
    byId("groups-part").hidden = true;
  }

  /**
   * Show the sources of a channel, the largest first, and maps of their lags and of the groups.
   * @param {Drivers} drivers
   * @param {Model} model
   */
  show(drivers, channel, model) {
    const rows = drivers.rows.filter((row) => row.channel === channel);
    const all = sourcesOf(drivers, rows, channel);
    const sources = all.filter((one) => one.share > 0);
    byId("drivers-words").textContent = sources.length
      ? `${movedWords(sources, channel)} Shares of what all sources add to the forecast of ${channel}, on ${windowsWords(drivers)}. They describe the model, not the world.`
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
    this.#showLags(rows, all, channel, model);
    this.#showGroups(drivers, sources, channel);
  }

  #showLags(rows, sources, channel, { patches = 0, patch_len: patchLen = 1 }) {
    const read = rows.filter((row) => row.steps_back !== null);
    const moving = new Set(read.filter((row) => row.share > 0).map((row) => row.source));
    const names = sources.map((one) => one.source).filter((name) => moving.has(name));
    byId("lags-part").hidden = !names.length;
    const cells = new Map(read.map((row) => [`${row.source}\n${patches - 1 - row.steps_back / patchLen}`, row]));
    const most = Math.max(...read.map((row) => row.share), 1e-9);
    byId("lags-most").textContent = percent(most);
    this.#grid.show(names.slice(0, SOURCES), patches, (patch, number) => {
      const [name, row] = [names[number], cells.get(`${names[number]}\n${patch}`)];
      const back = lagWords((patches - 1 - patch) * patchLen);
      const label = row
        ? `${name}, ${back}: ${percent(row.share)} of the sizes of all places that move ${channel}; read in ${percent(row.read)} of the windows`
        : `${name}, ${back}: never read`;
      // The square root, because a few large shares would otherwise leave all others nearly white.
      return { value: row ? Math.sqrt(row.share / most) : 0, state: "", label };
    });
  }

  /** @param {Drivers} drivers */
  #showGroups({ by, groups, watch }, sources, channel) {
    const rows = groups.filter((row) => row.channel === channel);
    byId("groups-part").hidden = !rows.length;
    if (!rows.length) return;
    const columns = [...new Set(rows.map((row) => row.group))];
    const shown = sources.slice(0, SOURCES);
    const cells = new Map(rows.map((row) => [`${row.source}\n${row.group}`, row]));
    const most = Math.max(...rows.map((row) => row.size), 1e-300);
    byId("groups-title").textContent = `By ${by}`;
    byId("groups-words").textContent = watchWords(by, watch[channel], channel);
    byId("groups-most").textContent = number(most);
    byId("groups-heads").replaceChildren(make("span"), ...columns.map((name, place) => make("span", {}, headOf(name, place, columns.length))));
    byId("groups-heads").classList.toggle("many", columns.length > NAMED);
    const names = shown.map((one) => (one.source === channel ? channel : sourceName(one, channel)));
    this.#groups.show(names, columns.length, (column, place) => {
      const group = columns[column];
      const row = cells.get(`${shown[place].source}\n${group}`);
      if (!row) return { value: 0, state: "", label: "" };
      const label = `${row.source}, ${group}: ${number(row.size)}, ${percent(row.share)} of what all sources add, on ${counted(row.windows, "window")}`;
      return { value: Math.sqrt(row.size / most), state: "", label };
    });
  }
}

/** Return the sources that vary most between groups; for events also their definition. */
function watchWords(by, watch, channel) {
  const events = by === "event" ? `Events are the tenth of the windows in which the forecast of ${channel} is furthest from the calendar. ` : "";
  const varied = watch?.length ? `Largest differences: ${watch.join("; ")}, in units of ${channel}.` : "Every source adds the same in all of them.";
  return events + varied;
}

/** Return the name of a group above its column: short, and of many only some. */
function headOf(name, place, count) {
  if (count > NAMED) return place % 6 ? "" : name.slice(0, 2);
  return name.slice(0, count > 2 ? 3 : name.length);
}

/** @param {Drivers} drivers */
function windowsWords({ windows, by }) {
  const spread = by && by !== "event" ? `, about equally many of each ${by}` : "";
  return `${counted(windows, "window")}${spread}`;
}

/**
 * Return the sources of a channel as wholes, and where each is strongest, the largest first.
 * @param {Drivers} drivers
 */
function sourcesOf({ sources }, rows, channel) {
  return sources.filter((one) => one.channel === channel).map(({ source, share }) => {
    const own = rows.filter((row) => row.source === source);
    const strongest = own.reduce((one, other) => (other.share > one.share ? other : one));
    const { part } = strongest;
    const where = part === "read" ? `most ${lagWords(strongest.steps_back)}` : part === "unread" || part === "limit" ? "" : part;
    return { source, part, share, where };
  });
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
