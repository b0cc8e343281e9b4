// The explorer: choose a model, a table and a moment, see what was read, change it and see the forecast change.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { showComparison } from "./compare.js";
import { DriversView, fillDriverChannels } from "./drivers.js";
import { readExplanation, stateOf, withReceipts } from "./explanation.js";
import { Grid } from "./grid.js";
import { fromHash, restrictedTo, toHash } from "./link.js";
import { Overview } from "./overview.js";
import { byId, make, save, settled, themeButton, toPng } from "./page.js";
import {
  fitWords,
  outcomeOf,
  showBadge,
  showLegend,
  showNumbers,
  showRate,
  showShifts,
  showToken,
  showWords,
  tokenLabel,
} from "./panels.js";
import { addsOf, showReceipt, tonesOf } from "./receipt.js";
import { Rows } from "./rows.js";
import { Refusal, openSource } from "./source.js";
import { evidenceOf, historyWith, isUnchanged, maskOf, token, unchanged, unreadScrambled } from "./whatif.js";
import { local, percent } from "./words.js";

/** @import { Explanation, Model, Table, Verdict, WhatIf } from "./types" */

const PAUSE = 700;
/** Receipts of models with more channels take seconds: they are requested at the first click. */
const FEW = 12;
const OWN = "Of the model's own forecast, not of the what-if.";
/** @type {any} */
const source = openSource();
const state = {
  /** @type {Model[]} */
  models: [],
  /** @type {Table[]} */
  tables: [],
  /** @type {string[]} */
  moments: [],
  model: "",
  /** @type {string | null} */
  table: null,
  /** @type {string | null} */
  at: null,
  /** @type {number | null} */
  budget: null,
  /** @type {string | null} */
  tab: null,
  wish: unchanged(),
};
/** @type {Explanation | null} */
let explanation = null;
/** @type {WhatIf | null} */
let changed = null;
/** @type {Verdict | null} */
let verdict = null;
let checked = "unknown";
/** @type {[number, number] | null} */
let picked = null;
/** The receipt that is shown: its channel, and 0 for the mean or the step ahead. */
const itemised = { channel: "", step: 0 };
/**
 * The request for receipts that is under way, of which document and channel; null as a channel means all.
 * @type {{ text: string, channel: string | null, stop: AbortController } | null}
 */
let adding = null;
/** The document whose receipts were refused: they are not requested again. */
let refusedText = "";
// Numbers of the latest request of each kind: answers to earlier ones are dropped.
let choices = 0;
let looks = 0;
let replays = 0;
/** @type {any} */
let playing = null;
/** @type {string | null} */
let overviewOf = null;
/**
 * The comparison that is shown or requested: of which forecast, and with which moment; null: the day before.
 * @type {{ of: string, at: string | null, stop: AbortController }}
 */
const compared = { of: "", at: null, stop: new AbortController() };
/** The latest drivers, and what they were requested for. */
const driven = { of: "", /** @type {any} */ answer: null };

const menu = byId("menu");
const rows = new Rows(byId("rows"), byId("axis"), byId("readout"), lookAtPlace, itemise);
const gates = new Grid(byId("gates"), "All gates: channels by patches, the newest at the right", {
  tallest: 12,
  onPick: pick,
  onTurn: turn,
});
const driversView = new DriversView();
const overview = new Overview((moment) => {
  openTab(null);
  lookAt(moment);
});

// --- choosing -------------------------------------------------------------------------------------------------------

async function begin() {
  document.body.classList.add(source.isLive ? "is-live" : "is-report");
  document.body.classList.toggle("with-drivers", source.hasDrivers);
  if (!source.isLive) byId("compare").open = true; // it costs no computation
  const linked = fromHash(location.hash);
  state.models = await source.models();
  state.tables = await source.tables();
  const model = state.models.find((one) => one.name === linked.model) ?? state.models[0];
  byId("model").replaceChildren(...state.models.map((one) => make("option", { value: one.name }, one.name)));
  listTables();
  const table = state.tables.find((one) => one.id === linked.table) ?? tableFor(model);
  state.budget = linked.budget;
  if (linked.table && table?.id !== linked.table)
    showError({ message: `the service does not have the table of this link (${linked.table})`, hint: "upload it again" });
  await choose(model, table, linked.at, linked.wish);
  if (linked.tab) await openTab(linked.tab);
}

