// The data of the page: from the service that sent it, or from the report that it is part of.

/** @import { Comparison, Drivers, History, Model, Receipts, Scene, Table, Verdict } from "./types" */

const TOKEN = "ibforecast-token";

/** An error from the service: what is wrong, and what to do. */
export class Refusal extends Error {
  /** @param {{ error: string, hint?: string }} body */
  constructor(status, body) {
    super(body.error);
    this.status = status;
    this.hint = body.hint;
  }
}

/** The service at this page's own address. */
export class Service {
  isLive = true;
  hasDrivers = true;

  /** @returns {Promise<Model[]>} */
  async models() {
    return (await this.#get("models")).models;
  }

  /** @returns {Promise<Table[]>} */
  async tables() {
    return (await this.#get("tables")).tables;
  }

  async upload(file) {
    const name = encodeURIComponent(file.name.slice(-200));
    return (await this.#request(`tables?name=${name}`, { method: "POST", body: file })).json();
  }

  async moments(model, table) {
    return this.#get(`tables/${encodeURIComponent(table)}/moments?list=true&model=${encodeURIComponent(model)}`);
  }

  /** @returns {Promise<History>} */
  async history(model, table, windows) {
    const query = `model=${encodeURIComponent(model)}&windows=${windows}`;
    return this.#get(`tables/${encodeURIComponent(table)}/history?${query}`);
  }

  /**
   * Return what moves all channels of a table, or one of them, and the same by groups of windows.
   * @returns {Promise<Drivers>}
   */
  async drivers(model, table, windows, channel, by) {
    const of = channel === null ? "" : `&channel=${encodeURIComponent(channel)}`;
    const query = `model=${encodeURIComponent(model)}&windows=${windows}${of}${by ? `&by=${by}` : ""}`;
    return this.#get(`tables/${encodeURIComponent(table)}/drivers?${query}`);
  }

  /**
   * Return the text of the document, byte for byte as the library writes it, and its picture.
   * @returns {Promise<{ document: string, scene: Scene }>}
   */
  async explain(model, table, at, budget) {
    return (await this.#post("explain?form=page", { model, table, at, budget })).json();
  }

  /**
   * Return the picture with receipts, and the receipts of all channels or every step of one.
   * @returns {Promise<{ scene: Scene, receipts: Receipts[] }>}
   */
  async receipts(model, text, channel, signal) {
    return (await this.#post("receipts?form=page", { model, explanation: text, channel }, signal)).json();
  }

  /**
   * Return why the forecast of a channel differs from that of another moment; null: of the day before.
   * @returns {Promise<Comparison>}
   */
  async compare(model, table, at, otherAt, budget, channel, step, signal) {
    const question = { model, table, at, other_at: otherAt, budget, channel, step: step || "mean" };
    return (await this.#post("compare", question, signal)).json();
  }

  /** Return the explanation as a file: "svg" or "csv". */
  async file(form, model, table, at, budget) {
    return (await this.#post(`explain?form=${form}`, { model, table, at, budget })).text();
  }

  /**
   * Check a document, and compare it with the table it is about.
   * @returns {Promise<Verdict>}
   */
  async verify(model, table, text) {
    return (await this.#post("verify", { model, table, explanation: text })).json();
  }

  async replay(model, text, question) {
    return (await this.#post("replay", { model, explanation: text, ...question })).json();
  }

  /** Run the whole model again on other values where nothing was read; nothing is held. */
  async rerun(model, text, values) {
    return (await this.#post("rerun", { model, explanation: text, values })).json();
  }

  useToken(token) {
    sessionStorage.setItem(TOKEN, token);
  }

  async #get(path) {
    return (await this.#request(path, {})).json();
  }

  /** @param {AbortSignal} [signal] */
  async #post(path, question, signal) {
    const body = JSON.stringify(question);
    return this.#request(path, { method: "POST", body, signal, headers: { "content-type": "application/json" } });
  }

  async #request(path, options) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    let answer;
    try {
      answer = await fetch(path, { ...options, headers });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Refusal(0, { error: "the service does not answer", hint: "is `ibforecast serve` still running?" });
    }
    if (answer.ok) return answer;
    const refusal = await answer.json().catch(() => ({ error: `the service answered ${answer.status}` }));
    throw new Refusal(answer.status, refusal);
  }
}

/** The explanations that are part of this file. */
export class Report {
  isLive = false;

  constructor(content) {
    this.content = content;
  }

  /** Whether the report shows what moves each channel over the table. */
  get hasDrivers() {
    return Boolean(this.content.drivers);
  }

  /** @returns {Promise<Model[]>} */
  async models() {
    return [this.content.model];
  }

  /** @returns {Promise<Table[]>} */
  async tables() {
    return [this.content.table];
  }

  async moments() {
    return { moments: this.content.moments.map((moment) => moment.at) };
  }

  /** @returns {Promise<{ document: string, scene: Scene }>} */
  async explain(_model, _table, at) {
    return this.#moment(at);
  }

  /** @returns {Promise<Comparison>} */
  async compare(_model, _table, at, _otherAt, _budget, channel, step) {
    const own = this.#moment(at).comparisons?.find((one) => one.channel === channel);
    if (!own) throw new Refusal(0, { error: "this report has no earlier forecast to compare with" });
    return own.steps[Math.min(step, own.steps.length - 1)];
  }

  /** @returns {Promise<Drivers>} */
  async drivers() {
    return this.content.drivers;
  }

  /** Return the explanation as a file: "svg" or "csv". */
  async file(form, _model, _table, at) {
    return this.#moment(at)[form];
  }

  /** @returns {Promise<Verdict>} */
  async verify(_model, _table, text) {
    const { verified, checks } = this.content.moments.find((moment) => moment.document === text);
    return { verified, checks, notes: [], made: this.content.made };
  }

  #moment(at) {
    return this.content.moments.find((moment) => moment.at === at);
  }
}

/** Return the report in this page if there is one, otherwise the service. */
export function openSource() {
  const embedded = document.getElementById("report");
  return embedded ? new Report(JSON.parse(embedded.textContent ?? "")) : new Service();
}
