// The side of the page: badge, read rate, one token, shifts, numbers. Each function draws its arguments.

import { column, meanOf, steps } from "./explanation.js";
import { byId, make } from "./page.js";
import { counted, number, percent, scales, shortened, signed } from "./words.js";

/** @import { Explanation, Verdict, WhatIf } from "./types" */

const MOST_SHIFTS = 8;
const INVITATION =
  "Click a gate to open or close it, or a patch in the picture. The context is held fixed; the new forecast is exactly what the readout computes.";
const SEALED_INVITATION = `${INVITATION} Only scrambling holds nothing: the whole model runs again.`;
const UNREAD_CHECKED =
  " When it was made, every unread value was replaced and the whole model run again, with nothing held: mask, context and forecast were the same, bit for bit.";

/**
 * Show the badge: green only if the model's own explanation is shown and its document passed every check.
 * @param {Verdict | null} verdict
 */
export function showBadge(state, verdict = null, isWhatIf = false) {
  const words = {
    checking: ["○", "Checking…"],
    verified: ["✓", verdict?.made ? "Verified when made" : "Verified"],
    refuted: ["✗", "Not verified"],
    unknown: ["○", "Not checked"],
  }[state];
  const badge = byId("badge");
  badge.className = isWhatIf ? "badge whatif" : `badge ${state}`;
  byId("badge-mark").textContent = isWhatIf ? "◇" : words[0];
  byId("badge-words").replaceChildren(
    ...(isWhatIf ? ["What-if ", make("small", {}, `model's own: ${words[1].toLowerCase()}`)] : [words[1]]),
  );
  const checks = (verdict?.checks ?? []).map((check) =>
    make("li", { class: check.passed ? "passed" : "failed" }, make("b", {}, check.name), ` ${check.detail}`),
  );
  const notes = (verdict?.notes ?? []).map((note) => make("li", {}, note));
  const made = verdict?.made;
  const again = made
    ? [
        make(
          "li",
          {},
          `Made on ${made.on} with ibforecast ${made.version}. To check it yourself, export the JSON and run ibforecast verify.`,
        ),
      ]
    : [];
  byId("checks").replaceChildren(...checks, ...notes, ...again);
  const wasScrambled = made && verdict?.checks.some((check) => check.name === "unread" && check.passed);
  byId("unread-checked").textContent = wasScrambled ? UNREAD_CHECKED : "";
}

/**
 * Show the read rate next to the budget; in a what-if, the rate of its mask.
 * @param {Explanation} explanation
 * @param {WhatIf | null} changed
 */
export function showRate(explanation, changed) {
  const { budget, gates, open_rate: own } = explanation.scene;
  const open = changed ? changed.openCount : gates.state.flat().filter((state) => state === "open").length;
  const rate = changed ? changed.openRate : own;
  const size = gates.state.flat().length;
  const beyond = changed && !changed.withinBudget;
  byId("rate-read").replaceChildren(
    make("b", {}, percent(rate)),
    ` read · ${open} of ${size.toLocaleString("en")} tokens`,
  );
  byId("rate-budget").textContent = beyond
    ? `beyond the budget of ${percent(budget)}`
    : `budget ${percent(budget)}`;
  const meter = byId("meter");
  const most = Math.min(1, Math.max(2 * budget, 1.15 * rate));
  meter.classList.toggle("beyond", Boolean(beyond));
  meter.setAttribute("aria-valuenow", rate.toFixed(4));
  meter.setAttribute("aria-valuetext", `${percent(rate)} read, budget ${percent(budget)}`);
  byId("meter-fill").style.width = `${(100 * rate) / most}%`;
  byId("meter-budget").style.left = `${(100 * budget) / most}%`;
}

export function showWords(explanation, changed) {
  byId("words").classList.toggle("stale", Boolean(changed));
  byId("words").replaceChildren(
    ...(changed ? [make("em", {}, "The model's own explanation, not the what-if:"), make("br")] : []),
    ...explanation.scene.words.split("\n").flatMap((line) => [line, make("br")]),
  );
}

/** Return a sentence about a token, and what a click on it does. */
export function tokenLabel(explanation, patch, channel, state, canTurn) {
  const byHand = { opened: "; opened by hand", shut: "; closed by hand" }[state] ?? "";
  const isOpen = state === "open" || state === "opened";
  const press = canTurn && state !== "missing" ? `; click to ${isOpen ? "close" : "open"}` : "";
  return `${explanation.scene.gates.text[patch][channel]}${byHand}${press}`;
}

/** Show one token and inputs for its values; `onEdit(values)` is called on a change, with null for the original values. */
export function showToken(explanation, patch, channel, state, edited, onEdit) {
  const [first, last] = steps(explanation, patch);
  const own = column(explanation.history.slice(first, last + 1), channel);
  const values = edited ?? own;
  const head = make("p", {}, tokenLabel(explanation, patch, channel, state, false));
  if (!onEdit || state === "missing") {
    byId("token").replaceChildren(head);
    return;
  }
  const inputs = values.map((value, step) =>
    make("input", {
      type: "number",
      step: "any",
      value: Number(value.toPrecision(7)),
      class: edited && edited[step] !== own[step] ? "edited" : "",
      "aria-label": `${explanation.channels[channel].name} at ${explanation.times[first + step]}`,
      title: explanation.times[first + step],
      onchange: (event) => {
        const next = values.slice();
        next[step] = event.target.value === "" ? own[step] : Number(event.target.value);
        if (Number.isFinite(next[step])) onEdit(next.some((one, at) => one !== own[at]) ? next : null);
      },
    }),
  );
  const editor = make(
    "details",
    { class: "edit" },
    make("summary", {}, "Edit its values"),
    make("div", { class: "values" }, ...inputs),
  );
  editor.open = Boolean(edited) || Boolean(byId("token").querySelector("details[open]"));
  byId("token").replaceChildren(head, editor);
}