function listTables() {
  const kinds = { opened: "Opened", upload: "Uploaded", demo: "Embedded", report: "In this report" };
  const groups = Object.entries(kinds).flatMap(([kind, label]) => {
    const group = state.tables.filter((table) => table.kind === kind);
    return group.length
      ? [make("optgroup", { label }, ...group.map((table) => make("option", { value: table.id }, table.name)))]
      : [];
  });
  byId("table").replaceChildren(...groups);
  byId("table").value = state.table;
}

/** Return a table with the model's channels, or with the same number if their names are unknown; null if there is none. */
function tableFor(model) {
  return (
    state.tables.find((table) => hasChannels(table, model)) ??
    state.tables.find((table) => table.channels === model.channels.length) ??
    null
  );
}

function hasChannels(table, model) {
  const { channels } = table;
  return Array.isArray(channels) && model.channels.every((name) => channels.includes(name));
}

/** @returns {any} */
function modelNamed(name) {
  return state.models.find((model) => model.name === name);
}

/** @param {string | null} at */
async function choose(model, table, at = null, wish = unchanged()) {
  stop();
  const number = (choices += 1);
  [state.model, state.table] = [model.name, table?.id ?? null];
  if (!model.any_budget) state.budget = null;
  [byId("model").value, byId("table").value] = [state.model, state.table];
  overviewOf = null;
  compared.at = null;
  if (!table) {
    blank();
    showError({ message: `no table has the channels of ${model.name}`, hint: "upload one" });
    return;
  }
  document.body.classList.add("is-busy");
  const before = explanation;
  try {
    const { moments } = await source.moments(model.name, table.id);
    if (number !== choices) return;
    state.moments = moments;
    fillMomentControls();
    // The newest moment of a table that the service was started with. Otherwise the last one that is a whole horizon
    // before the end, so that the truth can be shown next to the forecast.
    const left = source.isLive && table.kind !== "opened" ? model.horizon : 0;
    const first = moments[Math.max(0, moments.length - 1 - left)];
    await lookAt(at === null ? first : momentAt(toDateInput(at)), wish);
    if (state.tab) await showOverview();
  } catch (error) {
    if (number === choices) showError(error);
  } finally {
    document.body.classList.remove("is-busy");
    if (number === choices && explanation === before) blank();
  }
}

/** Show no picture until a table is chosen. */
function blank() {
  [explanation, changed, state.at] = [null, null, null];
  document.body.classList.remove("has-picture");
  document.body.classList.add("is-empty");
}

async function upload(file) {
  if (!file) return;
  try {
    const { table, models } = await source.upload(file);
    state.tables = await source.tables();
    listTables();
    const reader = models[state.model] === null ? state.model : Object.keys(models).find((name) => models[name] === null);
    if (reader === undefined)
      throw Object.assign(new Error(`no model can read ${table.name}: ${models[state.model]}`), { hint: null });
    hideError();
    await choose(modelNamed(reader), table);
  } catch (error) {
    showError(error);
  }
}

// --- moments --------------------------------------------------------------------------------------------------------

function fillMomentControls() {
  const [slider, date, other] = [byId("slider"), byId("date"), byId("compare-at")];
  slider.max = state.moments.length - 1;
  slider.disabled = state.moments.length < 2;
  date.type = state.moments.every((moment) => moment.length === 10) ? "date" : "datetime-local";
  date.step = state.moments.some((moment) => /:\d\d:\d\d/.test(moment)) ? 1 : 60;
  [date.min, date.max] = [toDateInput(state.moments[0]), toDateInput(state.moments.at(-1))];
  for (const name of ["type", "step", "min", "max"]) other[name] = date[name];
}

/** Return a moment as a date input has it: local, without its offset. */
function toDateInput(moment) {
  return local(moment.replace(" ", "T"));
}

/** Return the last moment that is not after a date from the input, or the first moment. */
function momentAt(date) {
  return state.moments.findLast((moment) => toDateInput(moment) <= date) ?? state.moments[0];
}

