// The side of the page: badge, read rate, one token, shifts, numbers. Each function draws what it is given.

import { column, meanOf, steps } from "./account.js";
import { byId, make } from "./page.js";
import { counted, number, percent, scales, shortened, signed } from "./words.js";

const MOST_SHIFTS = 8;
const STATES = {
  open: "open",
  closed: "closed",
  missing: "missing values, cannot be read",
  opened: "opened by hand",
  shut: "closed by hand",
};

/** The badge is green only where the model's own explanation is shown and this very document passed its check. */
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
  const made = verdict?.made;
  const again = made
    ? [
        make(
          "li",
          {},
          `On ${made.on} with ibforecast ${made.version}. To check again: export the JSON, then ibforecast verify.`,
        ),
      ]
    : [];
  byId("checks").replaceChildren(...checks, ...again);
}

/** Read rate against the budget; in a what-if, that of the mask by hand. */
export function showRate(account, changed) {
  const size = account.patches * account.channels.length;
  const open = changed ? changed.openCount : account.openCount;
  const rate = open / size;
  const beyond = changed && !changed.withinBudget;
  byId("rate-read").replaceChildren(
    make("b", {}, percent(rate)),
    ` read · ${open} of ${size.toLocaleString("en")} tokens`,
  );
  byId("rate-budget").textContent = beyond
    ? `beyond the budget of ${percent(account.budget)}`
    : `budget ${percent(account.budget)}`;
  const meter = byId("meter");
  const most = Math.min(1, Math.max(2 * account.budget, 1.15 * rate));
  meter.classList.toggle("beyond", Boolean(beyond));
  meter.setAttribute("aria-valuenow", rate.toFixed(4));
  meter.setAttribute("aria-valuetext", `${percent(rate)} read, budget ${percent(account.budget)}`);
  byId("meter-fill").style.width = `${(100 * rate) / most}%`;
  byId("meter-budget").style.left = `${(100 * account.budget) / most}%`;
}

export function showWords(account, changed) {
  byId("words").classList.toggle("stale", Boolean(changed));
  byId("words").replaceChildren(
    ...(changed ? [make("em", {}, "The model's own explanation, not the what-if:"), make("br")] : []),
    ...account.inWords.split("\n").flatMap((line) => [line, make("br")]),
  );
}

/** A token in one sentence, for its cell in the map. */
export function tokenLabel(account, patch, channel, state, canTurn) {
  const [first, last] = steps(account, patch);
  const press =
    canTurn && state !== "missing" ? `; click to ${state === "open" || state === "opened" ? "close" : "open"}` : "";
  return `${account.channels[channel]}, patch ${patch + 1} of ${account.patches}, ${account.times[first]} to ${account.times[last]}: ${STATES[state]}, probability ${account.probability[patch][channel].toFixed(3)}${press}`;
}

/** One token: what it is, and its values, which can be edited. `onEdit(values)` gets null for the values as they were. */
export function showToken(account, patch, channel, state, edited, onEdit) {
  const [first, last] = steps(account, patch);
  const own = column(account.history.slice(first, last + 1), channel);
  const values = edited ?? own;
  const head = make(
    "p",
    {},
    make("b", {}, account.channels[channel]),
    ` ${account.times[first]} to ${account.times[last]}`,
    make("br"),
    `${STATES[state]}, probability ${account.probability[patch][channel].toFixed(3)}`,
  );
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
      "aria-label": `${account.channels[channel]} at ${account.times[first + step]}`,
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
    .filter((shift) => shift.largest !== 0);
  moved.sort((one, other) => other.in_scales - one.in_scales);
  table.hidden = !moved.length;
  const rows = moved
    .slice(0, MOST_SHIFTS)
    .map((shift) =>
      make(
        "tr",
        {},
        make("th", { scope: "row", title: shift.channel }, shortened(shift.channel, 14)),
        make("td", { class: "is-forecast" }, number(meanOf(account.forecast, shift.column))),
        make("td", { class: "is-whatif" }, number(meanOf(changed.forecast, shift.column))),
        make("td", {}, `${signed(shift.largest)}`, make("small", {}, ` ${scales(shift.in_scales)}`)),
      ),
    );
  if (moved.length > MOST_SHIFTS)
    rows.push(
      make("tr", {}, make("td", { colspan: 4 }, `and ${counted(moved.length - MOST_SHIFTS, "more channel")} by less`)),
    );
  table.tBodies[0].replaceChildren(...rows);
}

/** What came out of the what-if, in a sentence. */
export function tellWhatIf(account, changed) {
  if (!changed)
    return "Click a gate to open or close it, or a patch in the picture. The context is held; the forecast is what the readout then gives, exactly.";
  const moved = changed.shift.filter((shift) => shift.largest !== 0).length;
  const told = [];
  if (changed.scrambled) {
    const unmoved = changed.scrambleMoved
      ? "and the forecast moved, which must not be"
      : "and not one bit of the forecast moved";
    told.push(
      `${counted(changed.scrambled, "closed token")} scrambled (${counted(changed.scrambled * account.patchLen, "value")}), ${unmoved}.`,
    );
  } else if (changed.closedEdits) {
    told.push(
      `${changed.closedEdits === 1 ? "An edited token is" : `${changed.closedEdits} edited tokens are`} closed: what is in them moves nothing.`,
    );
  }
  if (changed.sameBits && !changed.scrambled) told.push("The forecast is the same, bit for bit.");
  else if (!changed.sameBits)
    told.push(`The forecast moved in ${moved} of ${counted(account.channels.length, "channel")}.`);
  told.push(
    `${changed.openCount} open where the budget allows ${changed.allowance}${changed.withinBudget ? "" : ": more than the model may read"}.`,
  );
  return told.join(" ");
}

/** The forecast of one channel as a table. */
export function showNumbers(account, changed) {
  const select = byId("numbers-channel");
  if (select.options.length !== account.channels.length || select.options[0]?.value !== account.channels[0]) {
    select.replaceChildren(...account.channels.map((name) => make("option", {}, name)));
  }
  if (!byId("numbers").open) return;
  const channel = Math.max(select.selectedIndex, 0);
  const columns = [
    ["forecast", account.forecast],
    ["what-if", changed?.forecast],
    ["truth", account.truth],
    ["baseline", account.expected.slice(account.lookBack)],
    ...account.known.map((one) => [
      one.covariate,
      one.values.slice(account.lookBack).map((value) => account.channels.map(() => value)),
    ]),
  ].filter(([, matrix]) => matrix);
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "time"),
    ...columns.map(([name]) => make("th", { scope: "col" }, name)),
  );
  const rows = account.forecast.map((_, step) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, account.times[account.lookBack + step]),
      ...columns.map(([, matrix]) => make("td", {}, number(matrix[step][channel]))),
    ),
  );
  byId("numbers-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}
