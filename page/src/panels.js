// The side of the page: badge, read rate, one token, shifts, numbers. Each function draws what it is given.

import { column, meanOf, steps } from "./account.js";
import { byId, make } from "./page.js";
import { counted, number, percent, scales, shortened, signed } from "./words.js";

/** @import { Account, Verdict, WhatIf } from "./types" */

const MOST_SHIFTS = 8;
const INVITATION =
  "Click a gate to open or close it, or a patch in the picture. The context is held; the forecast is what the readout then gives, exactly.";

/**
 * The badge: green only while the model's own explanation is shown and its document has passed every check.
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
}

/**
 * The read rate next to the budget; in a what-if, that of its mask.
 * @param {Account} account
 * @param {WhatIf | null} changed
 */
export function showRate(account, changed) {
  const { budget, gates, open_rate: own } = account.scene;
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

export function showWords(account, changed) {
  byId("words").classList.toggle("stale", Boolean(changed));
  byId("words").replaceChildren(
    ...(changed ? [make("em", {}, "The model's own explanation, not the what-if:"), make("br")] : []),
    ...account.scene.words.split("\n").flatMap((line) => [line, make("br")]),
  );
}

/** A token in one sentence, and what a click on it does. */
export function tokenLabel(account, patch, channel, state, canTurn) {
  const byHand = { opened: "; opened by hand", shut: "; closed by hand" }[state] ?? "";
  const isOpen = state === "open" || state === "opened";
  const press = canTurn && state !== "missing" ? `; click to ${isOpen ? "close" : "open"}` : "";
  return `${account.scene.gates.text[patch][channel]}${byHand}${press}`;
}

/** One token and its values, which can be edited: `onEdit(values)`, with null for the original values. */
export function showToken(account, patch, channel, state, edited, onEdit) {
  const [first, last] = steps(account, patch);
  const own = column(account.history.slice(first, last + 1), channel);
  const values = edited ?? own;
  const head = make("p", {}, tokenLabel(account, patch, channel, state, false));
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
      "aria-label": `${account.channels[channel].name} at ${account.times[first + step]}`,
      title: account.times[first + step],
      onchange: (event) => {
        const wished = values.slice();
        wished[step] = event.target.value === "" ? own[step] : Number(event.target.value);
        if (Number.isFinite(wished[step])) onEdit(wished.some((one, at) => one !== own[at]) ? wished : null);
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

/** Old and new side by side, the largest shift first. */
export function showShifts(account, changed) {
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
        make("td", { class: "is-forecast" }, number(meanOf(account.channels[shift.column].values.forecast))),
        make("td", { class: "is-whatif" }, number(meanOf(column(changed.forecast, shift.column)))),
        make("td", {}, `${signed(shift.largest)}`, make("small", {}, ` ${scales(shift.in_scales)}`)),
      ),
    );
  if (moved.length > MOST_SHIFTS)
    rows.push(
      make("tr", {}, make("td", { colspan: 4 }, `and ${counted(moved.length - MOST_SHIFTS, "more channel")} by less`)),
    );
  table.tBodies[0].replaceChildren(...rows);
}

/**
 * The outcome of a what-if in a few sentences.
 * @param {Account} account
 * @param {WhatIf | null} changed
 */
export function outcomeOf(account, changed) {
  if (!changed) return INVITATION;
  const moved = changed.shift.filter((shift) => shift.largest).length;
  const forecast = account.channels.filter((row) => row.values.forecast).length;
  const sentences = [];
  if (changed.scrambled) {
    const unmoved = changed.scrambleMoved
      ? "and the forecast moved, which must not be"
      : "and not one bit of the forecast moved";
    sentences.push(
      `${counted(changed.scrambled, "closed token")} scrambled (${counted(changed.scrambled * account.patchLen, "value")}), ${unmoved}.`,
    );
  } else if (changed.closedEdits) {
    sentences.push(
      `${changed.closedEdits === 1 ? "An edited token is" : `${changed.closedEdits} edited tokens are`} closed: what is in them moves nothing.`,
    );
  }
  if (changed.sameBits && !changed.scrambled) sentences.push("The forecast is the same, bit for bit.");
  else if (!changed.sameBits)
    sentences.push(`The forecast moved in ${moved} of ${counted(forecast, "channel")}.`);
  sentences.push(
    `${changed.openCount} open where the budget allows ${changed.allowance}${changed.withinBudget ? "" : ": more than the model may read"}.`,
  );
  return sentences.join(" ");
}

/**
 * The lines of the picture by name.
 * @param {Account} account
 */
export function showLegend(account) {
  const entries = [...account.scene.legend];
  const before = entries.findIndex((entry) => entry.role === "forecast") + 1;
  entries.splice(before, 0, { role: "whatif", text: "what-if" });
  byId("legend").replaceChildren(
    ...entries.map(({ role, text }) =>
      make("span", { class: role === "whatif" ? "has-whatif" : "" }, make("i", { class: `swatch ${role}` }), text),
    ),
  );
}

/**
 * The forecast of one channel as a table.
 * @param {Account} account
 * @param {WhatIf | null} changed
 */
export function showNumbers(account, changed) {
  const select = byId("numbers-channel");
  const names = account.channels.map((row) => row.name);
  if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n"))
    select.replaceChildren(...names.map((name) => make("option", {}, name)));
  if (!byId("numbers").open) return;
  const channel = Math.max(select.selectedIndex, 0);
  const ahead = (values) => values?.slice(account.lookBack);
  const { forecast, truth, baseline } = account.channels[channel].values;
  const columns = [
    ["forecast", ahead(forecast)],
    ["what-if", forecast && changed && column(changed.forecast, channel)],
    ["truth", ahead(truth)],
    ["baseline", ahead(baseline)],
    ...account.rows.filter((row) => row.kind === "known").map((row) => [row.name, ahead(row.values.known)]),
  ].filter(([, values]) => values);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "time"),
    ...columns.map(([name]) => make("th", { scope: "col" }, name)),
  );
  const rows = ahead(account.times).map((time, step) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, time),
      ...columns.map(([, values]) => make("td", {}, number(values[step]))),
    ),
  );
  byId("numbers-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}
