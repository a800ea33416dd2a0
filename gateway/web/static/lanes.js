// The lanes page: what runs where, live, and what can be done about it.
import { ask, busy, events, lasting, make, note, when } from "./page.js";

const page = document.getElementById("page");
const at = (id) => document.getElementById(id);
const me = new Set(page.dataset.me.split(" "));
const admin = page.dataset.admin === "true", starter = page.dataset.starter === "true";
const MOST = 200;
const lanes = new Map(), rows = new Map(), open = new Map(), found = new Map();
let house = {}, begun = false, searched = "";

const STATES = {
  idle: ["idle", ""], starting: ["starting", "good"], running: ["running", "good"], asking: ["asks", "warn"],
  settling: ["finishing", "good"], waiting: ["waiting", "warn"], paused: ["paused", "warn"],
};
const ENDS = { done: ["answered", ""], failed: ["failed", "bad"], stopped: ["stopped", ""], interrupted: ["cut off", "bad"], dropped: ["dropped", ""] };
const SENT = { uncertain: ["perhaps not delivered", "bad"], failed: ["not delivered", "bad"], pending: ["being sent", "warn"] };
const NAMES = { telegram: "Telegram", slack: "Slack", discord: "Discord" };
const HOLDS = { lane: "paused here", engine: "its engine is paused", all: "everything is paused", "person spent": "the day's budget of its sender is spent", "all spent": "the day's budget is spent" };

const url = (lane, what) => `/api/lanes/${encodeURIComponent(lane)}/${what}`;
const isBusy = (one) => one.turn !== null || one.waiting.length > 0 || one.sides.length > 0 || one.asking.length > 0;

/** A button that does something at once and says what came of it. */
function button(label, key, work, kind = "") {
  return make("button", { type: "button", class: `small ${kind}`, "data-key": key, onclick: (event) => busy(event.currentTarget, async () => {
    const answer = await work();
    if (answer?.said) note(answer.said);
  }) }, label);
}

function tag([words, kind], extra = "") { return make("span", { class: `tag ${kind} ${extra}` }, words); }
function since(iso, before = "") { return make("time", { datetime: iso, "data-since": iso, "data-before": before }, `${before}${lasting(iso)}`); }

// One lane -----------------------------------------------------------------------------------

function drawLane(one) {
  const expanded = open.has(one.lane);
  const state = STATES[one.state] ?? [one.state, ""];
  const live = one.turn !== null && one.state !== "asking";
  const facts = [one.local ? "local" : one.channel, one.turn !== null || one.waiting.length ? one.name : one.owner_name, [one.engine, one.model].filter(Boolean).join(" ")];
  const head = make("button", { type: "button", class: "lane-head", "aria-expanded": String(expanded), "data-key": `${one.lane} head`, onclick: () => toggle(one.lane) },
    make("span", { class: "lane-title" }, one.named ? one.title : one.label || one.title),
    make("span", { class: "badges" }, one.since ? since(one.since) : null,
      one.waiting.length && one.turn !== null ? tag([`${one.waiting.length} waiting`, "warn"]) : null,
      one.away ? tag(["not set up", "warn"]) : null,
      make("span", { class: `tag ${state[1]} ${live ? "live" : ""}` }, state[0])),
    make("span", { class: "facts soft" }, facts.filter(Boolean).join(" · ")),
    one.turn !== null && (one.named ? one.label : one.doing) ? make("span", { class: "doing soft" }, one.doing ? `${one.doing}${one.named ? ` (for “${one.label}”)` : ""}` : `“${one.label}”`) : null,
    one.turn === null && one.last ? last(one.last) : null);
  return make("div", { class: "lane card" }, head, expanded ? details(one) : null);
}

function last({ status, delivery, ended }) {
  const end = ENDS[status] ?? [status, ""];
  return make("span", { class: "last soft" }, "last: ", make("span", { class: end[1] ? "bad-text" : "" }, end[0]),
    SENT[delivery] ? make("span", { class: "bad-text" }, `, ${SENT[delivery][0]}`) : null, ended ? `, ${when(ended)}` : "");
}

