"use strict";
const $ = id => document.getElementById(id);
const BANDS = ["frequent", "medium", "rare", "very rare"];
const HINT = "Point at a token, tap it, or go from one to the next with the arrow keys.";
// Labels of slider positions that turn a setting off or make it greedy.
const SPECIAL = { top_k: { 0: "all" }, temperature: { 0: "greedy" }, top_p: { 1: "off" },
  class_temperature: { 0: "greedy" }, class_top_p: { 1: "off" } };
const SLIDERS = ["top_k", "temperature", "top_p", "class_temperature", "class_top_p"];
let models = [], columns = [], key = "", running = null;

// Text from outside is only ever inserted as text nodes, never parsed as markup.
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const percent = log => {
  const share = 100 * Math.exp(log);
  return share >= 0.01 ? share.toFixed(2) + " %" : share.toExponential(1) + " %";
};
const request = (path, body, signal) => fetch(path, {
  method: body ? "POST" : "GET", signal, body: body && JSON.stringify(body),
  headers: { ...(body && { "Content-Type": "application/json" }), ...(key && { Authorization: "Bearer " + key }) },
});

class Column {
  constructor(settings) {
    this.node = $("column").content.cloneNode(true).querySelector("section");
    this.find = selector => this.node.querySelector(selector);
    for (const model of models) this.find(".model").append(new Option(model.id, model.id));
    this.set(settings);
    this.node.addEventListener("input", () => this.show());
    for (const event of ["mouseover", "click"]) this.find(".text").addEventListener(event, happened => {
      if (happened.target.token) this.point(happened.target);
    });
    this.find(".text").addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const tokens = [...this.node.querySelectorAll(".token")];
      const next = tokens[tokens.findIndex(token => token.classList.contains("shown")) + step];
      if (next) { this.point(next); event.preventDefault(); }
    });
    this.find(".detail").replaceChildren(element("span", HINT, "faint"));
    $("columns").append(this.node);
    this.show();
  }
  get model() { return models.find(model => model.id === this.find(".model").value) || models[0]; }
  get factorised() { return this.model.f2.class_ends.length > 0; }
  get decoding() { return this.model.f2.decoding; }
  get tuned() { return this.decoding !== null && this.find(".is-tuned").checked; }
  get joint() { return this.factorised && this.find(".is-joint").checked; }
  slider(name) { return this.find(`[name=${name}]`); }
  get settings() {
    const all = { model: this.find(".model").value, joint: this.find(".is-joint").checked,
      tuned: this.find(".is-tuned").checked };
    for (const name of SLIDERS) all[name] = +this.slider(name).value;
    return all;
  }
  set(settings) {
    if (models.some(model => model.id === settings.model)) this.find(".model").value = settings.model;
    this.find(".is-joint").checked = settings.joint === true;
    this.find(".is-tuned").checked = settings.tuned !== false;
    for (const name of SLIDERS) if (Number.isFinite(settings[name])) this.slider(name).value = settings[name];
  }
  show() {
    for (const name of SLIDERS) {
      const slider = this.slider(name), value = +slider.value;
      slider.previousElementSibling.textContent = SPECIAL[name][value] ?? value;
    }
    this.find(".joint").hidden = !this.factorised || this.tuned;
    this.find(".tuned").hidden = this.decoding === null;
    this.find(".tuned output").textContent =
      Object.entries(this.decoding ?? {}).map(([name, value]) => `${name} ${value}`).join(", ");
    this.find("fieldset").disabled = this.tuned;
    for (const label of this.node.querySelectorAll(".class")) label.hidden = !this.factorised || this.joint;
  }
  get body() {
    const settings = this.settings;
    const body = { model: settings.model, prompt: $("prompt").value, seed: +$("seed").value,
      max_tokens: +$("length").value, stream: true, logprobs: 5 };
    if (this.tuned) return body;
    Object.assign(body, { decoding: "none", temperature: settings.temperature,
      top_k: Math.min(settings.top_k, this.model.f2.vocabulary), top_p: settings.top_p });
    if (this.joint) body.joint = true;
    else if (this.factorised) Object.assign(body,
      { class_temperature: settings.class_temperature, class_top_p: settings.class_top_p });
    return body;
  }
  async run(signal) {
    const text = this.find(".text");
    text.replaceChildren(element("span", $("prompt").value, "prompt"));
    this.find(".detail").replaceChildren(element("span", HINT, "faint"));
    this.counts = [0, 0, 0, 0];
    // Another model may be chosen while the text is read.
    this.writer = this.model;
    this.shares();
    try {
      const response = await request("/v1/completions", this.body, signal);
      if (!response.ok) throw new Error((await response.json()).error.message);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = "";;) {
        const { value, done } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const event of events) this.take(event.slice("data: ".length));
      }
    } catch (error) {
      if (error.name !== "AbortError") text.append(element("div", error.message, "error"));
    }
  }
  take(data) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.error) throw new Error(event.error.message);
    const choice = event.choices[0], { logprobs, f2 } = choice;
    const start = logprobs.text_offset[0], characters = Array.from(choice.text);
    if (!logprobs.tokens.length && choice.text) this.find(".text").append(choice.text);
    logprobs.tokens.forEach((name, index) => {
      const to = index + 1 < logprobs.tokens.length ? logprobs.text_offset[index + 1] - start : characters.length;
      const shown = characters.slice(logprobs.text_offset[index] - start, to).join("");
      const band = f2.bands[index], token = element("span", shown, "token b" + (band ?? 0));
      token.token = { name, band, log: logprobs.token_logprobs[index], top: logprobs.top_logprobs[index],
        class: f2.classes[index], classLog: f2.class_logprobs[index], id: f2.ids[index] };
      this.find(".text").append(token);
      if (band !== null) this.counts[band] += 1;
    });
    this.shares();
  }
  point(node) {
    for (const other of this.node.querySelectorAll(".shown")) other.classList.remove("shown");
    node.classList.add("shown");
    const token = node.token, list = element("dl"), table = element("table");
    const say = (name, ...values) => {
      const pair = element("div"), value = element("dd");
      value.append(...values);
      pair.append(element("dt", name), value);
      list.append(pair);
    };
    say("token", element("code", JSON.stringify(token.name)));
    say("probability", percent(token.log));
    if (token.class !== null) {
      say("class", `${token.class} of ${this.writer.f2.class_ends.length}`);
      say("its probability", percent(token.classLog));
    }
    say("frequency rank", `${token.id}`);
    if (token.band !== null) say("band", element("span", BANDS[token.band], "b" + token.band));
    for (const [name, log] of Object.entries(token.top).sort((left, right) => right[1] - left[1])) {
      const row = table.insertRow(), bar = element("div", undefined, "bars"), part = element("i");
      if (name === token.name) row.className = "chosen";
      part.style.width = 100 * Math.exp(log) + "%";
      bar.append(part);
      row.insertCell().append(element("code", JSON.stringify(name)));
      row.insertCell().textContent = percent(log);
      row.insertCell().append(bar);
    }
    this.find(".detail").replaceChildren(list, table);
  }
  shares() {
    const total = this.counts.reduce((sum, count) => sum + count, 0), human = this.writer.f2.human_shares;
    if (!human) return this.find(".shares").replaceChildren();
    const table = element("table"), head = table.insertRow();
    head.append(element("th"), ...BANDS.map((name, band) => element("th", name, "b" + band)));
    const add = (name, shares) => {
      const row = table.insertRow(), cell = table.insertRow().insertCell(), bar = element("div", undefined, "bars");
      row.append(element("th", name));
      cell.colSpan = 1 + BANDS.length;
      cell.className = "bar";
      cell.append(bar);
      shares.forEach((share, band) => {
        row.insertCell().textContent = share === null ? "–" : (100 * share).toFixed(1) + " %";
        const part = element("i", undefined, "b" + band);
        part.style.width = 100 * (share ?? 0) + "%";
        bar.append(part);
      });
    };
    add("this text", this.counts.map(count => total ? count / total : null));
    add("human text", human);
    this.find(".shares").replaceChildren(table);
  }
}

