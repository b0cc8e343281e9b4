// Numbers and names as texts.

/** Return a value with four significant digits and a minus sign, not a hyphen. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(2).replace("e+", "e") : plain(value, size);
  return text.replace(/-/g, "−");
}

function plain(value, size) {
  const decimals = Math.max(0, 3 - Math.floor(Math.log10(size)));
  return value.toFixed(Math.min(decimals, 7));
}

/** Return a shift with its sign. */
export function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

/** Return an amount with its sign, and as many decimals as three digits of the largest of several amounts need. */
export function brief(amount, largest) {
  const decimals = largest ? Math.min(Math.max(2 - Math.floor(Math.log10(largest)), 0), 9) : 0;
  const text = (Number(amount.toFixed(decimals)) + 0).toFixed(decimals);
  return `${Number(text) > 0 ? "+" : ""}${text}`.replace("-", "−");
}

/** Return a shift in units of the window's scale. */
export function scales(size) {
  return `${Number(size.toPrecision(2))} σ`;
}

/** Return a fraction as a percentage with three digits. */
export function percent(fraction) {
  return `${Number((100 * fraction).toPrecision(3))} %`;
}

/** Return a number and a noun: "1 gate", "2 gates". */
export function counted(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Return a moment in local time, without its offset. */
export function local(moment) {
  return moment.replace(/(?:Z|[+-]\d\d:\d\d)$/, "");
}

/** Shorten a long name in its middle, because channel names usually differ at an end. */
export function shortened(text, width) {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`;
}