function details(one) {
  const key = (what) => `${one.lane} ${what}`;
  const parts = [];
  if (one.away) parts.push(make("p", { class: "notice" }, `${NAMES[one.channel] ?? one.channel} is not set up: nothing is heard or said here. What is left goes on when it is set up again${admin ? ", under Settings" : ""}.`));
  if (one.paused.length) parts.push(make("p", { class: "notice" }, `Nothing new starts: ${one.paused.map((hold) => HOLDS[hold] ?? hold).join(", ")}.`));
  if (one.turn !== null) {
    parts.push(make("div", { class: "row part" },
      make("div", { class: "grow" }, make("b", {}, one.label || "a turn"), make("span", { class: "soft" }, ` of ${one.name}`), one.since ? since(one.since, " · ") : null, one.doing ? make("div", { class: "soft" }, one.doing) : null),
      make("div", { class: "row" },
        button("Skip", key("skip"), () => ask(url(one.lane, "skip"), { turn: one.turn })),
        button("Stop", key("stop"), () => ask(url(one.lane, "stop"), {}), "danger"))));
  }
  for (const side of one.sides) parts.push(make("div", { class: "row part" }, make("div", { class: "grow" }, make("b", {}, side.label || "a question"), make("span", { class: "soft" }, ` of ${side.name}, on the side`), since(side.since, " · ")), button("Stop", key(`side ${side.turn}`), () => ask(url(one.lane, "stop"), { turn: side.turn }), "danger")));
  if (one.waiting.length) {
    const line = one.place ? ` Place ${one.place} in the line of lanes.` : "";
    parts.push(make("h3", {}, "Waiting"), make("ol", { class: "waits" }, ...one.waiting.map((turn) => make("li", {}, make("div", { class: "row" },
      make("div", { class: "grow" }, make("b", {}, turn.label || "a message"), make("span", { class: "soft" }, ` of ${turn.name}${turn.job ? ", by a job" : ""}`), since(turn.since, " · ")),
      admin || me.has(turn.key) ? button("Drop", key(`drop ${turn.turn}`), () => ask(url(one.lane, "drop"), { turn: turn.turn }), "danger") : null)))));
    if (line) parts.push(make("p", { class: "soft" }, line.trim()));
  }
  for (const question of one.asking) parts.push(make("div", { class: "row part" },  // it stands at the top, once
    make("div", { class: "grow" }, "Its agent asks for a decision."),
    make("button", { type: "button", class: "small", "data-key": key(`show ${question.id}`), onclick: () => showQuestion(question) }, "Show it")));
  const turns = open.get(one.lane);
  parts.push(make("h3", {}, "Turns"), turns ? drawTurns(turns) : make("p", { class: "soft" }, "Loading…"));
  const tools = [];
  if (one.local) tools.push(make("a", { class: "button small", href: `/chat/${encodeURIComponent(one.lane)}`, "data-key": key("chat") }, "Open the thread"));
  if (admin) tools.push(one.paused.includes("lane") ? button("Resume", key("pause"), () => ask(url(one.lane, "resume"), {})) : button("Pause", key("pause"), () => ask(url(one.lane, "pause"), {})));
  parts.push(make("div", { class: "row part" }, make("code", { class: "grow id" }, one.lane), ...tools));
  return make("div", { class: "details" }, ...parts);
}

function drawTurns(turns) {
  if (!turns.length) return make("p", { class: "soft" }, "Nothing was asked here yet.");
  return make("div", { class: "scroll" }, make("table", { class: "cards" },
    make("thead", {}, make("tr", {}, ...["Asked", "By", "How it went", "Delivery", "When"].map((word) => make("th", { scope: "col" }, word)))),
    make("tbody", {}, ...turns.map((turn) => {
      const end = ENDS[turn.status] ?? [turn.status, turn.status === "running" ? "good" : "warn"];
      const sent = SENT[turn.delivery] ?? [turn.delivery === "sent" ? "sent" : turn.delivery, ""];
      const over = turn.ended_at !== null;
      return make("tr", {}, make("td", { "data-label": "Asked" }, make("span", { class: "asked" }, turn.text || turn.origin), turn.error ? make("span", { class: "wrong" }, turn.error) : null),
        make("td", { "data-label": "By" }, me.has(turn.key) ? "You" : turn.name),
        make("td", { "data-label": "How it went" }, tag(end)),
        make("td", { "data-label": "Delivery" }, over ? tag(sent) : "–"),
        make("td", { "data-label": "When" }, when(turn.received_at)));
    }))));
}