const state = () => ({ prompt: $("prompt").value, seed: +$("seed").value, length: +$("length").value,
  columns: columns.map(column => column.settings) });
function arrange(count) {
  while (columns.length > count) columns.pop().node.remove();
  while (columns.length < count) {
    const other = models[columns.length % models.length];
    columns.push(new Column({ ...(columns[0] && columns[0].settings), model: other.id }));
  }
  $("columns").classList.toggle("two", count > 1);
  $("compare").checked = count > 1;
}
function restore() {
  let given = {};
  try { given = JSON.parse(decodeURIComponent(location.hash.slice(1))) ?? {}; } catch { /* no settings, or broken ones */ }
  if (typeof given.prompt === "string") $("prompt").value = given.prompt;
  if (Number.isSafeInteger(given.seed)) $("seed").value = given.seed;
  if (Number.isSafeInteger(given.length)) $("length").value = given.length;
  const settings = Array.isArray(given.columns) ? given.columns.slice(0, 2) : [];
  arrange(Math.max(1, settings.length));
  settings.forEach((one, index) => { columns[index].set(one || {}); columns[index].show(); });
}
async function begin() {
  const trouble = words => { $("trouble").textContent = words; $("trouble").hidden = !words; };
  try {
    const response = await request("/v1/models"), answer = await response.json();
    $("key").hidden = response.status !== 401;
    trouble(response.ok || (response.status === 401 && !key) ? "" : answer.error.message);
    if (!response.ok) return;
    models = answer.data;
  } catch { return trouble("The server does not answer; load the page again when it does."); }
  restore();
}
$("go").onclick = async () => {
  if (!models.length || running) return;
  running = new AbortController();
  $("go").disabled = true; $("stop").disabled = false;
  history.replaceState(null, "", "#" + encodeURIComponent(JSON.stringify(state())));
  await Promise.all(columns.map(column => column.run(running.signal)));
  running = null;
  $("go").disabled = false; $("stop").disabled = true;
};
$("stop").onclick = () => running && running.abort();
$("compare").onchange = () => arrange($("compare").checked ? 2 : 1);
$("key-use").onclick = () => { key = $("key-text").value.trim(); begin(); };
$("prompt").onkeydown = event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("go").click(); };
$("link").onclick = async () => {
  history.replaceState(null, "", "#" + encodeURIComponent(JSON.stringify(state())));
  let said = "The address bar has it";
  try { await navigator.clipboard.writeText(location.href); said = "Copied"; } catch { /* not allowed */ }
  $("link").textContent = said;
  setTimeout(() => { $("link").textContent = "Copy link"; }, 2000);
};
begin();
