// The explorer: pick a model, a table and a moment; see what was read; change it and see the forecast move.

import { readAccount, tokensAsCsv } from "./account.js";
import { Grid } from "./grid.js";
import { fitting, fromHash, toHash } from "./link.js";
import { Overview } from "./overview.js";
import { byId, make, save, settled, themeButton } from "./page.js";
import {
  showBadge,
  showNumbers,
  showRate,
  showShifts,
  showToken,
  showWords,
  tellWhatIf,
  tokenLabel,
} from "./panels.js";
import { Rows, stateOf } from "./rows.js";
import { toPng, toSvg } from "./sheet.js";
import { findSource } from "./source.js";
import { asItIs, evidenceOf, historyWith, isAsItIs, maskOf, token } from "./whatif.js";
import { percent } from "./words.js";

const PAUSE = 700;
const source = findSource();
const state = {
  models: [],
  tables: [],
  moments: [],
  model: null,
  table: null,
  at: null,
  budget: null,
  tab: null,
  wish: asItIs(),
};
let account = null;
let changed = null;
let verdict = null;
let checked = "unknown";
let picked = null;
let choices = 0;
let asked = 0;
let replays = 0;
let playing = null;

const rows = new Rows(byId("rows"), byId("axis"), byId("readout"), (patch, channel) => turn(patch, channel));
const gates = new Grid(byId("gates"), "All gates: channels by patches, the newest at the right", {
  tallest: 12,
  onPick: pick,
  onTurn: turn,
});
const overview = new Overview((moment) => {
  openTab(null);
  lookAt(moment);
});

// --- choosing -------------------------------------------------------------------------------------------------------

async function begin() {
  document.body.classList.add(source.canAsk ? "is-live" : "is-report");
  const wished = fromHash(location.hash);
  state.models = await source.models();
  state.tables = await source.tables();
  const model = state.models.find((one) => one.name === wished.model) ?? state.models[0];
  byId("model").replaceChildren(...state.models.map((one) => make("option", { value: one.name }, one.name)));
  listTables();
  const table = state.tables.find((one) => one.id === wished.table) ?? tableFor(model);
  state.budget = wished.budget;
  if (wished.table && table?.id !== wished.table)
    complain({ message: `the table of this link is not here (${wished.table})`, hint: "upload it again" });
  await choose(model, table, wished.at, wished.wish);
  if (wished.tab) await openTab(wished.tab);
}

function listTables() {
  const kinds = { upload: "Uploaded", demo: "Embedded", catalogue: "Catalogue", report: "In this report" };
  const groups = Object.entries(kinds).flatMap(([kind, label]) => {
    const these = state.tables.filter((table) => table.kind === kind);
    return these.length
      ? [make("optgroup", { label }, ...these.map((table) => make("option", { value: table.id }, table.name)))]
      : [];
  });
  byId("table").replaceChildren(...groups);
  byId("table").value = state.table;
}

/** A table that has the model's channels, or else as many: of the catalogue only their number is known. */
function tableFor(model) {
  return (
    state.tables.find((table) => hasChannels(table, model)) ??
    state.tables.find((table) => table.channels === model.channels.length) ??
    null
  );
}

function hasChannels(table, model) {
  return Array.isArray(table.channels) && model.channels.every((name) => table.channels.includes(name));
}

function modelNamed(name) {
  return state.models.find((model) => model.name === name);
}

async function choose(model, table, at = null, wish = asItIs()) {
  stop();
  const number = (choices += 1);
  [state.model, state.table] = [model.name, table?.id ?? null];
  if (!model.any_budget) state.budget = null;
  [byId("model").value, byId("table").value] = [state.model, state.table];
  overviewOf = null;
  if (!table) {
    blank();
    complain({ message: `no table here has the channels of ${model.name}`, hint: "upload one" });
    return;
  }
  document.body.classList.add("is-busy");
  const before = account;
  try {
    const { moments } = await source.moments(model.name, table.id);
    if (number !== choices) return;
    state.moments = moments;
    dressMoments();
    const withTruth = moments[Math.max(0, moments.length - 1 - (source.canAsk ? model.horizon : 0))];
    await lookAt(at === null ? withTruth : momentAt(boxed(at)), wish);
    if (state.tab) await showOverview();
  } catch (error) {
    if (number === choices) complain(error);
  } finally {
    document.body.classList.remove("is-busy");
    if (number === choices && account === before) blank();
  }
}