async function toggle(lane) {
  if (open.has(lane)) { open.delete(lane); draw(lane); return; }
  open.set(lane, null);
  draw(lane);
  await loadTurns(lane);
}

async function loadTurns(lane) {
  try {
    const { turns } = await ask(url(lane, "turns"));
    if (open.has(lane)) { open.set(lane, turns); draw(lane); }
  } catch (fault) { note(fault.message, true); }
}

// Questions of agents ------------------------------------------------------------------------

function showQuestion(question) {
  const shown = at("questions").querySelector(`[data-question="${question.id}"]`);
  shown?.scrollIntoView({ block: "center" });
  shown?.focus({ preventScroll: true });
}

function drawQuestion(one, question) {
  const may = admin || (starter && me.has(one.key));
  const decide = (choice) => async () => {
    const answer = await ask(`/api/approvals/${question.id}`, { choice });
    return answer;
  };
  const key = (what) => `question ${question.id} ${what}`;
  const command = make("code", {}, question.command + (question.whole ? "" : "…"));
  const whole = question.whole ? null : button("Show all of it", key("whole"), async () => { command.textContent = (await ask(`/api/approvals/${question.id}`)).command; });
  return make("div", { class: "question", tabindex: "-1", "data-question": question.id, "data-key": key("whole box") },
    make("p", {}, make("b", {}, one.named ? one.title : one.label || one.title), make("span", { class: "soft" }, ` · ${one.name} · `), since(question.asked ?? one.since ?? new Date().toISOString(), "for "), question.tool && question.tool !== question.command ? make("span", { class: "soft" }, ` · ${question.tool}`) : null),
    make("pre", { tabindex: "0" }, command),
    make("div", { class: "row" }, ...(may ? [
      button("Allow", key("allow"), decide("allow"), "main"),
      admin ? button("Always here", key("always"), decide("always")) : null,
      button("Deny", key("deny"), decide("deny"), "danger")] : [make("span", { class: "soft" }, "An admin decides this.")]).filter(Boolean), whole ?? ""));
}

// The list -----------------------------------------------------------------------------------

function draw(lane) {
  const one = lanes.get(lane) ?? found.get(lane), row = rows.get(lane);
  if (!one || !row) { drawAll(); return; }
  keepFocus(() => row.replaceChildren(drawLane(one)));
}