async function lookAt(moment, wish = unchanged()) {
  const number = (looks += 1);
  const { model, table } = state;
  const at = state.moments.indexOf(moment);
  byId("slider").value = Math.max(at, 0);
  byId("slider").setAttribute("aria-valuetext", moment);
  byId("date").value = toDateInput(moment);
  try {
    const answer = await source.explain(model, table, moment, state.budget ?? undefined);
    if (number !== looks) return;
    hideError();
    const isFirst = !explanation;
    explanation = readExplanation(answer);
    [state.at, verdict, changed] = [moment, null, null];
    state.wish = restrictedTo(wish, explanation);
    if (picked && (picked[0] >= explanation.patches || picked[1] >= explanation.channels.length)) picked = null;
    checked = "checking";
    const { text } = explanation;
    const isFew = source.isLive && explanation.channels.length <= FEW;
    // Before the first drawing, so that it shows that they are being added up.
    adding?.stop.abort();
    adding = isFew ? { text, channel: null, stop: new AbortController() } : null;
    if (source.isLive && !isFew) itemised.channel = "";
    chooseReceipt();
    render();
    if (isFirst) requestAnimationFrame(() => performance.measure("first picture"));
    if (!isUnchanged(state.wish)) await replay();
    await Promise.all([check(model, table, text), adding ? addReceipts(adding) : null]);
  } catch (error) {
    if (number === looks) showError(error);
  }
}

/** Choose the channel of the receipt: the same as before if it has one, otherwise the one that is moved most. */
function chooseReceipt() {
  const names = receiptNames();
  if (!names.includes(itemised.channel)) itemised.channel = explanation?.scene.waterfall?.channel ?? "";
  const ahead = explanation ? explanation.times.length - explanation.lookBack : 0;
  if (itemised.step > ahead) itemised.step = 0;
}

/** Return the channels whose receipts can be shown: in a report those it has, otherwise all that are forecast. */
function receiptNames() {
  if (!explanation) return [];
  if (!source.isLive) return (explanation.receipts ?? []).map((one) => one.channel);
  return explanation.channels.filter((row) => row.values.forecast).map((row) => row.name);
}

/** Request receipts and show them, unless another document is shown by then. */
async function addReceipts(wanted) {
  const isShown = () => explanation?.text === wanted.text;
  try {
    const answer = await source.receipts(state.model, wanted.text, wanted.channel, wanted.stop.signal);
    if (explanation && isShown()) explanation = withReceipts(explanation, answer);
  } catch (error) {
    if (wanted.stop.signal.aborted) return;
    refusedText = wanted.text;
    if (isShown()) showError(error);
  }
  if (adding === wanted) adding = null;
  if (!isShown()) return;
  chooseReceipt();
  render();
}

/** Request every step of the receipt that is shown, if they are not known yet and nothing else is being added up. */
function completeReceipt() {
  if (!source.isLive || !explanation || adding || !itemised.channel || explanation.text === refusedText) return;
  const own = explanation.receipts?.find((one) => one.channel === itemised.channel);
  if (own && own.steps.length > 1) return;
  adding = { text: explanation.text, channel: itemised.channel, stop: new AbortController() };
  addReceipts(adding);
}

/** Check the document; drop the answer if another document is shown by then. */
async function check(model, table, text) {
  try {
    const answer = await source.verify(model, table, text);
    if (explanation?.text !== text) return;
    const words = { true: "verified", false: "refuted", null: "unknown" };
    [verdict, checked] = [answer, words[String(answer.verified)]];
    showBadge(checked, verdict, Boolean(changed));
  } catch (error) {
    if (explanation?.text !== text) return;
    checked = "unknown";
    showBadge(checked);
    showError(error);
  }
}

async function step(by) {
  const at = Number(byId("slider").value) + by;
  if (at >= 0 && at < state.moments.length) await lookAt(state.moments[at]);
  return at < state.moments.length - 1;
}

function stop() {
  clearTimeout(playing);
  playing = null;
  byId("play").setAttribute("aria-pressed", "false");
  byId("play").setAttribute("aria-label", "Play");
  byId("play").textContent = "▶";
}

function play() {
  if (playing !== null) {
    stop();
    return;
  }
  byId("play").setAttribute("aria-pressed", "true");
  byId("play").setAttribute("aria-label", "Pause");
  byId("play").textContent = "❚❚";
  const go = async () => {
    const more = await step(1);
    if (playing !== null) playing = more ? setTimeout(go, PAUSE) : stop();
  };
  playing = setTimeout(go, 0);
}

// --- what if --------------------------------------------------------------------------------------------------------

function pick(patch, channel) {
  picked = [patch, channel];
  renderToken();
}

