// The settings page: rows of the table, what of them is changed, saving and testing.
// A changed value is a text, or null for what counts without it; no secret ever comes from the gateway.

import { ask, busy, make, note, when } from "./page.js";

const form = document.getElementById("all");
const rows = new Map();  // by name: {setting, edited, element, show}
const TESTS = {
  Telegram: [["telegram", "Test now"]],
  Slack: [["slack", "Test now"]],
  Discord: [["discord", "Test now"]],
  "Voice notes": [["transcription", "Test now"]],
  "Web page, sign-in and mail": [["mail", "Test the mail server"], ["letter", "Send me a test mail"]],
};
const CHANNELS = { Telegram: "telegram", Slack: "slack", Discord: "discord" };
const LIKE = { number: "numeric", money: "decimal" };
let looking;

function show(all) {
  const focused = document.activeElement?.id, at = scrollY;
  rows.clear();
  form.replaceChildren(...all.groups.map((group, number) => section(group, number, all.tests)));
  document.getElementById("groups").replaceChildren(...all.groups.map((group, number) =>
    make("li", {}, make("a", { href: `#group-${number}` }, group.name.replace(/ \(.*/, "")))));
  problems(all.problems);
  connections(all.connections);
  search();
  pending();
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  scrollTo({ top: at, behavior: "instant" });
}

/** How the platforms are connected, looked at again while one is on its way. */
function connections(found, tries = 15) {
  clearTimeout(looking);
  for (const place of form.querySelectorAll(".connection")) {
    const reason = found[place.dataset.channel];
    place.hidden = reason === undefined;
    place.className = `connection tag ${reason ? reason === "connecting" ? "warn" : "bad" : "good"}`;
    place.textContent = reason || "connected";
  }
  if (!tries || !Object.values(found).some(Boolean)) return;
  looking = setTimeout(() => ask("/api/settings/connections").then((now) => connections(now, tries - 1), () => {}), 2000);
}

function problems(found) {
  const place = document.getElementById("problems");
  place.replaceChildren();
  if (!found.length) return;
  place.append(make("strong", {}, "Saved settings that do not count now"),
    make("ul", {}, ...found.map((one) => make("li", {}, one))));
}

function section(group, number, tests) {
  const results = make("div", { class: "results", role: "status" });
  const wanted = group.name === "Engines" ? tests.engines.map((one) => [one, `Test ${one}`]) : TESTS[group.name] ?? [];
  const buttons = wanted.map(([what, words]) =>
    make("button", { type: "button", class: "small", onclick: (event) => test(event.target, what, group, results) }, words));
  return make("section", { class: "card group", id: `group-${number}`, "aria-labelledby": `group-${number}-name` },
    make("div", { class: "row head" }, make("h2", { class: "grow", id: `group-${number}-name` }, group.name),
      CHANNELS[group.name] ? make("span", { class: "connection tag", role: "status", "data-channel": CHANNELS[group.name], hidden: true }) : null, ...buttons),
    results, ...group.settings.map(row));
}

function row(setting) {
  const id = setting.name.toLowerCase();
  const state = { setting, based: setting.revision, edited: undefined, element: null };
  const edit = make("div", { class: "edit" });
  const told = make("p", { class: "wrong", id: `${id}-wrong`, hidden: true });
  const clash = make("div", { class: "clash", role: "alert", hidden: true });
  const tag = make("span", { class: `tag ${setting.problem ? "bad" : setting.set ? "good" : ""}` }, source(setting));
  const name = setting.fixed
    ? make("span", { class: "called" }, setting.label) : make("label", { for: id }, setting.label);
  state.element = make("div", { class: "setting", id: `row-${id}` },
    make("div", { class: "about" }, make("div", { class: "row" }, name, tag),
      make("p", { id: `${id}-meaning` }, meaning(setting)),
      make("small", {}, setting.fixed || setting.applies === "at once" ? setting.name : `${setting.name} · ${later(setting)}`)),
    make("div", {}, edit, told, setting.advice ? make("p", { class: "advice" }, setting.advice) : null, clash));
  state.told = told;
  state.clash = clash;
  state.edit = edit;
  state.draw = () => edit.replaceChildren(...editor(state, id).filter(Boolean));
  rows.set(setting.name, state);
  state.draw();
  if (setting.problem) wrong(state, setting.problem);
  return state.element;
}

/** Lists have one entry a line here, whatever they have in a file. */
const meaning = (setting) => sentence(setting.kind === "list" ? setting.meaning.replace(/^comma-separated[,;] /, "") : setting.meaning);
const later = (setting) => `takes effect ${setting.applies}`;
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

function source(setting) {
  if (setting.problem) return "saved, but does not count";
  if (setting.source === "saved here") return `saved by ${setting.by}, ${when(setting.at)}`;
  if (setting.source === "added up") return `from ${setting.given.source}, and saved here`;
  if (setting.source !== "the default") return `from ${setting.source}`;
  return setting.default ? "default" : "not set";
}

/** What is in the editor differs from what is saved: undefined when it does not. */
function change(state, value) {
  const { setting } = state;
  const same = setting.kind !== "secret" && (value ?? null) === setting.value && !setting.problem;
  state.edited = same ? undefined : value ?? null;
  state.element.classList.toggle("changed", state.edited !== undefined);
  wrong(state, state.edited === undefined ? setting.problem : "");
  pending();
}

function forget(state) {
  state.edited = undefined;
  state.element.classList.remove("changed");
  state.clash.hidden = true;
  wrong(state, state.setting.problem);
  state.draw();
}

function wrong(state, words) {
  state.told.hidden = !words;
  state.told.textContent = words ? sentence(words.replace(/^has /, "there is ")) : "";
  state.element.classList.toggle("bad", Boolean(words));
  const field = state.edit.querySelector("input, select, textarea");
  field?.setAttribute("aria-invalid", words ? "true" : "false");
}

function editor(state, id) {
  const { setting } = state;
  if (setting.fixed) return fixed(state);
  const described = { id, "aria-describedby": `${id}-meaning ${id}-wrong`, name: id, autocomplete: "off" };
  const now = state.edited === undefined ? setting.value : state.edited;
  const back = setting.set && state.edited !== null && setting.kind !== "secret"
    ? links(link("Use the default", () => { change(state, null); state.draw(); })) : null;
  switch (setting.kind) {
    case "secret": return secret(state, described);
    case "on_off": {
      const box = make("input", { ...described, type: "checkbox", role: "switch" });
      box.checked = (now ?? setting.default) === "on";
      const words = make("span", {}, box.checked ? "On" : "Off");
      box.addEventListener("change", () => {
        words.textContent = box.checked ? "On" : "Off";
        change(state, plain(setting, box.checked ? "on" : "off"));
      });
      return [make("span", { class: "switch" }, box, words), back];
    }
    case "choice": {
      const list = make("select", described, ...setting.choices.map((one) =>
        make("option", { value: one }, one === setting.default ? `${one || "none"} (default)` : one)));
      list.value = now ?? setting.default;
      list.addEventListener("change", () => change(state, plain(setting, list.value)));
      return [list, back];
    }
    case "list": {
      const text = make("textarea", { ...described, rows: Math.min(8, Math.max(2, (now ?? "").split(",").length + 1)), placeholder: "one a line", spellcheck: "false" });
      text.value = (now ?? "").split(",").map((one) => one.trim()).filter(Boolean).join("\n");
      text.addEventListener("input", () => change(state,
        text.value.split(/[\n,]/).map((one) => one.trim()).filter(Boolean).join(",") || null));
      return [setting.given ? named(setting.given) : null, text];
    }
    default: {
      const line = make("input", { ...described, type: "text", inputmode: LIKE[setting.kind] ?? "text", spellcheck: "false",
        placeholder: setting.default || example(setting), list: setting.kind === "zone" ? "zones" : null });
      line.value = now ?? "";
      line.addEventListener("input", () => change(state, line.value.trim() || null));
      return [line, back];
    }
  }
}

const EXAMPLES = { duration: "like 90s, 15m, 6h or 2d", money: "like 1.50", zone: "like Europe/Berlin" };
const example = (setting) => EXAMPLES[setting.kind] ?? "";

/** Choosing the default is the same as having nothing saved, unless something is. */
function plain(setting, value) {
  return value === setting.default && (!setting.set || setting.value !== value) ? null : value;
}

function named(given) {
  if (!given.entries.length) return null;
  return make("div", {}, make("ul", { class: "entries" }, ...given.entries.map((one) => make("li", {}, make("code", {}, one)))),
    make("span", { class: "hint" }, `These come from ${given.source} and are changed there. What is entered below is added.`));
}

function fixed(state) {
  const { setting } = state, { given } = setting;
  const value = given?.secret && given.set ? "set, not shown" : given ? given.value : setting.default;
  const words = given ? `Set in ${given.source}; it is changed there, in ${setting.name}, before the next start.`
    : `Only set by ${setting.name} in the environment or in .env, before the next start.`;
  const unused = setting.set && state.edited === undefined
    ? links(make("span", { class: "hint" }, "A value that was saved here does not count."),
        link("Remove it", () => { change(state, null); state.draw(); })) : null;
  const gone = state.edited === null ? links(make("span", { class: "hint" }, "What was saved is removed."),
    link("Keep it", () => { forget(state); pending(); })) : null;
  return [make("p", { class: "fixed" }, value ? make("code", {}, value) : make("span", { class: "soft" }, "empty")),
    make("span", { class: "hint" }, words), unused, gone];
}

function secret(state, described) {
  const { setting } = state;
  if (state.edited === null) {
    return [make("p", { class: "fixed" }, "It is removed when you save."), links(link("Keep it", () => { forget(state); pending(); }))];
  }
  if (setting.set && state.edited === undefined && !state.replacing) {
    return [make("p", { class: "fixed" }, setting.problem ? "Entered " : "Set; entered ", `by ${setting.by}, ${when(setting.at)}`),
      links(link("Replace", () => { state.replacing = true; state.draw(); state.edit.querySelector("input").focus(); }),
        link("Remove", () => { change(state, null); state.draw(); }))];
  }
  const line = make("input", { ...described, type: "password", autocomplete: "new-password", spellcheck: "false",
    placeholder: setting.set ? "enter the new one" : "not set" });
  line.value = state.edited ?? "";
  line.addEventListener("input", () => {
    const typed = line.value.trim();
    state.edited = typed || undefined;
    state.element.classList.toggle("changed", Boolean(typed));
    wrong(state, typed ? "" : setting.problem);
    pending();
  });
  const see = link("Show", () => {
    line.type = line.type === "password" ? "text" : "password";
    see.textContent = line.type === "password" ? "Show" : "Hide";
  });
  const keep = setting.set ? link("Keep the old one", () => { state.replacing = false; forget(state); pending(); }) : null;
  return [line, links(see, keep)];
}

function links(...inside) { return make("div", { class: "links" }, ...inside); }
function link(words, does) { return make("button", { type: "button", class: "link", onclick: does }, words); }

// What is changed ----------------------------------------------------------------------------

const changed = () => [...rows.values()].filter((state) => state.edited !== undefined);

function pending() {
  const number = changed().length;
  document.getElementById("pending").hidden = !number;
  document.getElementById("count").textContent = `${number} unsaved ${number === 1 ? "change" : "changes"}`;
}

function body(states) {
  return {
    changes: Object.fromEntries(states.map((state) => [state.setting.name, state.edited])),
    based: Object.fromEntries(states.map((state) => [state.setting.name, state.based])),
  };
}

async function save(sure = false) {
  const states = changed();
  try {
    const said = await ask("/api/settings", { ...body(states), sure });
    document.getElementById("notes").replaceChildren();  // what was wrong before is not any more
    show(said);
    note(["Saved.", ...said.said].join(" · "));
    if (sure) ask("/api/session").catch(() => {});  // who signed out themselves is led to the sign-in
  } catch (fault) {
    const { status, said } = fault;
    if (status === 428) return confirmed(said.warnings);
    if (status === 422) blame(said.wrong);
    else if (status === 409) said.clashes.forEach(clashed);
    note(sentence(fault.message), true);
  }
  return undefined;
}

function blame(all) {
  let first;
  for (const [name, words] of Object.entries(all)) {
    const state = rows.get(name);
    if (!state) { note(`${name} ${words}`, true); continue; }
    wrong(state, words);
    first ??= state;
  }
  reveal(first);
}

function reveal(state) {
  if (!state) return;
  document.getElementById("search").value = "";
  search();
  state.element.scrollIntoView({ block: "center" });
  state.edit.querySelector("input, select, textarea, button")?.focus({ preventScroll: true });
}

function clashed({ name, by, at, value, revision }) {
  const state = rows.get(name);
  if (!state) return;
  const theirs = state.setting.kind === "secret" ? "entered another one" : value === null ? "removed what was saved" : value ? `set it to ${value}` : "changed it";
  state.clash.hidden = false;
  state.clash.replaceChildren(
    make("p", {}, `${by} ${theirs}${at ? ` (${when(at)})` : ""} while you were here.`),
    links(
      link("Take theirs", async () => {
        state.setting = { ...state.setting, value, revision, set: value !== null || state.setting.kind === "secret" && revision > 0, by, at };
        state.based = revision;
        forget(state);
        pending();
      }),
      link("Keep mine", () => { state.based = revision; state.clash.hidden = true; })));
  reveal(state);
}

function confirmed(warnings) {
  const dialog = document.getElementById("sure");
  document.getElementById("warnings").replaceChildren(...warnings.map((one) => make("p", {}, one)));
  dialog.returnValue = "no";
  dialog.onclose = () => { if (dialog.returnValue === "yes") busy(document.getElementById("save"), () => save(true)); };
  dialog.showModal();
}

// Tests ------------------------------------------------------------------------------------------

async function test(button, what, group, results) {
  await busy(button, async () => {
    const mine = changed().filter((state) => group.settings.some((one) => one.name === state.setting.name));
    results.replaceChildren(make("ul", {}, make("li", {}, "Asking …")));
    try {
      const said = await ask("/api/settings/test", { what, ...body(mine) });
      results.replaceChildren(make("ul", {}, ...said.findings.map(finding),
        make("li", {}, make("small", {}, `${said.seconds} s${mine.length ? ", with what is not saved yet" : ""}`))));
    } catch (fault) {
      results.replaceChildren();
      if (fault.status === 422) blame(fault.said.wrong);
      throw fault;
    }
  });
}

function finding({ name, ok, detail, fix }) {
  return make("li", {}, make("span", { class: `tag ${ok ? "good" : "bad"}` }, ok ? "works" : "does not work"), ` ${name}: ${detail}`,
    fix ? make("small", {}, `→ ${fix}`) : null);
}

// Search -----------------------------------------------------------------------------------------

function search() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let any = false;
  for (const group of form.querySelectorAll(".group")) {
    const title = group.querySelector("h2").textContent;
    let some = false;
    for (const element of group.querySelectorAll(".setting")) {
      const said = `${title} ${element.querySelector(".about").textContent}`.toLowerCase();
      const found = words.every((word) => said.includes(word));
      element.hidden = !found;
      some ||= found;
    }
    group.hidden = !some;
    any ||= some;
  }
  document.getElementById("none").hidden = any || !rows.size;
}

document.getElementById("search").addEventListener("input", search);
document.getElementById("discard").addEventListener("click", () => {
  changed().forEach((state) => { state.replacing = false; forget(state); });
  pending();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (changed().length) busy(document.getElementById("save"), () => save());
});
form.addEventListener("keydown", (event) => {  // Enter in one field does not save all of them
  if (event.key === "Enter" && event.target.tagName === "INPUT" && !(event.ctrlKey || event.metaKey)) event.preventDefault();
});
addEventListener("keydown", (event) => {
  if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
});
addEventListener("beforeunload", (event) => { if (changed().length) event.preventDefault(); });
if (Intl.supportedValuesOf) {
  document.getElementById("zones").append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => make("option", { value: zone })));
}
ask("/api/settings").then((all) => {
  show(all);
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
}, (fault) => {
  form.replaceChildren(make("p", { class: "empty" }, fault.message));
});