/** Show the old and the new forecast of each channel that moved, the largest shift first. */
export function showShifts(explanation, changed) {
  const table = byId("shifts");
  const moved = (changed?.shift ?? [])
    .map((shift, channel) => ({ ...shift, column: channel }))
    .filter((shift) => shift.largest); // null for a channel that is not forecast
  moved.sort((one, other) => other.in_scales - one.in_scales);
  table.hidden = !moved.length;
  const rows = moved
    .slice(0, MOST_SHIFTS)
    .map((shift) =>
      make(
        "tr",
        {},
        make("th", { scope: "row", title: shift.channel }, shortened(shift.channel, 14)),
        make("td", { class: "is-forecast" }, number(meanOf(explanation.channels[shift.column].values.forecast))),
        make("td", { class: "is-whatif" }, number(meanOf(column(changed.forecast, shift.column)))),
        make("td", {}, `${signed(shift.largest)} `, make("small", {}, scales(shift.in_scales))),
      ),
    );
  if (moved.length > MOST_SHIFTS)
    rows.push(
      make("tr", {}, make("td", { colspan: 4 }, `and ${counted(moved.length - MOST_SHIFTS, "more channel")} by less`)),
    );
  table.tBodies[0].replaceChildren(...rows);
}

/**
 * Return the outcome of a what-if in a few sentences.
 * @param {Explanation} explanation
 * @param {WhatIf | null} changed
 */
export function outcomeOf(explanation, changed) {
  if (!changed) return explanation.sealed ? SEALED_INVITATION : INVITATION;
  if (changed.rerun) return rerunWords(changed.rerun);
  const moved = changed.shift.filter((shift) => shift.largest).length;
  const forecast = explanation.channels.filter((row) => row.values.forecast).length;
  const sentences = [];
  if (changed.scrambled) {
    const unmoved = changed.scrambleMoved
      ? "and the forecast moved, which must not happen"
      : "and not one bit of the forecast moved";
    sentences.push(
      `${counted(changed.scrambled, "closed token")} scrambled (${counted(changed.scrambled * explanation.patchLen, "value")}), ${unmoved}.`,
    );
  } else if (changed.closedEdits) {
    sentences.push(
      `${changed.closedEdits === 1 ? "An edited token is" : `${changed.closedEdits} edited tokens are`} closed: the edit moves nothing.`,
    );
  }
  if (changed.sameBits && !changed.scrambled) sentences.push("The forecast is the same, bit for bit.");
  else if (!changed.sameBits)
    sentences.push(`The forecast moved in ${moved} of ${counted(forecast, "channel")}.`);
  sentences.push(
    `${changed.openCount} open, and the budget allows ${changed.allowance}${changed.withinBudget ? "" : ": more than the model may read"}.`,
  );
  return sentences.join(" ");
}

function rerunWords({ replaced, changed }) {
  const same = "Mask, context and forecast are the same to the last bit.";
  return [
    `${counted(replaced, "unread value")} replaced by noise, and the whole model run again.`,
    "Nothing was held, neither the mask nor the context.",
    changed.length ? `Changed, which must not happen: ${changed.join(", ")}.` : same,
  ].join(" ");
}

/**
 * Show the names of the lines in the picture.
 * @param {Explanation} explanation
 */
export function showLegend(explanation) {
  const entries = [...explanation.scene.legend];
  const before = entries.findIndex((entry) => entry.role === "forecast") + 1;
  entries.splice(before, 0, { role: "whatif", text: "what-if" });
  byId("legend").replaceChildren(
    ...entries.map(({ role, text }) =>
      make("span", { class: role === "whatif" ? "has-whatif" : "" }, make("i", { class: `swatch ${role}` }), text),
    ),
  );
}

/**
 * Show the forecast of one channel as a table.
 * @param {Explanation} explanation
 * @param {WhatIf | null} changed
 */
export function showNumbers(explanation, changed) {
  const select = byId("numbers-channel");
  const names = explanation.channels.map((row) => row.name);
  if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n"))
    select.replaceChildren(...names.map((name) => make("option", {}, name)));
  if (!byId("numbers").open) return;
  const channel = Math.max(select.selectedIndex, 0);
  const ahead = (values) => values?.slice(explanation.lookBack);
  const { forecast, truth, baseline, calendar } = explanation.channels[channel].values;
  const columns = [
    ["forecast", ahead(forecast)],
    ["what-if", forecast && changed && column(changed.forecast, channel)],
    ["truth", ahead(truth)],
    ["baseline", ahead(baseline)],
    ["calendar", ahead(calendar)],
    ...explanation.rows.filter((row) => row.kind === "known").map((row) => [row.name, ahead(row.values.known)]),
  ].filter(([, values]) => values);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "time"),
    ...columns.map(([name]) => make("th", { scope: "col" }, name)),
  );
  const rows = ahead(explanation.times).map((time, step) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, time),
      ...columns.map(([, values]) => make("td", {}, number(values[step]))),
    ),
  );
  byId("numbers-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}
