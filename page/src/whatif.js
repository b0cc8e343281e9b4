// The changes that a user wishes: gates turned by hand, a threshold, edited values, scrambled closed tokens.

import { column } from "./explanation.js";

/** @import { Explanation, Wish } from "./types" */

/**
 * Return a wish without changes.
 * @returns {Wish}
 */
export function unchanged() {
  return { flips: new Set(), threshold: null, edits: new Map(), scramble: null };
}

/** @param {Wish} wish */
export function isUnchanged(wish) {
  return !wish.flips.size && wish.threshold === null && !wish.edits.size && wish.scramble === null;
}

/** Return the name of a token in flips and edits. */
export function token(patch, channel) {
  return `${patch}.${channel}`;
}

/**
 * Return the mask of a wish; a token with a missing step stays closed.
 * @param {Explanation} explanation
 * @param {Wish} wish
 */
export function maskOf(explanation, wish) {
  const { state, probability } = explanation.scene.gates;
  return state.map((row, patch) =>
    row.map((own, channel) => {
      if (own === "missing") return false;
      const isOpen = wish.threshold === null ? own === "open" : probability[patch][channel] >= wish.threshold;
      return isOpen !== wish.flips.has(token(patch, channel));
    }),
  );
}

/**
 * Return the edits of a wish in the format of the service; scrambling overwrites every closed token.
 * @param {Explanation} explanation
 * @param {Wish} wish
 */
export function evidenceOf(explanation, wish, mask) {
  const contents = new Map(wish.edits);
  if (wish.scramble !== null) {
    const noise = gaussian(wish.scramble);
    mask.forEach((row, patch) =>
      row.forEach((isOpen, channel) => {
        if (!isOpen) contents.set(token(patch, channel), scrambled(explanation, channel, noise));
      }),
    );
  }
  return [...contents].map(([name, values]) => {
    const [patch, channel] = name.split(".").map(Number);
    return { patch, channel: explanation.channels[channel].name, values };
  });
}

/**
 * Return the history with noise in place of every value that was not read; a missing value stays missing.
 * @param {Explanation} explanation
 */
export function unreadScrambled(explanation, seed) {
  const noise = gaussian(seed);
  return explanation.history.map((row, step) =>
    row.map((value, channel) => {
      const patch = Math.floor(step / explanation.patchLen);
      if (value === null || explanation.scene.gates.state[patch][channel] === "open") return value;
      return noisy(explanation, channel, noise);
    }),
  );
}

/** Return the history with edits in place, for drawing. */
export function historyWith(explanation, evidence) {
  const history = explanation.history.map((row) => row.slice());
  const columns = new Map(explanation.channels.map((row, channel) => [row.name, channel]));
  for (const { patch, channel, values } of evidence) {
    values.forEach((value, step) => {
      history[patch * explanation.patchLen + step][columns.get(channel)] = value;
    });
  }
  return history;
}

/** Return the contents of a token as noise. */
function scrambled(explanation, channel, noise) {
  return Array.from({ length: explanation.patchLen }, () => noisy(explanation, channel, noise));
}

/** Return noise about as large as the channel's history, which does not depend on what the picture shows. */
function noisy(explanation, channel, noise) {
  const known = column(explanation.history, channel).filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return (low + high) / 2 + (0.4 * (high - low) || 1) * noise();
}

/** Return a generator of normal noise, by mulberry32 and Box–Muller: a seed in a link gives the same noise again. */
function gaussian(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