/** Show the receipt of a step of a channel, and bring it into view. */
function itemise(step, channel) {
  const name = explanation?.channels[channel].name ?? "";
  if (!receiptNames().includes(name)) return;
  [itemised.channel, itemised.step] = [name, step];
  byId("receipt").open = true;
  renderItemised();
  byId("receipt").scrollIntoView({ block: "nearest" });
}

/** Show a place of the picture and what it adds to the forecast that is itemised, and bring that into view. */
function lookAtPlace(patch, channel) {
  pick(patch, channel);
  const amounts = byId("receipt-place");
  if (amounts.hidden) return;
  byId("receipt").open = true;
  amounts.scrollIntoView({ block: "nearest" });
}

function turn(patch, channel) {
  picked = [patch, channel];
  if (!source.isLive || explanation?.scene.gates.state[patch][channel] === "missing") {
    renderToken();
    return;
  }
  endRerun();
  const name = token(patch, channel);
  if (!state.wish.flips.delete(name)) state.wish.flips.add(name);
  replayWish();
}

function edit(patch, channel, values) {
  endRerun();
  if (values) state.wish.edits.set(token(patch, channel), values);
  else state.wish.edits.delete(token(patch, channel));
  replayWish();
}

/** Show what-ifs of a sealed model, which hold the context, only without its scramble, which holds nothing. */
function endRerun() {
  if (explanation?.sealed) state.wish.scramble = null;
}

function replayWish() {
  stop();
  replay();
}

/** Request the forecast of the wish, and show it next to the model's own. */
async function replay() {
  const number = (replays += 1);
  const [mine, wish] = [explanation, state.wish];
  if (!mine) return;
  if (isUnchanged(wish)) {
    changed = null;
    render();
    return;
  }
  const begun = performance.now();
  try {
    const answer = await (mine.sealed && wish.scramble !== null ? rerunOf(mine, wish.scramble) : replayOf(mine, wish));
    if (number !== replays || explanation?.text !== mine.text) return;
    changed = answer;
    hideError();
    render();
    requestAnimationFrame(() => performance.measure("what-if", { start: begun }));
  } catch (error) {
    if (number === replays) showError(error);
  }
}

/**
 * Scramble everything that a sealed model did not read, and run the whole model again with nothing held.
 * @param {Explanation} mine
 * @returns {Promise<WhatIf>}
 */
async function rerunOf(mine, seed) {
  const values = unreadScrambled(mine, seed);
  const answer = await source.rerun(state.model, mine.text, values);
  const mask = maskOf(mine, unchanged());
  const openCount = mask.flat().filter(Boolean).length;
  return {
    mask,
    history: values,
    edited: null,
    forecast: answer.forecast,
    shift: answer.shift,
    openCount,
    openRate: mine.scene.open_rate,
    allowance: openCount,
    withinBudget: true,
    sameBits: answer.same_bits,
    closedEdits: 0,
    scrambled: 0,
    scrambleMoved: false,
    byHand: false,
    rerun: { replaced: answer.replaced, changed: answer.changed },
  };
}

/**
 * Replay an explanation with the mask and the values of a wish; the context is held.
 * @param {Explanation} mine
 * @returns {Promise<WhatIf>}
 */
async function replayOf(mine, wish) {
  const mask = maskOf(mine, wish);
  const evidence = evidenceOf(mine, wish, mask);
  const unscrambled = evidenceOf(mine, { ...wish, scramble: null }, mask);
  const gatesOf = mask.map((row) => row.map(Number));
  const question = (contents) => ({ mask: gatesOf, evidence: contents, beyond_budget: true });
  // With scrambling a second request without it: both forecasts must be equal to the last digit.
  const questions = wish.scramble === null ? [evidence] : [evidence, unscrambled];
  const [answer, plain] = await Promise.all(
    questions.map((contents) => source.replay(state.model, mine.text, question(contents))),
  );
  return {
    mask,
    history: evidence.length ? historyWith(mine, evidence) : null,
    edited: unscrambled.length ? historyWith(mine, unscrambled) : null,
    forecast: answer.forecast,
    shift: answer.shift,
    openCount: answer.open_count,
    openRate: answer.open_rate,
    allowance: answer.allowance,
    withinBudget: answer.within_budget,
    sameBits: answer.same_bits,
    closedEdits: answer.closed_edits,
    scrambled: wish.scramble === null ? 0 : mask.flat().filter((open) => !open).length,
    scrambleMoved: Boolean(plain) && JSON.stringify(plain.forecast) !== JSON.stringify(answer.forecast),
    byHand: !isUnchanged({ ...wish, scramble: null }),
    rerun: null,
  };
}

