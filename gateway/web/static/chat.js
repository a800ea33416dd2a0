// The chat page: one thread, live, and the list of threads.
import { ask, busy, events, lasting, make, note } from "./page.js";
import { Composer } from "./composer.js";
import { Log } from "./log.js";

const page = document.getElementById("chat");
const at = (id) => document.getElementById(id);
const me = new Set(JSON.parse(page.dataset.me)), owners = new Set(JSON.parse(page.dataset.owners));
const lane = page.dataset.lane;
const speaks = page.dataset.speaks === "true";
const asked = new URLSearchParams(location.search);
const lanes = new Map();
let opened = page.dataset.opened === "true", here = null, house = {}, begun = false;

if (asked.has("new")) page.classList.add("opened");

// What was read ------------------------------------------------------------------------------

const SEEN = "laneway.seen";
const seen = () => { try { return JSON.parse(localStorage.getItem(SEEN)) ?? {}; } catch { return {}; } };
function read() {
  if (!here || document.visibilityState === "hidden") return;
  const all = seen();
  if (all[lane] === here.at) return;
  all[lane] = here.at;
  try { localStorage.setItem(SEEN, JSON.stringify(all)); } catch { /* full: dots stay */ }
}

// The thread ---------------------------------------------------------------------------------

const log = new Log({
  list: at("entries"), box: at("log"), newest: at("newest"), earlier: at("earlier"), me,
  place: (turn) => (here?.waiting ?? []).findIndex((one) => one.turn === turn) + 1,
  press: (button, entry) => ask("/api/press", { lane, button: button.id, message_id: entry.id }).then((answer) => answer.said && note(answer.said)),
  before: (instant) => ask(`/api/lanes/${encodeURIComponent(lane)}/history?before=${instant}`),
});

const composer = speaks ? new Composer({
  lane, log, commands: JSON.parse(page.dataset.commands), name: page.dataset.name,
  key: [...me][0], opened, began: openIt, stop,
}) : null;

function openIt() {
  if (opened) return;
  opened = true;
  page.classList.add("opened");
  history.replaceState(null, "", `/chat/${encodeURIComponent(lane)}`);
}

const WORKING = { starting: "Starting", running: "Working", asking: "Waiting for a decision", settling: "Finishing" };

function showState() {
  const title = here && (here.named || here.label) ? (here.named ? here.title : here.label) : (here?.title ?? "New thread");
  at("title").textContent = title;
  document.title = `${title} · Laneway`;
  const runs = Boolean(here && WORKING[here.state]);
  at("stop").hidden = !(runs || here?.sides.length || here?.waiting.length);
  at("working").hidden = !runs;
  const paused = house.paused ? "everything is paused" : house.draining ? "restarting" : here?.state === "paused" ? "paused" : "";
  at("state").hidden = !paused;
  at("state").textContent = paused;
  at("state").classList.toggle("warn", Boolean(paused));
  at("hello").hidden = Boolean(!begun || log.size || runs);
  tick();
  read();
}

function tick() {
  if (at("working").hidden || !here) return;
  const what = here.state === "running" && here.doing ? here.doing : WORKING[here.state];
  at("doing").textContent = `${what}${here.since ? ` · ${lasting(here.since)}` : ""}`;
}
setInterval(tick, 1000);

async function stop() {
  const answer = await ask(`/api/lanes/${encodeURIComponent(lane)}/stop`, {});
  if (answer.said) note(answer.said);
}
at("stop").addEventListener("click", (event) => busy(event.currentTarget, stop));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && !event.isComposing && !at("stop").hidden) busy(at("stop"), stop);
  // With Alt a Mac makes another sign of a letter; then its place on the keyboard says which it is.
  const letter = /^[a-z]$/i.test(event.key) ? event.key.toLowerCase() : event.code.replace("Key", "").toLowerCase();
  if (event.altKey && letter === "n") { event.preventDefault(); location.assign("/chat?new"); }
});

// The list of threads ------------------------------------------------------------------------

function mine(one) { return one.local && owners.has(one.owner); }

function drawThreads() {
  const known = seen(), list = at("threads");
  const shown = [...lanes.values()].filter(mine).sort((a, b) => b.at - a.at).slice(0, 200);
  const items = shown.map((one) => {
    const unread = one.lane !== lane && one.last && one.at > (known[one.lane] ?? 0);
    const works = one.asking.length ? "asks" : WORKING[one.state] ? "works" : one.waiting.length ? "waits" : "";
    const title = one.named ? one.title : one.label || one.title;
    const theirs = me.has(one.owner) ? null : make("small", {}, one.owner_name);
    return make("li", {}, make("a", { href: `/chat/${encodeURIComponent(one.lane)}`, "aria-current": one.lane === lane ? "page" : null, class: unread ? "unread" : null },
      make("span", { class: "thread-title" }, title),
      theirs,
      works ? make("span", { class: works === "works" ? "live" : "tag warn" }, works) : null,
      unread ? make("span", { class: "dot" }, make("span", { class: "sr" }, "unread")) : null));
  });
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  list.replaceChildren(...items);
  if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  at("no-threads").hidden = items.length > 0;
}

function take(shown) {
  for (const one of shown) {
    lanes.set(one.lane, one);
    if (one.lane !== lane) continue;
    const asks = one.asking.length > (here?.asking.length ?? 0);
    if (here && (asks || (WORKING[here.state] && !WORKING[one.state]))) announce();
    here = one;
    if (!opened) openIt();
  }
}

function announce() {
  const words = log.lastWords();
  if (words) at("said").textContent = words;
}

// Live ---------------------------------------------------------------------------------------

let close = null, hidden = null;

function listen() {
  close ??= events(`/api/events?lane=${encodeURIComponent(lane)}`, {
    state(all) {
      here = null;
      lanes.clear();
      house = all.house;
      begun = true;
      take(all.lanes);
      log.whole(all.entries ?? [], all.more);
      composer?.there();
      changed();
    },
    changes(some) {
      if (some.house) house = some.house;
      for (const gone of some.gone ?? []) lanes.delete(gone);
      take(some.lanes);
      log.change(some.entries ?? [], some.removed ?? []);
      changed();
    },
  }, (down) => {
    at("offline").hidden = !down;
    if (!down) composer?.flush();
  });
}

function changed() {
  log.receipts();
  showState();
  drawThreads();
}

// A browser has few connections for each address, so tabs that nobody sees hold none.
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.visibilityState === "hidden") {
    hidden = setTimeout(() => { close?.(); close = null; }, 20000);
  } else {
    listen();
    read();
    drawThreads();
  }
});
addEventListener("storage", (event) => { if (event.key === SEEN) drawThreads(); });
addEventListener("pagehide", () => { close?.(); close = null; });
addEventListener("pageshow", listen);

async function known() {
  const answer = await ask("/api/threads");
  for (const one of answer.lanes) if (!lanes.has(one.lane)) lanes.set(one.lane, one);
  drawThreads();
  // On a phone the list hides where to write: who has nothing in it begins at once.
  if (!asked.has("list") && ![...lanes.values()].some(mine)) page.classList.add("opened");
}

listen();
known().catch((fault) => note(fault.message, true));
