// The receipt of a forecast: amounts that add up, for one step or the mean, and one place over the whole horizon.

import { steps } from "./explanation.js";
import { byId, fill, make } from "./page.js";
import { brief, shortened } from "./words.js";

/** @import { Explanation, Receipt, Receipts } from "./types" */

const LARGEST = 6;
const MOST_KNOWN = 3;

/**
 * Return patch and channel of every open token, in the order in which a receipt lists them.
 * @param {Explanation} explanation
 * @returns {[number, number][]}
 */
function placesOf({ scene: { gates } }) {
  return gates.state.flatMap((row, patch) =>
    row.flatMap((state, channel) => (state === "open" ? [/** @type {[number, number]} */ ([patch, channel])] : [])),
  );
}

/**
 * Return what each place adds to the number that is itemised, as a part of the largest amount, by "patch.channel"; null
 * if that receipt is not known.
 * @param {Explanation} explanation
 * @param {{ channel: string, step: number }} chosen
 * @returns {Record<string, number> | null}
 */
export function tonesOf(explanation, chosen) {
  const { read } = shownStep(explanation, chosen) ?? {};
  if (!read) return null;
  const largest = Math.max(...read.map(Math.abs), 0) || 1;
  return Object.fromEntries(placesOf(explanation).map((place, at) => [place.join("."), read[at] / largest]));
}

/**
 * Return what each place adds to the number that is itemised, in words, by "patch.channel"; empty if that receipt is not
 * known.
 * @param {Explanation} explanation
 * @param {{ channel: string, step: number }} chosen
 * @returns {Record<string, string>}
 */
export function addsOf(explanation, chosen) {
  const { read, moment } = shownStep(explanation, chosen) ?? {};
  if (!read) return {};
  const forecast = moment ? `forecast of ${chosen.channel} for ${moment}` : `mean forecast of ${chosen.channel}`;
  const written = (amount) => `${amount > 0 ? "+" : ""}${Number(amount.toPrecision(6))}`.replace(/-/g, "−");
  return Object.fromEntries(
    placesOf(explanation).map((place, at) => [place.join("."), `adds ${written(read[at])} to the ${forecast}`]),
  );
}

/**
 * Return the amounts of places in the receipt that is shown, and its moment, undefined for the mean; null if that
 * receipt is not known.
 * @param {Explanation} explanation
 * @param {{ channel: string, step: number }} chosen
 */
function shownStep({ receipts, times, lookBack }, { channel, step }) {
  const own = receipts?.find((one) => one.channel === channel);
  if (!own) return null;
  const at = Math.min(step, own.steps.length - 1);
  return { read: own.steps[at].read, moment: at ? times[lookBack + at - 1] : undefined };
}

/** Return the name and the time of a place. */
function placeWords(explanation, [patch, channel]) {
  const [first, last] = steps(explanation, patch).map((step) => explanation.times[step]);
  return [explanation.channels[channel].name, first === last ? first : `${first} to ${last}`];
}

/**
 * Return the entries of a receipt, rounded so that they still add up: the sum of the others takes what rounding leaves.
 * @param {Explanation} explanation
 * @param {Receipt} own
 * @param {number} decimals
 */
export function entriesOf(explanation, own, decimals) {
  const places = placesOf(explanation);
  const round = (amount) => Number(amount.toFixed(decimals)) + 0;
  const order = own.read.map((_, at) => at).sort((one, other) => Math.abs(own.read[other]) - Math.abs(own.read[one]));
  const largest = order.slice(0, LARGEST).filter((at) => round(own.read[at]) !== 0);
  const others = order.length - largest.length;
  const covariates = explanation.rows.filter((row) => row.kind === "known").map((row) => row.name);
  const known =
    own.known.length > MOST_KNOWN
      ? [[`${own.known.length} covariates`, own.known.reduce((sum, amount) => sum + amount, 0)]]
      : own.known.map((amount, at) => [shortened(covariates[at], 24), amount]);
  const entries = largest.map((at) => {
    const [name, when] = placeWords(explanation, places[at]);
    return { part: "read", name, when, amount: round(own.read[at]), place: at };
  });
  const more = [
    ...known.map(([name, amount]) => ({ part: "known", name, when: "known ahead", amount: round(amount), place: -1 })),
    ...(own.unread === null
      ? []
      : [{ part: "unread", name: "values that were not read", when: "", amount: round(own.unread), place: -1 }]),
    ...(own.limit ? [{ part: "limit", name: "the limits of the forecast", when: "", amount: round(own.limit), place: -1 }] : []),
  ];
  const calendar = { part: "calendar", name: "calendar", when: "", amount: round(own.calendar), place: -1 };
  const rest = { part: "others", name: `${others} other read`, when: "", amount: 0, place: -1 };
  const listed = [calendar, ...entries, ...(others ? [rest] : []), ...more];
  const left = own.forecast - listed.reduce((sum, entry) => sum + entry.amount, 0);
  const taker = others ? rest : calendar;
  taker.amount = round(taker.amount + left);
  return listed;
}