// --- drawing --------------------------------------------------------------------------------------------------------

function render() {
  if (!explanation) return;
  const model = modelNamed(state.model);
  document.body.classList.add("has-picture");
  document.body.classList.remove("is-empty");
  document.body.classList.toggle("with-whatif", Boolean(changed));
  showBadge(checked, verdict, Boolean(changed));
  showRate(explanation, changed);
  showWords(explanation, changed, Boolean(adding) && !explanation.receipts);
  rows.show(explanation, changed);
  renderItemised();
  showShifts(explanation, changed);
  showNumbers(explanation, changed);
  byId("outcome").textContent = outcomeOf(explanation, changed);
  byId("reset").disabled = isUnchanged(state.wish);
  byId("scramble").textContent = explanation.sealed ? "Scramble all unread values" : "Scramble closed tokens";
  byId("scramble").setAttribute("aria-pressed", String(state.wish.scramble !== null));
  byId("dial-row").hidden = !source.isLive || !model.any_budget;
  byId("dial").value = explanation.scene.budget;
  byId("dial-value").textContent = percent(explanation.scene.budget);
  const threshold = state.wish.threshold;
  byId("threshold").value = threshold ?? leastOpen(explanation);
  byId("threshold-value").textContent = threshold === null ? "as it is" : `p ≥ ${threshold.toFixed(3)}`;
  byId("status").textContent = `${explanation.scene.headline}. ${changed ? byId("outcome").textContent : ""}`;
  document.title = `${explanation.at} · ibforecast`;
  history.replaceState(null, "", toHash(state));
}

/** Show what depends on the number that is itemised: the receipt, what the map says of gates, and the chosen token. */
function renderItemised() {
  if (!explanation) return;
  const [shown, adds] = [explanation, addsOf(explanation, itemised)];
  gates.show(shown.scene.gates.channels, shown.patches, (patch, channel) => {
    const gate = stateOf(shown, changed, patch, channel);
    return {
      value: shown.scene.gates.probability[patch][channel],
      state: gate,
      label: tokenLabel(shown, patch, channel, gate, adds, source.isLive),
    };
  });
  renderToken();
}

function renderReceipt() {
  if (!explanation) return;
  const chosen = { ...itemised, place: picked, tones: tonesOf(explanation, itemised) };
  completeReceipt();
  const own = explanation.receipts?.find((one) => one.channel === itemised.channel);
  const notes = changed ? [OWN] : [];
  if (!own) notes.push(adding ? "Adding up…" : "Click a step of a forecast, or choose a channel, to see what adds up to it.");
  else if (own.steps.length === 1 && adding) notes.push("Adding up every step…");
  showReceipt(explanation, chosen, { names: receiptNames(), notes }, ([patch, channel]) => pick(patch, channel));
  showLegend(explanation, itemised.channel, chosen.tones);
  rows.choose(chosen);
  compare();
}

/** Show why the forecast whose receipt is shown differs from an earlier one, once that panel is open. */
async function compare() {
  const panel = byId("compare");
  panel.hidden = !itemised.channel || !receiptNames().includes(itemised.channel);
  if (panel.hidden || !panel.open || !explanation) return;
  const { channel, step } = itemised;
  const wanted = JSON.stringify([explanation.text, compared.at, channel, step]);
  if (compared.of === wanted) return;
  compared.stop.abort();
  [compared.of, compared.stop] = [wanted, new AbortController()];
  showComparison(null, "Comparing…");
  try {
    const { model, table, at, budget } = state;
    const { signal } = compared.stop;
    const answer = await source.compare(model, table, at, compared.at, budget ?? undefined, channel, step, signal);
    if (compared.of !== wanted) return;
    byId("compare-at").value = toDateInput(answer.other_at);
    showComparison(answer);
  } catch (/** @type {any} */ error) {
    if (compared.of === wanted) showComparison(null, sentence(error.message));
  }
}

function renderToken() {
  renderReceipt();
  if (!picked || !explanation) {
    byId("token").replaceChildren();
    return;
  }
  const [patch, channel] = picked;
  const actions = source.isLive
    ? { onTurn: () => turn(patch, channel), onEdit: (values) => edit(patch, channel, values) }
    : null;
  showToken(
    explanation,
    patch,
    channel,
    stateOf(explanation, changed, patch, channel),
    state.wish.edits.get(token(patch, channel)) ?? null,
    addsOf(explanation, itemised),
    actions,
  );
}

