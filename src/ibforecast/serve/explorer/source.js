// Where the page gets its data: a service at the same address, or a report that carries it along.

const TOKEN = "ibforecast-token";

/** A refusal in the service's own words: what is wrong, what to do, which field. */
export class Refusal extends Error {
  constructor(status, { error, hint = null, field = null }) {
    super(error);
    Object.assign(this, { status, hint, field });
  }
}

/** The service this page came from. */
export class Service {
  canAsk = true;

  async models() {
    return (await this.#get("models")).models;
  }

  async tables() {
    return (await this.#get("tables")).tables;
  }

  async upload(file) {
    const name = encodeURIComponent(file.name.slice(-200));
    return this.#json(await this.#ask(`tables?name=${name}`, { method: "POST", body: file }));
  }

  async moments(model, table) {
    return this.#get(`tables/${encodeURIComponent(table)}/moments?list=true&model=${encodeURIComponent(model)}`);
  }

  async history(model, table, windows) {
    const asked = `model=${encodeURIComponent(model)}&windows=${windows}`;
    return this.#get(`tables/${encodeURIComponent(table)}/history?${asked}`);
  }

  /** The document itself, byte for byte as the library writes it. */
  async explain(model, table, at, budget) {
    const answer = await this.#post("explain?form=document", { model, table, at, budget });
    return answer.text();
  }

  async verify(model, text) {
    return this.#json(await this.#post("verify", { model, explanation: text }));
  }

  async replay(model, text, question) {
    return this.#json(await this.#post("replay", { model, explanation: text, ...question }));
  }

  useToken(token) {
    sessionStorage.setItem(TOKEN, token);
  }

  async #get(path) {
    return this.#json(await this.#ask(path, {}));
  }

  async #post(path, question) {
    const body = JSON.stringify(question);
    return this.#ask(path, { method: "POST", body, headers: { "content-type": "application/json" } });
  }

  async #ask(path, options) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    let answer;
    try {
      answer = await fetch(path, { ...options, headers });
    } catch {
      throw new Refusal(0, { error: "the service does not answer", hint: "is `ibforecast serve` still running?" });
    }
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({ error: `the service answered ${answer.status}` }));
    throw new Refusal(answer.status, told);
  }

  async #json(answer) {
    return answer.json();
  }
}

/** The data that `ibforecast report` put into this file; each document was verified when the file was made. */
export class Report {
  canAsk = false;

  constructor(content) {
    this.content = content;
  }

  async models() {
    return [this.content.model];
  }

  async tables() {
    return [this.content.table];
  }

  async moments() {
    return { moments: this.content.moments.map((moment) => moment.at) };
  }

  async explain(_model, _table, at) {
    return this.content.moments.find((moment) => moment.at === at).document;
  }

  async verify(_model, text) {
    const { verified, checks } = this.content.moments.find((moment) => moment.document === text);
    return { verified, checks, made: this.content.made };
  }
}

/** The report in this page, or else the service it came from. */
export function findSource() {
  const embedded = document.getElementById("report");
  return embedded ? new Report(JSON.parse(embedded.textContent)) : new Service();
}