/**
 * Show the receipt of the chosen channel and step, and the chosen place; hide the panel if there is no channel to choose.
 * @param {Explanation} explanation
 * @param {{ channel: string, step: number, place: [number, number] | null }} chosen
 * @param {{ names: string[], notes: string[] }} about the channels to choose among, and remarks on the receipt
 * @param {(place: [number, number]) => void} onPlace
 */
export function showReceipt(explanation, chosen, { names, notes }, onPlace) {
  byId("receipt").hidden = !names.length;
  const own = explanation.receipts?.find((one) => one.channel === chosen.channel);
  const remarks = [...notes, ...errorWords(own, chosen.step)];
  byId("receipt-notes").replaceChildren(...remarks.map((note) => make("p", {}, note)));
  fill(byId("receipt-channel"), names, chosen.channel);
  byId("receipt-table").hidden = !own;
  byId("receipt-place").hidden = true;
  if (!own) return;
  const step = Math.min(chosen.step, own.steps.length - 1);
  const moments = ["mean", ...explanation.times.slice(explanation.lookBack)].slice(0, own.steps.length);
  fill(byId("receipt-step"), moments);
  byId("receipt-step").selectedIndex = step; // not by its text: a clock may show the same time twice
  showEntries(explanation, own, step, onPlace);
  showPlace(explanation, own, chosen.place, moments);
}

/**
 * Return how exact the amounts of read values are; nothing if they are exact.
 * @param {Receipts | undefined} own
 */
function errorWords(own, step) {
  const error = own?.steps[Math.min(step, own.steps.length - 1)].error ?? null;
  if (!own || error === null) return [];
  return [`The amounts are estimates, with a standard error of at most ${Number(error.toPrecision(2))}; their sum is exact.`];
}

/** Show the amounts of one step as a waterfall. */
function showEntries(explanation, own, step, onPlace) {
  const entries = entriesOf(explanation, own.steps[step], own.decimals);
  const total = Number(own.steps[step].forecast.toFixed(own.decimals));
  const sums = entries.map((_, at) => entries.slice(0, at + 1).reduce((sum, entry) => sum + entry.amount, 0));
  const [low, high] = [Math.min(...sums), Math.max(...sums)];
  const places = placesOf(explanation);
  const rows = entries.map((entry, at) =>
    line(
      entry.place < 0
        ? entry.name
        : make("button", { class: "plain", onclick: () => onPlace(places[entry.place]) }, shortened(entry.name, 24)),
      entry.when,
      text(entry.amount, own.decimals, at > 0),
      at ? bar(sums[at - 1], sums[at], low, high) : bar(sums[0], sums[0], low, high),
    ),
  );
  rows.push(line(make("b", {}, "= forecast"), "", make("b", {}, text(total, own.decimals, false)), bar(total, total, low, high)));
  byId("receipt-table").tBodies[0].replaceChildren(...rows);
}

/** Show what one place adds at every step, or to the mean if that is all there is. */
function showPlace(explanation, own, place, names) {
  const at = place ? placesOf(explanation).findIndex(([patch, channel]) => patch === place[0] && channel === place[1]) : -1;
  byId("receipt-place").hidden = at < 0;
  if (at < 0) return;
  const [name, when] = placeWords(explanation, place);
  const all = own.steps.map((each) => each.read[at]);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const written = (amount) => brief(amount, Math.max(high, -low));
  byId("receipt-place").tBodies[0].replaceChildren(
    ...all.map((amount, step) => line(names[step], "", written(amount), bar(0, amount, low, high))),
  );
  byId("receipt-place").caption.textContent = `Amounts of ${name}, ${when}, in the forecast of ${own.channel}`;
}

/** Return a row of amounts: a name and a time, the amount, and its bar. */
export function line(name, when, amount, drawn) {
  const head = make("th", { scope: "row" }, name, when ? make("small", {}, ` ${when}`) : null);
  return make("tr", {}, head, make("td", {}, amount), make("td", { class: "bar", "aria-hidden": "true" }, drawn));
}

/** Return a bar between two sums; a sum by itself is an upright mark. */
export function bar(before, after, low, high) {
  const place = (value) => (high > low ? (100 * (value - low)) / (high - low) : 50);
  const drawn = make("i", { class: before === after ? "mark" : after > before ? "raises" : "lowers" });
  drawn.style.left = `${place(Math.min(before, after))}%`;
  drawn.style.width = `${Math.abs(place(after) - place(before))}%`;
  return drawn;
}

/** Return an amount as text; a signed one has a plus if it is positive. */
export function text(amount, decimals, isSigned) {
  return `${isSigned && amount > 0 ? "+" : ""}${amount.toFixed(decimals)}`.replace("-", "−");
}
