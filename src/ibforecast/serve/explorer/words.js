// Numbers and times as people read them; the rules are those of the library's own figures.

const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d))?/;
const GRIDS = [1, 2, 3, 4, 6, 12, 24];

/** A value with four significant digits, and a minus sign that is one. */
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

/** A shift with its sign. */
export function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value);
}

/** A shift in units of the window's scale. */
export function scales(size) {
  return `${Number(size.toPrecision(2))} σ`;
}

/** A fraction as a percentage with three digits. */
export function percent(fraction) {
  return `${Number((100 * fraction).toPrecision(3))} %`;
}

/** "1 gate", "2 gates". */
export function counted(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Keep both ends of a long name, which is where channel names tend to differ. */
export function shortened(text, width) {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** Positions and labels of a handful of moments: round hours and midnights where the times have them. */
export function timeTicks(times, atMost) {
  const moments = times.map((time) => MOMENT.exec(time));
  if (moments.some((moment) => !moment)) {
    return evenly(times.length, Math.min(atMost, 5)).map((at) => ({ at, lines: [shortened(times[at], 18)] }));
  }
  const clocks = moments.map((moment) => moment[2] ?? "00:00");
  const dates = moments.map((moment) => moment[1]);
  const positions = roundHours(clocks, atMost) ?? evenly(times.length, atMost);
  const midnights = positions.every((at) => clocks[at] === "00:00");
  return positions.map((at, number) => {
    const before = number && dates[positions[number - 1]];
    const day =
      before === dates[at]
        ? ""
        : before && before.slice(0, 4) === dates[at].slice(0, 4)
          ? dates[at].slice(5)
          : dates[at];
    return { at, lines: midnights ? [day] : [clocks[at], day] };
  });
}

/** Positions and dates of a handful of moments, evenly spread. */
export function dayTicks(times, atMost) {
  return evenly(times.length, atMost).map((at) => ({
    at,
    text: shortened(MOMENT.exec(times[at])?.[1] ?? times[at], 18),
  }));
}

function roundHours(clocks, atMost) {
  let positions = [];
  for (const hours of GRIDS) {
    positions = clocks.flatMap((clock, at) =>
      clock.endsWith(":00") && Number(clock.slice(0, 2)) % hours === 0 ? [at] : [],
    );
    if (positions.length <= atMost) break;
  }
  const every = Math.ceil(positions.length / atMost);
  positions = positions.filter((_, number) => number % every === 0);
  return positions.length >= 3 ? positions : null;
}

function evenly(count, atMost) {
  const labels = Math.min(atMost, count);
  return Array.from({ length: labels }, (_, label) => Math.floor(((2 * label + 1) * count) / (2 * labels)));
}

/** Two or three round values inside a range, clear of its edges. */
export function valueTicks(low, high, atMost = 3) {
  const span = high - low;
  const [bottom, top] = [low + 0.1 * span, high - 0.1 * span];
  const smallest = 10 ** Math.floor(Math.log10(span / (atMost + 1)));
  let ticks = [bottom, top];
  for (const step of [1, 2, 2.5, 5, 10, 20, 25, 50].map((factor) => factor * smallest)) {
    const finer = ticks;
    ticks = [];
    for (let at = Math.ceil(bottom / step); at <= Math.floor(top / step + 1e-9); at += 1) ticks.push(at * step);
    if (ticks.length < 2) return [finer[0], finer.at(-1)];
    if (ticks.length <= atMost) return ticks;
  }
  return [ticks[0], ticks.at(-1)];
}

/** The ticks' numbers, all with as many decimals as the closest two need. */
export function tickTexts(ticks) {
  const largest = Math.max(...ticks.map(Math.abs));
  if (largest >= 1e6 || (largest > 0 && largest < 1e-4)) return ticks.map(number);
  const apart = Math.min(...ticks.slice(1).map((tick, at) => tick - ticks[at]), largest || 1);
  for (let decimals = 0; decimals < 8; decimals += 1) {
    const texts = ticks.map((tick) => (tick + 0).toFixed(decimals));
    if (texts.every((text, at) => Math.abs(Number(text) - ticks[at]) <= 0.02 * apart)) {
      return texts.map((text) => (Number(text) === 0 ? "0" : text.replace("-", "−")));
    }
  }
  return ticks.map(number);
}