/** No picture, until a table is chosen. */
function blank() {
  [account, changed, state.at] = [null, null, null];
  document.body.classList.remove("has-picture");
  document.body.classList.add("is-empty");
}

async function upload(file) {
  if (!file) return;
  try {
    const { table, models } = await source.upload(file);
    state.tables = await source.tables();
    listTables();
    const able = models[state.model] === null ? state.model : Object.keys(models).find((name) => models[name] === null);
    if (able === undefined)
      throw Object.assign(new Error(`no model here can read ${table.name}: ${models[state.model]}`), { hint: null });
    calm();
    await choose(modelNamed(able), table);
  } catch (error) {
    complain(error);
  }
}

// --- moments --------------------------------------------------------------------------------------------------------

function dressMoments() {
  const [slider, date] = [byId("slider"), byId("date")];
  slider.max = state.moments.length - 1;
  slider.disabled = state.moments.length < 2;
  date.type = state.moments.every((moment) => moment.length === 10) ? "date" : "datetime-local";
  date.step = state.moments.some((moment) => /:\d\d:\d\d/.test(moment)) ? 1 : 60;
  [date.min, date.max] = [boxed(state.moments[0]), boxed(state.moments.at(-1))];
}

/** A moment as a date box holds it: local, without its offset. */
function boxed(moment) {
  return moment.replace(" ", "T").replace(/(?:Z|[+-]\d\d:\d\d)$/, "");
}

/** The moment at or before a date from the box. */
function momentAt(date) {
  let found = state.moments[0];
  for (const moment of state.moments) if (boxed(moment) <= date) found = moment;
  return found;
}

async function lookAt(moment, wish = asItIs()) {
  const turnNumber = (asked += 1);
  const at = state.moments.indexOf(moment);
  byId("slider").value = Math.max(at, 0);
  byId("slider").setAttribute("aria-valuetext", moment);
  byId("date").value = boxed(moment);
  try {
    const text = await source.explain(state.model, state.table, moment, state.budget ?? undefined);
    if (turnNumber !== asked) return;
    calm();
    const isFirst = !account;
    account = readAccount(text);
    [state.at, verdict, changed] = [moment, null, null];
    state.wish = fitting(wish, account);
    if (picked && (picked[0] >= account.patches || picked[1] >= account.channels.length)) picked = null;
    checked = "checking";
    render();
    if (isFirst) requestAnimationFrame(() => performance.measure("first picture"));
    if (!isAsItIs(state.wish)) await replay();
    await check(text);
  } catch (error) {
    if (turnNumber === asked) complain(error);
  }
}

