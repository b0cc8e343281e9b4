// The state of the page as the part of its address after the #, so that a link shows the same picture again.

import { asItIs } from "./whatif.js";

/** Write the state: only what differs from the usual. */
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

/** Read what `toHash` wrote; what makes no sense is passed over. */
export function fromHash(hash) {
  const words = new URLSearchParams(hash.slice(1));
  const wish = asItIs();
  const finite = (text) => (text !== null && text !== "" && Number.isFinite(Number(text)) ? Number(text) : null);
  wish.threshold = finite(words.get("threshold"));
  wish.scramble = finite(words.get("scramble"));
  for (const name of (words.get("flip") ?? "").split("_")) if (/^\d+\.\d+$/.test(name)) wish.flips.add(name);
  for (const edit of words.getAll("edit")) {
    const [name, values = ""] = edit.split(":");
    const numbers = values.split("_").map(finite);
    if (/^\d+\.\d+$/.test(name) && !numbers.includes(null)) wish.edits.set(name, numbers);
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

/** Leave out of a wish what an explanation has no token for. */
export function fitting(wish, account) {
  const known = (name) => {
    const [patch, channel] = name.split(".").map(Number);
    return patch < account.patches && channel < account.channels.length;
  };
  return {
    ...wish,
    flips: new Set([...wish.flips].filter(known)),
    edits: new Map([...wish.edits].filter(([name, values]) => known(name) && values.length === account.patchLen)),
  };
}
