// Why a forecast differs from an earlier one: the difference in words, and its reasons as a waterfall.

import { byId, make } from "./page.js";
import { bar, line, text } from "./receipt.js";

/** @import { Comparison } from "./types" */

/**
 * Show a comparison, or what stands in its place: that it is being computed, or why there is none.
 * @param {Comparison | null} own
 */
export function showComparison(own, note = "") {
  byId("compare-words").textContent = own ? own.words.split("\n")[0] : note;
  byId("compare-table").hidden = !own?.reasons.length;
  if (!own) return;
  const [before, after] = own.totals;
  const sums = [before];
  for (const { change } of own.reasons) sums.push(Number((sums[sums.length - 1] + change).toFixed(own.decimals)));
  const [low, high] = [Math.min(...sums), Math.max(...sums)];
  const total = (name, when, value) =>
    line(make("b", {}, name), when, make("b", {}, text(value, own.decimals, false)), bar(value, value, low, high));
  byId("compare-table").tBodies[0].replaceChildren(
    total("earlier forecast", own.other_at, before),
    ...own.reasons.map((reason, at) => {
      const [name, ...more] = reason.text.split(", ");
      const amount = text(reason.change, own.decimals, true);
      return line(name, more.join(", "), amount, bar(sums[at], sums[at + 1], low, high));
    }),
    total("= this forecast", "", after),
  );
}
