// The side of the page: badge, read rate, one token, shifts, numbers. Each function draws its arguments.

import { column, meanOf, steps } from "./explanation.js";
import { byId, fill, make } from "./page.js";
import { counted, number, percent, scales, shortened, signed } from "./words.js";

/** @import { Explanation, Verdict, WhatIf } from "./types" */

const MOST_SHIFTS = 8;
const NAME_WIDTH = 17;
const INVITATION =
  "Click a gate of the map to open or close it. The context is held fixed; the new forecast is exactly what the readout computes.";
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

/**
 * Show the words of the model's own explanation; while its receipts are computed, only when it was made.
 * @param {Explanation} explanation
 * @param {WhatIf | null} changed
 */
export function showWords(explanation, changed, isPending) {
  const words = byId("words");
  // The space of the previous words is kept, so that the picture does not jump.
  words.style.minHeight = isPending ? `${words.offsetHeight}px` : "";
  words.classList.toggle("stale", Boolean(changed));
  byId("words-note").hidden = !changed;
  const text = isPending ? `${explanation.scene.headline}.\nAdding up what it is made of…` : explanation.scene.words;
  words.replaceChildren(...text.split("\n").flatMap((line) => [line, make("br")]).slice(0, -1));
  fitWords();
}

/** Offer to show all words if some of them are out of sight. */
export function fitWords() {
  const [words, more] = [byId("words"), byId("words-more")];
  const isWhole = words.classList.contains("whole");
  more.hidden = !isWhole && words.scrollHeight <= words.clientHeight + 1;
  more.textContent = isWhole ? "Fewer words" : "All words";
  more.setAttribute("aria-expanded", String(isWhole));
}

/**
 * Return a sentence about a token, what it adds, and what a click on it does.
 * @param {Record<string, string>} adds what each place adds, by "patch.channel"
 */
export function tokenLabel(explanation, patch, channel, state, adds, canTurn) {
  const byHand = { opened: "; opened by hand", shut: "; closed by hand" }[state] ?? "";
  const isOpen = state === "open" || state === "opened";
  const press = canTurn && state !== "missing" ? `; click to ${isOpen ? "close" : "open"}` : "";
  const added = adds[`${patch}.${channel}`];
  return `${explanation.scene.gates.text[patch][channel]}${added ? `; ${added}` : ""}${byHand}${press}`;
}

/**
 * Show one token, a button that turns its gate and inputs for its values; in a report only the token.
 * @param {Record<string, string>} adds what each place adds, by "patch.channel"
 * @param {{ onTurn: () => void, onEdit: (values: number[] | null) => void } | null} actions `onEdit` gets null for the
 *   original values
 */
export function showToken(explanation, patch, channel, state, edited, adds, actions) {
  const [first, last] = steps(explanation, patch);
  const own = column(explanation.history.slice(first, last + 1), channel);
  const values = edited ?? own;
  const head = make("p", {}, tokenLabel(explanation, patch, channel, state, adds, false));
  if (!actions || state === "missing") {
    byId("token").replaceChildren(head);
    return;
  }
  const isOpen = state === "open" || state === "opened";
  const turn = make("button", { onclick: actions.onTurn }, isOpen ? "Close this gate" : "Open this gate");
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
        if (Number.isFinite(next[step])) actions.onEdit(next.some((one, at) => one !== own[at]) ? next : null);
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
  byId("token").replaceChildren(head, turn, editor);
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
  const sentences = [scrambledWords(explanation, changed) ?? editedWords(changed), movedWords(explanation, changed)];
  sentences.push(
    `${changed.openCount} open, and the budget allows ${changed.allowance}${changed.withinBudget ? "" : ": more than the model may read"}.`,
  );
  return sentences.filter(Boolean).join(" ");
}

/**
 * Return what scrambling did, by itself; null if nothing was scrambled.
 * @param {Explanation} explanation
 * @param {WhatIf} changed
 */
function scrambledWords({ patchLen }, { scrambled, scrambleMoved, byHand }) {
  if (!scrambled) return null;
  const what = `${counted(scrambled, "closed token")} scrambled (${counted(scrambled * patchLen, "value")})`;
  if (scrambleMoved) return `${what}, and that moved the forecast, which must not happen.`;
  return byHand ? `${what}: that moved not one bit.` : `${what}, and not one bit of the forecast moved.`;
}

/** @param {WhatIf} changed */
function editedWords({ closedEdits }) {
  if (!closedEdits) return null;
  return closedEdits === 1
    ? "An edited token is closed: its edit moves nothing."
    : `${closedEdits} edited tokens are closed: their edits move nothing.`;
}

/**
 * Return what the changes by hand did to the forecast. If there are none, or if scrambling moved it as well, scrambling
 * has been described already. Limits may give the same forecast although the model computes another.
 * @param {Explanation} explanation
 * @param {WhatIf} changed
 */
function movedWords(explanation, { shift, sameBits, byHand, scrambled, scrambleMoved, closedEdits }) {
  if (!byHand || scrambleMoved) return null;
  const [moved, forecast] = [shift.filter((one) => one.largest), explanation.channels.filter((row) => row.values.forecast)];
  const isRest = Boolean(scrambled || closedEdits);
  if (sameBits) return "The forecast is the same, bit for bit.";
  if (!moved.length)
    return `${isRest ? "With the other changes the" : "The"} model computes another forecast, and its limits give the same one.`;
  const what = isRest ? "The other changes moved the forecast" : "The forecast moved";
  return `${what} in ${moved.length} of ${counted(forecast.length, "channel")}.`;
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
 * Show the names of the lines in the picture, and of the colours of places: what they add to the itemised channel.
 * @param {Explanation} explanation
 * @param {Record<string, number> | null} tones
 */
export function showLegend(explanation, channel, tones) {
  const isOther = ({ role }) => !["open", "raises", "lowers", "neither"].includes(role);
  const entries = explanation.scene.legend.filter(isOther);
  const put = (role, ...more) => entries.splice(entries.findIndex((entry) => entry.role === role), 0, ...more);
  const name = shortened(channel, NAME_WIDTH);
  const colours = [
    { role: "raises", text: `read, raises ${name}` },
    { role: "lowers", text: `read, lowers ${name}` },
    ...(Object.values(tones ?? {}).includes(0) ? [{ role: "neither", text: "read, adds 0" }] : []),
  ];
  put("made", ...(tones ? colours : [{ role: "open", text: "open (read)" }]));
  entries.splice(entries.findIndex((entry) => entry.role === "forecast") + 1, 0, { role: "whatif", text: "what-if" });
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
  fill(select, explanation.channels.map((row) => row.name));
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
