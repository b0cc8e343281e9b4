// What is to be different: gates turned by hand, a threshold, edited values, scrambled closed tokens.

/** Nothing is to be different. */
export function asItIs() {
  return { flips: new Set(), threshold: null, edits: new Map(), scramble: null };
}

export function isAsItIs(wish) {
  return !wish.flips.size && wish.threshold === null && !wish.edits.size && wish.scramble === null;
}

/** The name of a token in flips and edits. */
export function token(patch, channel) {
  return `${patch}.${channel}`;
}

export function placeOf(name) {
  return name.split(".").map(Number);
}

/** The mask that is wished for; a token with a missing step stays closed. */
export function maskOf(account, wish) {
  return account.mask.map((row, patch) =>
    row.map((own, channel) => {
      if (account.missing[patch][channel]) return 0;
      const base = wish.threshold === null ? own : Number(account.probability[patch][channel] >= wish.threshold);
      return wish.flips.has(token(patch, channel)) ? 1 - base : base;
    }),
  );
}

/** The contents that are wished for, as the service takes them; scrambling overwrites every closed token. */
export function evidenceOf(account, wish, mask) {
  const found = new Map([...wish.edits].map(([name, values]) => [name, values]));
  if (wish.scramble !== null) {
    const noise = gaussian(wish.scramble);
    mask.forEach((row, patch) =>
      row.forEach((open, channel) => {
        if (!open) found.set(token(patch, channel), scrambled(account, patch, channel, noise));
      }),
    );
  }
  return [...found].map(([name, values]) => {
    const [patch, channel] = placeOf(name);
    return { patch, channel: account.channels[channel], values };
  });
}

/** The history with the wished contents in place, for drawing. */
export function historyWith(account, evidence) {
  const history = account.history.map((row) => row.slice());
  const columns = new Map(account.channels.map((name, channel) => [name, channel]));
  for (const { patch, channel, values } of evidence) {
    values.forEach((value, step) => {
      history[patch * account.patchLen + step][columns.get(channel)] = value;
    });
  }
  return history;
}

function scrambled(account, patch, channel, noise) {
  const first = patch * account.patchLen;
  return Array.from(
    { length: account.patchLen },
    (_, step) => account.expected[first + step][channel] + 1.5 * account.scale[channel] * noise(),
  );
}

/** Normal noise that a seed brings back: mulberry32 and Box–Muller. */
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
