// The picture as a file: SVG, and PNG made from it. Always in light colours, for paper.

import { column, steps } from "./account.js";
import { rangeOf, stateOf } from "./rows.js";
import { counted, percent, shortened, tickTexts, timeTicks, valueTicks } from "./words.js";

const INK = "#1d2329";
const FAINT = "#5c6670";
const GRID = "#e4e7ea";
const LINES = {
  level: { stroke: "#0072B2", "stroke-width": 0.8, "stroke-opacity": 0.35 },
  baseline: { stroke: "#0072B2", "stroke-width": 1.1, "stroke-dasharray": "2 3" },
  history: { stroke: "#7F7F7F", "stroke-width": 1.3 },
  truth: { stroke: "#000000", "stroke-width": 1.3 },
  forecast: { stroke: "#D55E00", "stroke-width": 1.8, "stroke-dasharray": "6 3" },
  whatif: { stroke: "#A3307E", "stroke-width": 2.8 },
};
const WIDTH = 1200;
const LEFT = 210;
const MAP = 200;
const RIGHT = WIDTH - MAP - 60;
const TOP = 118;

/** Draw an account, and what is different about it, as one SVG text. */
export function toSvg(account, changed, verdict) {
  const tall = account.channels.length > 12 ? 66 : 92;
  const words = `${changed ? "The model's own explanation:\n" : ""}${account.inWords}`
    .split("\n")
    .flatMap((line) => wrapped(line, 160))
    .slice(0, 40);
  const bottom = TOP + account.channels.length * tall;
  const height = bottom + 62 + words.length * 18;
  const across = (step) => LEFT + ((step + 0.5) / account.times.length) * (RIGHT - LEFT);
  const open = (changed?.mask ?? account.mask).flat().filter(Boolean).length;
  const parts = [
    text(24, 34, `Forecast made at ${account.at}`, { "font-size": 20, "font-weight": 600 }),
    text(
      24,
      58,
      `read ${open} of ${counted(account.mask.flat().length, "token")}, ${percent(open / account.mask.flat().length)} of the window; budget ${percent(account.budget)}. ${verdict}`,
      { fill: FAINT },
    ),
    ...(changed
      ? [
          text(24, 78, "What-if: gates or values were chosen by hand, so this is not the model's own explanation.", {
            fill: LINES.whatif.stroke,
            "font-weight": 600,
          }),
        ]
      : []),
    ...legend(account, changed),
    ...timeTicks(account.times, 9).flatMap(({ at, lines }) => [
      shape("line", { x1: across(at), x2: across(at), y1: TOP, y2: bottom, stroke: GRID }),
      ...lines.map((line, number) =>
        text(across(at), bottom + 18 + 14 * number, line, { "text-anchor": "middle", "font-size": 11, fill: FAINT }),
      ),
    ]),
    text(RIGHT + 30, TOP - 10, "all gates", { "font-size": 11, fill: FAINT }),
    ...account.channels.flatMap((_, channel) => row(account, changed, channel, TOP + channel * tall, tall, across)),
    shape("line", {
      x1: across(account.lookBack - 0.5),
      x2: across(account.lookBack - 0.5),
      y1: TOP,
      y2: bottom,
      stroke: INK,
    }),
    ...words.map((line, number) => text(24, bottom + 66 + 18 * number, line, {})),
  ];
  const hatch = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line y2="6" stroke="#A0A0A0"/></pattern></defs>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, 'Helvetica Neue', Arial, sans-serif" font-size="13" fill="${INK}">` +
    `${hatch}<rect width="100%" height="100%" fill="#ffffff"/>${parts.join("")}</svg>`
  );
}

/** Turn an SVG text into a PNG, twice as fine where the size allows it. */
export async function toPng(svg) {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const fine = Math.min(2, 16_000 / image.height);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * fine, image.height * fine];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

