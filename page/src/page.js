// Helpers for elements, colours, files and the theme.

/**
 * Return the element with an id; its type is any, because only the HTML says which it is.
 * @returns {any}
 */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Make an element: attributes by name, `on…` as listeners, children as nodes or text.
 * @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Let a select offer these names, if it does not already, and choose one of them. */
export function fill(select, names, chosen = select.value) {
  if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n"))
    select.replaceChildren(...names.map((name) => make("option", {}, name)));
  if (names.includes(chosen)) select.value = chosen;
}

/** Return a colour of the current theme. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Let the browser save content as a file. */
export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Return an SVG as a PNG of twice its size, or smaller if a canvas cannot be that large. */
export async function toPng(svg) {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const scale = Math.min(2, 16_000 / image.height);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * scale, image.height * scale];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Return a function that runs `work` once it has not been called again for a while. */
export function settled(milliseconds, work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** Follow the system's theme until the button is used; the choice is stored if the browser allows it. */
export function themeButton(button, onChange) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  let own = storedTheme();
  const apply = () => {
    root.dataset.theme = own ?? (system.matches ? "dark" : "light");
    const isDark = root.dataset.theme === "dark";
    button.setAttribute("aria-label", isDark ? "Switch to light" : "Switch to dark");
    button.textContent = isDark ? "☀" : "☾";
    onChange();
  };
  button.addEventListener("click", () => {
    own = root.dataset.theme === "dark" ? "light" : "dark";
    storeTheme(own);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

const THEME = "ibforecast-theme";

function storedTheme() {
  try {
    return localStorage.getItem(THEME);
  } catch {
    return null; // the browser does not allow storage
  }
}

function storeTheme(theme) {
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // as above
  }
}