/** Return the lowest probability among the gates that the model opened; 1 if it opened none. */
function leastOpen({ scene: { gates: { probability, state: states } } }) {
  const open = states.flatMap((row, patch) =>
    row.flatMap((gate, channel) => (gate === "open" ? [probability[patch][channel]] : [])),
  );
  return Math.min(1, ...open);
}

/** Show the message and the hint of an error. */
function showError(error) {
  const alert = byId("alert");
  const parts = [make("p", {}, make("b", {}, sentence(error.message)), error.hint ? ` ${sentence(error.hint)}` : "")];
  if (error.status === 401) {
    const box = make("input", { type: "password", "aria-label": "Token", autocomplete: "off" });
    const use = (event) => {
      event.preventDefault();
      source.useToken(box.value);
      hideError();
      begin().catch(showError);
    };
    parts.push(make("form", { onsubmit: use }, box, make("button", {}, "Use this token")));
  }
  parts.push(make("button", { class: "round", "aria-label": "Dismiss", onclick: hideError }, "×"));
  alert.replaceChildren(...parts);
  alert.hidden = false;
  if (error instanceof Error && !(error instanceof Refusal)) console.error(error);
}

function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}${/[.?!]$/.test(words) ? "" : "."}`;
}

function hideError() {
  byId("alert").hidden = true;
}

// --- second tab -----------------------------------------------------------------------------------------------------

async function openTab(tab) {
  state.tab = tab;
  for (const [id, view, isOpen] of [
    ["tab-window", "view-window", !tab],
    ["tab-table", "view-table", Boolean(tab)],
  ]) {
    byId(id).setAttribute("aria-selected", String(isOpen));
    byId(id).tabIndex = isOpen ? 0 : -1;
    byId(view).hidden = !isOpen;
  }
  history.replaceState(null, "", toHash(state));
  if (tab) await showOverview();
}

async function showOverview() {
  if (source.isLive) await showHistory();
  await showDrivers();
}

/** Show what moves the chosen channel; of a model with many channels, each is requested when it is chosen. */
async function showDrivers() {
  const model = modelNamed(state.model);
  const names = fillDriverChannels(model);
  const [channel, windows, by] = ["channel", "windows", "by"].map((name) => byId(`drivers-${name}`).value);
  const asked = names.length > FEW ? channel : null;
  const wanted = `${state.model}/${state.table}/${windows}/${asked}/${by}`;
  try {
    if (driven.of !== wanted) {
      driven.of = wanted;
      driven.answer = null;
      driversView.hideGroups();
      byId("drivers-words").textContent = `Adding up the forecasts of ${windows} windows…`;
      const answer = await source.drivers(state.model, state.table, windows, asked, by);
      if (driven.of !== wanted) return;
      driven.answer = answer;
    }
    if (driven.answer) driversView.show(driven.answer, byId("drivers-channel").value, model);
  } catch (error) {
    if (driven.of !== wanted) return;
    driven.of = "";
    byId("drivers-words").textContent = "";
    showError(error);
  }
}

async function showHistory() {
  const windows = byId("windows").value;
  const wanted = `${state.model}/${state.table}/${windows}`;
  if (overviewOf === wanted) return;
  document.body.classList.add("is-busy");
  byId("over").textContent = `Running the model on ${windows} windows…`;
  try {
    const answer = await source.history(state.model, state.table, windows);
    if (`${state.model}/${state.table}/${byId("windows").value}` !== wanted) return;
    overviewOf = wanted;
    overview.show(answer, modelNamed(state.model));
  } catch (error) {
    showError(error);
  } finally {
    document.body.classList.remove("is-busy");
  }
}

// --- export ---------------------------------------------------------------------------------------------------------

/** Exports, all of the model's own explanation, also while a what-if is shown. */
const EXPORTS = {
  png: async (name) => save(`${name}.png`, await toPng(await file("svg")), "image/png"),
  svg: async (name) => save(`${name}.svg`, await file("svg"), "image/svg+xml"),
  json: (name, { text }) => save(`${name}.json`, text, "application/json"),
  csv: async (name) => save(`${name}.csv`, await file("csv"), "text/csv"),
  link: async () => {
    await navigator.clipboard?.writeText(location.href);
    const message = navigator.clipboard ? "The link is copied" : "The address of this page is the link";
    byId("status").textContent = `${message}.`;
    byId("copy-link").textContent = message;
  },
};

async function file(form) {
  return source.file(form, state.model, state.table, state.at, state.budget ?? undefined);
}

async function exportAs(kind) {
  if (!explanation) return;
  try {
    await EXPORTS[kind](`why-${explanation.at.replace(/[^\d]+/g, "-").replace(/-$/, "")}`, explanation);
    if (kind !== "link") menu.open = false;
  } catch (error) {
    showError(error);
  }
}

// --- wiring ---------------------------------------------------------------------------------------------------------

function wire() {
  const on = (id, event, work) => byId(id).addEventListener(event, work);
  on("model", "change", () => {
    const model = modelNamed(byId("model").value);
    const table = state.tables.find((one) => one.id === state.table);
    choose(model, table && hasChannels(table, model) ? table : tableFor(model));
  });
  on("table", "change", () =>
    choose(
      modelNamed(state.model),
      state.tables.find((table) => table.id === byId("table").value),
    ),
  );
  on("upload", "click", () => byId("file").click());
  on("file", "change", (event) => {
    upload(event.target.files[0]);
    event.target.value = "";
  });
  const onSlideSettled = settled(40, () => lookAt(state.moments[byId("slider").value]));
  on("slider", "input", () => {
    stop();
    byId("date").value = toDateInput(state.moments[byId("slider").value]);
    onSlideSettled();
  });
  on("date", "change", () => {
    stop();
    if (byId("date").value) lookAt(momentAt(byId("date").value));
  });
  on("back", "click", () => (stop(), step(-1)));
  on("forth", "click", () => (stop(), step(1)));
  on("play", "click", play);
  on("dial", "input", () => {
    state.budget = Number(byId("dial").value);
    byId("dial-value").textContent = percent(state.budget);
    onDialSettled();
  });
  const onDialSettled = settled(60, () => lookAt(state.at));
  on("threshold", "input", () => {
    endRerun();
    state.wish.threshold = Number(byId("threshold").value);
    byId("threshold-value").textContent = `p ≥ ${state.wish.threshold.toFixed(3)}`;
    onThresholdSettled();
  });
  const onThresholdSettled = settled(20, replayWish);
  on("scramble", "click", () => {
    state.wish.scramble = state.wish.scramble === null ? Math.floor(Math.random() * 2 ** 31) : null;
    if (explanation) state.wish = restrictedTo(state.wish, explanation);
    replayWish();
  });
  on("reset", "click", () => {
    state.wish = unchanged();
    replayWish();
  });
  on("numbers", "toggle", () => explanation && showNumbers(explanation, changed));
  on("numbers-channel", "change", () => explanation && showNumbers(explanation, changed));
  on("receipt-channel", "change", () => {
    itemised.channel = byId("receipt-channel").value;
    renderItemised();
  });
  on("receipt-step", "change", () => {
    itemised.step = byId("receipt-step").selectedIndex;
    renderItemised();
  });
  on("compare", "toggle", compare);
  on("compare-at", "change", () => {
    const { value } = byId("compare-at");
    compared.at = value ? momentAt(value) : null;
    compare();
  });
  on("windows", "change", showHistory);
  on("drivers-windows", "change", showDrivers);
  on("drivers-channel", "change", showDrivers);
  on("drivers-by", "change", showDrivers);
  on("words-more", "click", () => {
    byId("words").classList.toggle("whole");
    fitWords();
  });
  window.addEventListener("resize", fitWords);
  on("tab-window", "click", () => openTab(null));
  on("tab-table", "click", () => openTab("table"));
  byId("tabs").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = state.tab ? "tab-window" : "tab-table";
    byId(other).focus();
    byId(other).click();
  });
  for (const kind of Object.keys(EXPORTS))
    document.querySelector(`[data-export=${kind}]`)?.addEventListener("click", () => exportAs(kind));
  menu.addEventListener("toggle", () => {
    byId("copy-link").textContent = "Copy a link to this view";
  });
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  window.addEventListener("hashchange", () => begin().catch(showError));
  themeButton(byId("theme"), () => {
    rows.redraw();
    overview.redraw();
  });
}

wire();
begin().catch(showError);