function row(account, changed, channel, top, tall, across) {
  const [low, high] = rangeOf(account, changed, channel);
  const up = (value) => top + tall - 6 - ((value - low) / (high - low)) * (tall - 12);
  const line = (name, matrix, first) =>
    path(
      matrix ? column(matrix, channel).map((value, step) => value !== null && [across(first + step), up(value)]) : [],
      LINES[name],
    );
  const ticks = valueTicks(low, high, tall > 80 ? 3 : 2);
  const texts = tickTexts(ticks);
  return [
    shape("line", { x1: 24, x2: WIDTH - 24, y1: top, y2: top, stroke: GRID }),
    text(24, top + 20, shortened(account.channels[channel], 20), { "font-weight": 600 }),
    ...ticks.map((tick, number) =>
      text(LEFT - 8, up(tick) + 4, texts[number], { "text-anchor": "end", "font-size": 11, fill: FAINT }),
    ),
    ...account.mask.flatMap((_, patch) => gate(account, changed, channel, patch, top, tall, across)),
    path(
      [
        [across(-0.5), up(account.level[channel])],
        [across(account.times.length - 0.5), up(account.level[channel])],
      ],
      LINES.level,
    ),
    line("baseline", account.expected, 0),
    line("history", account.history, 0),
    line("truth", account.truth, account.lookBack),
    line("whatif", changed?.forecast, account.lookBack),
    line("forecast", account.forecast, account.lookBack),
  ];
}

/** A gate twice: as shade behind the lines, and as a cell of the map at the right. */
function gate(account, changed, channel, patch, top, tall, across) {
  const state = stateOf(account, changed, patch, channel);
  const [first, last] = steps(account, patch);
  const look = {
    missing: { fill: "url(#hatch)" },
    open: { fill: "#009E73", "fill-opacity": 0.18, stroke: "#009E73" },
    opened: { fill: "#A3307E", "fill-opacity": 0.14, stroke: "#A3307E", "stroke-dasharray": "4 3" },
    shut: { fill: "none", stroke: "#A3307E", "stroke-dasharray": "4 3" },
  }[state];
  const wide = Math.min(MAP / account.patches, 24);
  const cell = { x: RIGHT + 30 + patch * wide + 1, y: top + tall / 2 - 9, width: wide - 2, height: 18 };
  const fill =
    state === "missing"
      ? { fill: "url(#hatch)" }
      : { fill: "#0072B2", "fill-opacity": account.probability[patch][channel] };
  const edge = {
    open: { stroke: INK, "stroke-width": 2 },
    opened: { stroke: LINES.whatif.stroke, "stroke-width": 2, "stroke-dasharray": "4 2" },
    shut: { stroke: LINES.whatif.stroke, "stroke-width": 2, "stroke-dasharray": "1 2" },
  }[state] ?? { stroke: GRID };
  return [
    ...(look
      ? [
          shape("rect", {
            x: across(first - 0.5) + 1,
            y: top + 3,
            width: across(last + 0.5) - across(first - 0.5) - 2,
            height: tall - 6,
            ...look,
          }),
        ]
      : []),
    shape("rect", { ...cell, ...fill, ...edge }),
  ];
}

function legend(account, changed) {
  const names = {
    history: "look-back",
    baseline: "baseline: profile at this level and scale",
    ...(account.truth && { truth: "truth" }),
    forecast: "forecast",
    ...(changed && { whatif: "what-if" }),
  };
  let left = LEFT;
  return Object.entries(names).flatMap(([name, words]) => {
    const start = left;
    left += 48 + 7.2 * words.length;
    return [
      shape("line", { x1: start, x2: start + 26, y1: 98, y2: 98, ...LINES[name] }),
      text(start + 32, 102, words, { "font-size": 12, fill: FAINT }),
    ];
  });
}

function path(points, look) {
  let pen = "M";
  const drawn = points.map((point) => {
    const move = point ? `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}` : "";
    pen = point ? "L" : "M";
    return move;
  });
  return shape("path", { d: drawn.join(""), fill: "none", "stroke-linejoin": "round", ...look });
}

function shape(tag, attributes) {
  return `<${tag} ${Object.entries(attributes)
    .map(([name, value]) => `${name}="${value}"`)
    .join(" ")}/>`;
}

function text(x, y, words, look) {
  const safe = words.replace(/[&<>]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[letter]);
  return `<text x="${x}" y="${y}" ${Object.entries(look)
    .map(([name, value]) => `${name}="${value}"`)
    .join(" ")}>${safe}</text>`;
}

function wrapped(line, width) {
  const lines = [""];
  for (const word of line.split(" ")) {
    if (`${lines.at(-1)} ${word}`.length > width) lines.push(word);
    else lines[lines.length - 1] = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
  }
  return lines;
}