/** Have this very document checked; an answer that comes after another document has taken its place is dropped. */
async function check(text) {
  try {
    const found = await source.verify(state.model, text);
    if (account?.text !== text) return;
    [verdict, checked] = [found, found.verified ? "verified" : "refuted"];
    showBadge(checked, verdict, Boolean(changed));
  } catch (error) {
    if (account?.text !== text) return;
    checked = "unknown";
    showBadge(checked);
    complain(error);
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

function turn(patch, channel) {
  picked = [patch, channel];
  if (!source.canAsk || account.missing[patch][channel]) {
    renderToken();
    return;
  }
  const name = token(patch, channel);
  if (!state.wish.flips.delete(name)) state.wish.flips.add(name);
  wishAgain();
}

function edit(patch, channel, values) {
  if (values) state.wish.edits.set(token(patch, channel), values);
  else state.wish.edits.delete(token(patch, channel));
  wishAgain();
}

function wishAgain() {
  stop();
  replay();
}

/** Ask for the forecast of what is wished for, and show it beside the model's own. */
async function replay() {
  const number = (replays += 1);
  const [mine, wish] = [account, state.wish];
  if (isAsItIs(wish)) {
    changed = null;
    render();
    return;
  }
  const begun = performance.now();
  const mask = maskOf(mine, wish);
  const evidence = evidenceOf(mine, wish, mask);
  const unscrambled = evidenceOf(mine, { ...wish, scramble: null }, mask);
  const question = (contents) => ({ mask, evidence: contents, beyond_budget: true });
  try {
    const answers = [source.replay(state.model, mine.text, question(evidence))];
    if (wish.scramble !== null) answers.push(source.replay(state.model, mine.text, question(unscrambled)));
    const [answer, calmly] = await Promise.all(answers);
    if (number !== replays || account !== mine) return;
    changed = {
      mask,
      history: evidence.length ? historyWith(mine, evidence) : null,
      edited: unscrambled.length ? historyWith(mine, unscrambled) : null,
      forecast: answer.forecast,
      shift: answer.shift,
      openCount: answer.open_count,
      allowance: answer.allowance,
      withinBudget: answer.within_budget,
      sameBits: answer.same_bits,
      closedEdits: answer.closed_edits,
      scrambled: wish.scramble === null ? 0 : mask.flat().filter((open) => !open).length,
      scrambleMoved: Boolean(calmly) && JSON.stringify(calmly.forecast) !== JSON.stringify(answer.forecast),
    };
    calm();
    render();
    requestAnimationFrame(() => performance.measure("what-if", { start: begun }));
  } catch (error) {
    if (number === replays) complain(error);
  }
}

// --- drawing --------------------------------------------------------------------------------------------------------

function render() {
  const model = modelNamed(state.model);
  const names = account.channels;
  document.body.classList.add("has-picture");
  document.body.classList.remove("is-empty");
  document.body.classList.toggle("with-whatif", Boolean(changed));
  document.body.classList.toggle("with-truth", Boolean(account.truth));
  showBadge(checked, verdict, Boolean(changed));
  showRate(account, changed);
  showWords(account, changed);
  rows.show(account, changed);
  gates.show(names, account.patches, (patch, channel) => {
    const found = stateOf(account, changed, patch, channel);
    return {
      value: account.probability[patch][channel],
      state: found,
      label: tokenLabel(account, patch, channel, found, source.canAsk),
    };
  });
  renderToken();
  showShifts(account, changed);
  showNumbers(account, changed);
  byId("told").textContent = tellWhatIf(account, changed);
  byId("reset").disabled = isAsItIs(state.wish);
  byId("scramble").setAttribute("aria-pressed", String(state.wish.scramble !== null));
  byId("dial-row").hidden = !source.canAsk || !model.any_budget;
  byId("dial").value = account.budget;
  byId("dial-told").textContent = percent(account.budget);
  const threshold = state.wish.threshold;
  byId("threshold").value = threshold ?? leastOpen();
  byId("threshold-told").textContent = threshold === null ? "as it is" : `p ≥ ${threshold.toFixed(3)}`;
  byId("status").textContent = `Forecast made at ${account.at}. ${changed ? byId("told").textContent : ""}`;
  document.title = `${account.at} · ibforecast`;
  history.replaceState(null, "", toHash(state));
}

function renderToken() {
  if (!picked) {
    byId("token").replaceChildren();
    return;
  }
  const [patch, channel] = picked;
  const onEdit = source.canAsk ? (values) => edit(patch, channel, values) : null;
  showToken(
    account,
    patch,
    channel,
    stateOf(account, changed, patch, channel),
    state.wish.edits.get(token(patch, channel)) ?? null,
    onEdit,
  );
}

/** The lowest probability among the model's own open gates: where a threshold would stand. */
function leastOpen() {
  const open = account.mask.flatMap((row, patch) =>
    row.flatMap((gate, channel) => (gate ? [account.probability[patch][channel]] : [])),
  );
  return open.length ? Math.min(...open) : 1;
}

/** Say what went wrong, in the words of whoever refused. */
function complain(error) {
  const alert = byId("alert");
  const parts = [make("p", {}, make("b", {}, sentence(error.message)), error.hint ? ` ${sentence(error.hint)}` : "")];
  if (error.status === 401) {
    const box = make("input", { type: "password", "aria-label": "Token", autocomplete: "off" });
    const use = (event) => {
      event.preventDefault();
      source.useToken(box.value);
      calm();
      begin().catch(complain);
    };
    parts.push(make("form", { onsubmit: use }, box, make("button", {}, "Use this token")));
  }
  parts.push(make("button", { class: "round", "aria-label": "Dismiss", onclick: calm }, "×"));
  alert.replaceChildren(...parts);
  alert.hidden = false;
  if (!(error instanceof Error) || error.status !== undefined) return;
  console.error(error);
}

function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}${/[.?!]$/.test(words) ? "" : "."}`;
}

function calm() {
  byId("alert").hidden = true;
}

// --- second tab -----------------------------------------------------------------------------------------------------

let overviewOf = null;

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
  const windows = byId("windows").value;
  const wanted = `${state.model}/${state.table}/${windows}`;
  if (overviewOf === wanted) return;
  document.body.classList.add("is-busy");
  byId("over").textContent = `Running the model on ${windows} windows…`;
  try {
    const found = await source.history(state.model, state.table, windows);
    if (`${state.model}/${state.table}/${byId("windows").value}` !== wanted) return;
    overviewOf = wanted;
    overview.show(found, modelNamed(state.model));
  } catch (error) {
    complain(error);
  } finally {
    document.body.classList.remove("is-busy");
  }
}

// --- export ---------------------------------------------------------------------------------------------------------

const EXPORTS = {
  png: async (name) => save(`${name}.png`, await toPng(sheet())),
  svg: (name) => save(`${name}.svg`, sheet(), "image/svg+xml"),
  json: (name) => save(`${name}.json`, account.text, "application/json"),
  csv: (name) => save(`${name}.csv`, tokensAsCsv(account), "text/csv"),
  link: async () => {
    await navigator.clipboard?.writeText(location.href);
    const told = navigator.clipboard ? "The link is copied" : "The address of this page is the link";
    byId("status").textContent = `${told}.`;
    byId("link-told").textContent = told;
  },
};

function sheet() {
  return toSvg(account, changed, verdict?.verified ? "The model's own explanation is verified." : "Not verified.");
}

async function exportAs(kind) {
  if (!account) return;
  try {
    await EXPORTS[kind](`why-${account.at.replace(/[^\d]+/g, "-").replace(/-$/, "")}`);
    if (kind !== "link") document.querySelector(".menu").open = false;
  } catch (error) {
    complain(error);
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
  const slide = settled(40, () => lookAt(state.moments[byId("slider").value]));
  on("slider", "input", () => {
    stop();
    byId("date").value = boxed(state.moments[byId("slider").value]);
    slide();
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
    byId("dial-told").textContent = percent(state.budget);
    dialled();
  });
  const dialled = settled(60, () => lookAt(state.at));
  on("threshold", "input", () => {
    state.wish.threshold = Number(byId("threshold").value);
    byId("threshold-told").textContent = `p ≥ ${state.wish.threshold.toFixed(3)}`;
    thresholded();
  });
  const thresholded = settled(20, wishAgain);
  on("scramble", "click", () => {
    state.wish.scramble = state.wish.scramble === null ? Math.floor(Math.random() * 2 ** 31) : null;
    wishAgain();
  });
  on("reset", "click", () => {
    state.wish = asItIs();
    wishAgain();
  });
  on("numbers", "toggle", () => account && showNumbers(account, changed));
  on("numbers-channel", "change", () => showNumbers(account, changed));
  on("windows", "change", showOverview);
  on("tab-window", "click", () => openTab(null));
  on("tab-table", "click", () => openTab("table"));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = state.tab ? "tab-window" : "tab-table";
    byId(other).focus();
    byId(other).click();
  });
  for (const button of document.querySelectorAll("[data-export]"))
    button.addEventListener("click", () => exportAs(button.dataset.export));
  document.querySelector(".menu").addEventListener("toggle", () => {
    byId("link-told").textContent = "Copy a link to this view";
  });
  document.addEventListener("click", (event) => {
    const menu = document.querySelector(".menu");
    if (!menu.contains(event.target)) menu.open = false;
  });
  window.addEventListener("hashchange", () => begin().catch(complain));
  themeButton(byId("theme"), () => {
    rows.redraw();
    overview.redraw();
  });
}

wire();
begin().catch(complain);
