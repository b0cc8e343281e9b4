// A map of channels × patches: every cell can be reached by keyboard; only the rows near the screen are in the page.

import { make } from "./page.js";
import { shortened } from "./words.js";

const HEIGHT = 22;
const SPARE = 6;
const DENSE = 20;
const FINE = 48;

export class Grid {
  #names = [];
  #columns = 0;
  /** @type {(column: number, row: number) => { value: number, state: string, label: string }} */
  #cell = () => ({ value: 0, state: "", label: "" });
  #drawn = new Map();
  #active = [0, 0];

  /**
   * At most `tallest` rows are visible; `onPick(column, row)` is called when a cell gets the focus,
   * `onTurn(column, row)` on a click, Enter or Space.
   */
  constructor(host, label, { tallest, onPick = (_column, _row) => {}, onTurn = (_column, _row) => {} }) {
    this.host = host;
    this.tallest = tallest;
    this.onPick = onPick;
    this.onTurn = onTurn;
    this.inner = make("div", { class: "grid-inner", role: "presentation" });
    host.setAttribute("role", "grid");
    host.setAttribute("aria-label", label);
    host.replaceChildren(this.inner);
    host.addEventListener("scroll", () => this.#draw());
    host.addEventListener("keydown", (event) => this.#key(event));
    host.addEventListener("click", (event) => {
      const cell = event.target.closest("[role=gridcell]");
      if (cell) this.onTurn(cell.column, cell.parentNode.row);
    });
    host.addEventListener("focusin", (event) => {
      if (event.target.role !== "gridcell") return;
      this.#active = [event.target.column, event.target.parentNode.row];
      this.#draw();
      this.onPick(this.#active[0], this.#active[1]);
    });
  }

  /** Show names × columns; `cell(column, row)` returns value (0 to 1), state and label. */
  show(names, columns, cell) {
    if (names !== this.#names || columns !== this.#columns) {
      for (const row of this.#drawn.values()) row.remove();
      this.#drawn.clear();
      this.#active = [Math.min(this.#active[0], columns - 1), Math.min(this.#active[1], names.length - 1)];
    }
    [this.#names, this.#columns, this.#cell] = [names, columns, cell];
    this.inner.style.height = `${names.length * HEIGHT}px`;
    this.host.style.height = `${Math.min(names.length, this.tallest + 0.5) * HEIGHT + 2}px`;
    this.host.classList.toggle("dense", columns > DENSE);
    this.host.classList.toggle("fine", columns > FINE);
    this.host.style.minWidth = `max(100%, ${leastWidth(columns)}px)`;
    this.host.setAttribute("aria-rowcount", names.length);
    this.host.setAttribute("aria-colcount", columns);
    this.#draw();
  }

  #draw() {
    const first = Math.max(0, Math.floor(this.host.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(
      this.#names.length,
      Math.ceil((this.host.scrollTop + this.tallest * HEIGHT) / HEIGHT) + SPARE,
    );
    // The active row stays even when it is scrolled out of sight: removing it would lose the keyboard's focus.
    const wanted = new Set([this.#active[1]]);
    for (let row = first; row < last; row += 1) wanted.add(row);
    for (const [number, row] of this.#drawn) {
      if (!wanted.has(number)) {
        row.remove();
        this.#drawn.delete(number);
      }
    }
    for (const number of wanted) {
      if (!this.#drawn.has(number)) this.#drawn.set(number, this.#row(number));
      this.#paint(this.#drawn.get(number), number);
    }
  }

  #row(number) {
    const name = this.#names[number];
    const cells = Array.from({ length: this.#columns }, (_, column) => {
      const cell = make("div", { role: "gridcell", class: "cell", "aria-colindex": column + 1 });
      cell.column = column;
      return cell;
    });
    const row = make(
      "div",
      { role: "row", class: "grid-row", "aria-rowindex": number + 1 },
      make("span", { role: "rowheader", title: name }, shortened(name, 15)),
      ...cells,
    );
    row.row = number;
    row.style.top = `${number * HEIGHT}px`;
    this.inner.append(row);
    return row;
  }

  #paint(row, number) {
    for (const cell of row.querySelectorAll("[role=gridcell]")) {
      const { value, state, label } = this.#cell(cell.column, number);
      const isActive = this.#active[0] === cell.column && this.#active[1] === number;
      cell.style.setProperty("--value", value);
      cell.className = `cell ${state}${isActive ? " active" : ""}`;
      cell.title = label;
      cell.setAttribute("aria-label", label);
      cell.setAttribute("aria-selected", state === "open" || state === "opened");
      cell.tabIndex = isActive ? 0 : -1;
    }
  }

  #key(event) {
    const [column, row] = this.#active;
    const [right, bottom] = [this.#columns - 1, this.#names.length - 1];
    const moves = {
      ArrowLeft: [column - 1, row],
      ArrowRight: [column + 1, row],
      ArrowUp: [column, row - 1],
      ArrowDown: [column, row + 1],
      Home: [0, event.ctrlKey ? 0 : row],
      End: [right, event.ctrlKey ? bottom : row],
      PageUp: [column, row - 10],
      PageDown: [column, row + 10],
    };
    if (event.key === "Enter" || event.key === " ") this.onTurn(column, row);
    else if (moves[event.key])
      this.#moveTo(
        Math.min(Math.max(moves[event.key][0], 0), right),
        Math.min(Math.max(moves[event.key][1], 0), bottom),
      );
    else return;
    event.preventDefault();
  }

  #moveTo(column, row) {
    this.#active = [column, row];
    const top = row * HEIGHT;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    if (top + HEIGHT > this.host.scrollTop + this.host.clientHeight)
      this.host.scrollTop = top + HEIGHT - this.host.clientHeight;
    this.#draw();
    this.#drawn.get(row).querySelectorAll("[role=gridcell]")[column].focus({ preventScroll: true });
  }
}

/** Return the width in pixels that the cells of a row need, with its name. */
function leastWidth(columns) {
  if (columns > FINE) return 92 + 2 * columns;
  return columns > DENSE ? 92 + 4 * columns : 112 + 9 * columns;
}