function keepFocus(work) {
  const key = document.activeElement?.dataset?.key;
  work();
  if (key && document.activeElement?.dataset?.key !== key) page.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function matches(one) {
  if (at("busy").checked && !isBusy(one)) return false;
  const words = at("filter").value.trim().toLowerCase();
  const text = [one.title, one.lane, one.name, one.owner_name, one.state, one.label].join(" ").toLowerCase();
  return words.split(/\s+/).every((word) => text.includes(word)) || found.has(one.lane);
}

function drawAll() {
  const all = new Map([...(searched ? found : []), ...lanes]);
  const shown = [...all.values()].filter(matches).sort((a, b) => isBusy(b) - isBusy(a) || b.at - a.at).slice(0, MOST);
  keepFocus(() => {
    const items = shown.map((one) => {
      const row = rows.get(one.lane) ?? make("li", {});
      rows.set(one.lane, row);
      if (row.dataset.shown !== JSON.stringify(one)) { row.replaceChildren(drawLane(one)); row.dataset.shown = JSON.stringify(one); }
      return row;
    });
    const list = at("lanes");
    if (items.length !== list.children.length || items.some((item, nth) => list.children[nth] !== item)) list.replaceChildren(...items);
    const asked = [...lanes.values()].filter((one) => one.asking.length);
    at("asked").hidden = !asked.length;
    const questions = asked.flatMap((one) => one.asking.map((question) => [one, question]));
    const state = JSON.stringify(questions);
    if (at("questions").dataset.shown !== state) {
      at("questions").dataset.shown = state;
      const number = questions.length;  // what changes all the time is not read out, a question is
      at("told").textContent = number ? `${number} ${number === 1 ? "question" : "questions"} of agents` : "";
      at("questions").replaceChildren(...questions.map(([one, question]) => drawQuestion(one, question)));
    }
  });
  const running = [...lanes.values()].filter((one) => one.turn !== null).length, waiting = [...lanes.values()].reduce((sum, one) => sum + one.waiting.length, 0);
  at("count").textContent = begun ? `${running} running, ${waiting} waiting` : "";
  at("none").hidden = !begun || shown.length > 0;
  at("none").textContent = lanes.size ? "Nothing matches. Lanes beyond the newest are found by their title or id." : "No lanes yet. A lane begins with a message: in the chat here, or on a connected platform.";
  at("house").hidden = !house.paused && !house.draining;
  at("house").textContent = house.draining ? "The gateway is shutting down; what waits runs after the restart." : "Everything is paused: nothing new starts anywhere, and messages are kept.";
  if (at("all")) { at("all").hidden = !begun; at("all").textContent = house.paused ? "Resume all" : "Pause all"; }
}

function take(shown) {
  for (const one of shown) {
    const before = lanes.get(one.lane);
    lanes.set(one.lane, one);
    found.delete(one.lane);
    if (open.has(one.lane) && (before?.turn !== one.turn || before?.last?.turn !== one.last?.turn || before?.last?.delivery !== one.last?.delivery || before?.waiting.length !== one.waiting.length)) loadTurns(one.lane);
  }
  if (lanes.size <= 2 * MOST) return;
  const old = [...lanes.values()].filter((one) => !isBusy(one) && !open.has(one.lane)).sort((a, b) => a.at - b.at);
  for (const one of old.slice(0, lanes.size - MOST)) { lanes.delete(one.lane); rows.delete(one.lane); }
}

function tick() {
  for (const one of page.querySelectorAll("[data-since]")) one.textContent = `${one.dataset.before}${lasting(one.dataset.since)}`;
}
setInterval(tick, 1000);

let close = null, hidden = null, waits = null;
function listen() {
  close ??= events("/api/events", {
    state(all) { lanes.clear(); house = all.house; begun = true; take(all.lanes); for (const lane of open.keys()) loadTurns(lane); drawAll(); },
    changes(some) {
      if (some.house) house = some.house;
      for (const gone of some.gone ?? []) { lanes.delete(gone); rows.delete(gone); open.delete(gone); }
      take(some.lanes);
      drawAll();
    },
  }, (down) => { at("offline").hidden = !down; });
}
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.visibilityState === "hidden") hidden = setTimeout(() => { close?.(); close = null; }, 20000);
  else listen();
});
addEventListener("pagehide", () => { close?.(); close = null; });
addEventListener("pageshow", listen);

async function search() {
  const words = at("filter").value.trim();
  searched = words;
  found.clear();
  drawAll();
  if (words.length < 2) return;
  try {
    const answer = await ask(`/api/lanes?q=${encodeURIComponent(words)}`);
    if (searched !== words) return;
    for (const one of answer.lanes) if (!lanes.has(one.lane)) found.set(one.lane, one);
    drawAll();
  } catch (fault) { note(fault.message, true); }
}
at("filter").addEventListener("input", () => { clearTimeout(waits); waits = setTimeout(search, 200); });
at("busy").addEventListener("change", drawAll);
at("all")?.addEventListener("click", (event) => busy(event.currentTarget, async () => note((await ask(house.paused ? "/api/resume" : "/api/pause", {})).said)));
listen();
