// Small tools for the page: finding, making and saving things.

/** The element with an id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Make an element: attributes by name, `on…` as listeners, children as nodes or text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A colour of the theme in force. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Offer content as a file. */
export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Do something once nothing has asked for it for a moment. */
export function settled(milliseconds, work) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** Light or dark: as the system says, until the button says otherwise; that is kept where the browser allows it. */
export function themeButton(button, onChange) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  let own = kept();
  const apply = () => {
    root.dataset.theme = own ?? (system.matches ? "dark" : "light");
    const isDark = root.dataset.theme === "dark";
    button.setAttribute("aria-label", isDark ? "Switch to light" : "Switch to dark");
    button.textContent = isDark ? "☀" : "☾";
    onChange();
  };
  button.addEventListener("click", () => {
    own = root.dataset.theme === "dark" ? "light" : "dark";
    keep(own);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

const THEME = "ibforecast-theme";

function kept() {
  try {
    return localStorage.getItem(THEME);
  } catch {
    return null; // a browser that keeps nothing
  }
}

function keep(theme) {
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // as above
  }
}
