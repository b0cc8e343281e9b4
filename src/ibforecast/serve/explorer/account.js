// One explanation as the page needs it: read from the very text the service wrote, which is kept for checks and export.

const FEW_PLACES = 3;

/** Read the text of an explanation. Derived numbers are for drawing; the text stays the truth. */
export function readAccount(text) {
  const document = JSON.parse(text);
  const { window: seen, context, explanation } = document;
  const { mean, std } = context.standardisation;
  const lookBack = seen.history.length;
  const scale = std.map((deviation, column) => deviation * context.scale[column]);
  const level = mean.map((middle, column) => middle + std[column] * context.level[column]);
  const known = context.known ?? [];
  const expected = context.phase.map((phase, step) =>
    level.map(
      (middle, column) =>
        middle + scale[column] * seasonal(context, phase, column) + std[column] * effect(context, phase, step, column),
    ),
  );
  return {
    text,
    weights: document.model.weights_sha256,
    budget: document.budget,
    prior: document.prior ?? null,
    openCount: document.open_count,
    openRate: document.open_rate,
    rateBits: document.rate_bits ?? null,
    inWords: inBrief(document),
    channels: seen.channels,
    times: seen.times,
    at: seen.times[lookBack - 1],
    lookBack,
    horizon: document.forecast.length,
    patchLen: seen.patch_len,
    patches: explanation.mask.length,
    history: seen.history,
    forecast: document.forecast,
    truth: document.truth,
    level,
    scale,
    expected,
    known,
    mask: explanation.mask,
    probability: explanation.probability,
    missing: explanation.missing,
  };
}

/** A document's words with what was read told briefly, as the library's own `in_words` does. */
function inBrief({ in_words: words, window: seen, explanation }) {
  const alike = new Map();
  seen.channels.forEach((name, channel) => {
    const open = explanation.mask.flatMap((row, patch) => (row[channel] ? [patch] : []));
    if (open.length) alike.set(String(open), { open, names: [...(alike.get(String(open))?.names ?? []), name] });
  });
  const read = [...alike.values()].map(({ open, names }) => `${names.join(", ")} (${places(seen, explanation, open)})`);
  const told = (line) => (line.startsWith("Read: ") && read.length ? `Read: ${read.join("; ")}.` : line);
  return words.split("\n").map(told).join("\n");
}

/** Where a channel was read: each span, or of many how many patches there are, and how far apart if evenly. */
function places(seen, explanation, open) {
  const span = (first, last) => `${seen.times[first * seen.patch_len]} to ${seen.times[(last + 1) * seen.patch_len - 1]}`;
  const starts = open.filter((patch) => !open.includes(patch - 1));
  const ends = open.filter((patch) => !open.includes(patch + 1));
  if (starts.length <= FEW_PLACES) return starts.map((first, run) => span(first, ends[run])).join(", ");
  const apart = new Set(open.slice(1).map((patch, before) => patch - open[before]));
  const evenly = apart.size === 1 ? `, one in ${[...apart][0]}` : "";
  return `${open.length} of ${explanation.mask.length} patches${evenly}, ${span(open[0], open.at(-1))}`;
}

/** What the profiles of all cycles, which lie end to end, say of a phase together. */
function seasonal(context, phase, column) {
  let [sum, first] = [0, 0];
  for (const cycle of context.cycles ?? [context.profile.length]) {
    sum += context.profile[first + (phase % cycle)][column];
    first += cycle;
  }
  return sum;
}

/** By how much what is known ahead moves a channel at a step. */
function effect(context, phase, step, column) {
  return (context.known ?? []).reduce(
    (sum, { usual, std, values, response }) =>
      sum + ((values[step] - usual) / std) * response[phase % response.length][column],
    0,
  );
}

/** First and last step of a patch. */
export function steps(account, patch) {
  return [patch * account.patchLen, (patch + 1) * account.patchLen - 1];
}

/** One channel of a matrix of steps × channels. */
export function column(matrix, channel) {
  return matrix.map((row) => row[channel]);
}

/** Mean of a channel over the steps that are known; null where none is. */
export function meanOf(matrix, channel) {
  const known = column(matrix, channel).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/** What a gate tells beyond the prior, in bits. */
function bits(account, patch, channel) {
  const opened = account.probability[patch][channel];
  if (account.prior === null) return null;
  if (account.missing[patch][channel]) return 0;
  const part = (share, prior) => (share > 0 ? share * Math.log2(share / prior) : 0);
  return Math.max(part(opened, account.prior) + part(1 - opened, 1 - account.prior), 0);
}

/** One row per token, channel by channel, oldest patch first, as `ibforecast explain --tokens` writes it. */
export function tokensAsCsv(account) {
  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const truth = (flag) => (flag ? "True" : "False");
  const lines = ["channel,start,end,open,probability,bits,missing,mean_deviation,largest_deviation,values"];
  account.channels.forEach((name, channel) => {
    for (let patch = 0; patch < account.patches; patch += 1) {
      const [first, last] = steps(account, patch);
      const values = column(account.history.slice(first, last + 1), channel);
      const deviations = values
        .map(
          (value, step) => value !== null && (value - account.expected[first + step][channel]) / account.scale[channel],
        )
        .filter((deviation) => deviation !== false);
      const mean = deviations.reduce((sum, deviation) => sum + deviation, 0) / deviations.length;
      const largest = deviations.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most), 0);
      lines.push(
        [
          quoted(name),
          account.times[first],
          account.times[last],
          truth(account.mask[patch][channel]),
          account.probability[patch][channel],
          bits(account, patch, channel) ?? "",
          truth(account.missing[patch][channel]),
          deviations.length ? mean : "",
          deviations.length ? largest : "",
          quoted(`[${values.map((value) => value ?? "null").join(", ")}]`),
        ].join(","),
      );
    }
  });
  return `${lines.join("\n")}\n`;
}
