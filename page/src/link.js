// The state of the page in its address, after the #, so that a link shows the same picture again.

import { unchanged } from "./whatif.js";

/** @import { Explanation, Wish } from "./types" */

/** Return the state as text: only what differs from the default. */
export function toHash(state) {
  const { wish } = state;
  const words = new URLSearchParams();
  for (const name of ["model", "table", "at", "budget", "tab"]) {
    if (state[name] !== null && state[name] !== undefined) words.set(name, state[name]);
  }
  if (wish.threshold !== null) words.set("threshold", wish.threshold);
  if (wish.flips.size) words.set("flip", [...wish.flips].join("_"));
  for (const [name, values] of wish.edits) words.append("edit", `${name}:${values.join("_")}`);
  if (wish.scramble !== null) words.set("scramble", wish.scramble);
  return `#${words}`;
}

/** Read what `toHash` returned; ignore invalid parts. */
export function fromHash(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const wish = unchanged();
  const finite = (text) => (text !== null && text !== "" && Number.isFinite(Number(text)) ? Number(text) : null);
  wish.threshold = finite(words.get("threshold"));
  wish.scramble = finite(words.get("scramble"));
  for (const name of (words.get("flip") ?? "").split("_")) if (/^\d+\.\d+$/.test(name)) wish.flips.add(name);
  for (const edit of words.getAll("edit")) {
    const [name, values = ""] = edit.split(":");
    const numbers = values.split("_").map(finite).filter((value) => value !== null);
    const isWhole = numbers.length === values.split("_").length;
    if (/^\d+\.\d+$/.test(name) && isWhole) wish.edits.set(name, numbers);
  }
  return {
    model: words.get("model"),
    table: words.get("table"),
    at: words.get("at"),
    budget: finite(words.get("budget")),
    tab: words.get("tab"),
    wish,
  };
}

/**
 * Return a wish without the tokens that an explanation does not have. Scrambling a sealed model allows no other change.
 * @param {Wish} wish
 * @param {Explanation} explanation
 * @returns {Wish}
 */
export function restrictedTo(wish, explanation) {
  if (explanation.sealed && wish.scramble !== null) return { ...unchanged(), scramble: wish.scramble };
  const exists = (name) => {
    const [patch, channel] = name.split(".").map(Number);
    return patch < explanation.patches && channel < explanation.channels.length;
  };
  return {
    ...wish,
    flips: new Set([...wish.flips].filter(exists)),
    edits: new Map([...wish.edits].filter(([name, values]) => exists(name) && values.length === explanation.patchLen)),
  };
}
