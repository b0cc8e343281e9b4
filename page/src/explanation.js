// One explanation: the text of its document, and its picture as the library computed it.

/** @import { Explanation, Receipts, Scene, Tick, Values } from "./types" */

/**
 * Read one moment of the service or of a report.
 * @param {{ document: string, scene: Scene, receipts?: Receipts[] }} moment
 * @returns {Explanation}
 */
export function readExplanation({ document: text, scene, receipts }) {
  const { steps, times, look_back: lookBack } = scene.time;
  const { sealed, window } = JSON.parse(text);
  const rows = scene.rows.map((row) => ({
    ...row,
    values: Object.fromEntries(row.lines.map((line) => [line.role, padded(line, steps)])),
  }));
  return {
    text,
    scene,
    rows,
    channels: rows.filter((row) => row.kind === "channel"),
    receipts: receipts ?? null,
    history: window.history, // from the document, which has every digit: edited values are sent back
    sealed,
    times,
    at: times[lookBack - 1],
    lookBack,
    patchLen: scene.gates.patch_len,
    patches: scene.gates.state.length,
  };
}

/**
 * Return an explanation with receipts that were requested later, and with their picture if it shows more than before.
 * @param {Explanation} explanation
 * @param {{ scene: Scene, receipts: Receipts[] }} answer
 * @returns {Explanation}
 */
export function withReceipts(explanation, { scene, receipts }) {
  const names = receipts.map((one) => one.channel);
  const known = (explanation.receipts ?? []).filter((one) => !names.includes(one.channel));
  const isDrawn = explanation.channels.every((row) => !names.includes(row.name) || row.values.calendar);
  const shown = isDrawn ? explanation : readExplanation({ document: explanation.text, scene });
  return { ...shown, receipts: [...known, ...receipts] };
}

/** @returns {Values} */
function padded({ first, values }, steps) {
  return [...Array(first).fill(null), ...values, ...Array(steps - first - values.length).fill(null)];
}

/** Return the first and the last step of a patch. */
export function steps(explanation, patch) {
  return [patch * explanation.patchLen, (patch + 1) * explanation.patchLen - 1];
}

/** Return one channel of a matrix of steps × channels. */
export function column(matrix, channel) {
  return matrix.map((row) => row[channel]);
}

/**
 * Return the mean of the values that are known; null if there are none.
 * @param {Values | undefined} values
 */
export function meanOf(values) {
  const known = (values ?? []).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/**
 * Return the largest set of ticks with at most `atMost` of them, or the smallest set if none is small enough.
 * @param {Tick[][]} sets
 */
export function fitting(sets, atMost) {
  return sets.filter((ticks) => ticks.length <= atMost).at(-1) ?? sets[0];
}

/** Return the state of a gate: the model's, or "opened" or "shut" by hand. */
export function stateOf(explanation, changed, patch, channel) {
  const own = explanation.scene.gates.state[patch][channel];
  if (!changed || own === "missing") return own;
  const isOpen = changed.mask[patch][channel];
  if (isOpen === (own === "open")) return own;
  return isOpen ? "opened" : "shut";
}
