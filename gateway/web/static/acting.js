// What pages share that list things and change them: ask first, say how it went, show it anew.
import { ask, busy, make, note } from "./page.js";

const CALM = 20000;  // ms between two looks where nothing tells of changes
const SOON = [1500, 4000, 9000];  // ms after a change until what it led to is looked for
let newest = 0;

/** Show the part of this page that changes as it is now; what is open or in focus stays so. */
export async function again(id = "live") {
  const mine = ++newest;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => {
    throw new Error("The gateway cannot be reached; what you see may be old.");
  });
  if (answer.redirected) location.assign("/signin");
  if (!answer.ok) throw new Error(answer.status === 404 ? "This is not there any more." : "The page could not be shown anew.");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const old = document.getElementById(id), now = page.getElementById(id);
  if (mine !== newest || !old || !now || old.innerHTML === now.innerHTML) return;
  for (const kept of old.querySelectorAll("details[data-keep]")) {
    const same = now.querySelector(`#${CSS.escape(kept.id)}`);
    if (same) same.open = kept.open;
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  if (focused?.matches("input, select, textarea")) return;  // somebody is writing
  old.replaceWith(document.adoptNode(now));
  if (focused) (same(now, focused) ?? document.getElementById("content")).focus();
}

/** What was in focus, in the new part: by its id, else by what it is called, else what is beside it. */
function same(part, focused) {
  const name = focused.getAttribute("aria-label") ?? focused.textContent;
  const box = focused.closest("li[id]");
  return (focused.id && document.getElementById(focused.id))
    || [...part.querySelectorAll(focused.tagName)].find((one) => (one.getAttribute("aria-label") ?? one.textContent) === name)
    || (box && document.getElementById(box.id)?.querySelector("button"));
}

/** Keep it as it is now, calmly and only while somebody looks. */
export function keep(every = CALM) {
  let told = false;  // that it cannot be looked at; once
  const look = async () => {
    if (document.hidden) return;
    try {
      await again();
      told = false;
    } catch (fault) {
      if (!told) note(fault.message, true);
      told = true;
    }
  };
  const timer = setInterval(look, every);
  document.addEventListener("visibilitychange", look);
  return () => { clearInterval(timer); document.removeEventListener("visibilitychange", look); };
}

/** Ask whether it is meant; where a word is named it has to be written. */
export function sure(question, { word = "", yes = "Yes" } = {}) {
  return new Promise((resolve) => {
    const typed = word ? make("input", { autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-label": `Write ${word}` }) : null;
    const go = make("button", { type: "submit", class: "danger", disabled: Boolean(word) }, yes);
    const no = make("button", { type: "button" }, "No, leave it");
    const form = make("form", { method: "dialog" },
      make("p", { class: "question" }, question),
      word ? make("label", {}, `Write “${word}” to go on`, typed) : null,
      make("div", { class: "row" }, go, no));
    const box = make("dialog", { class: "sure", "aria-label": "Are you sure?" }, form);
    typed?.addEventListener("input", () => { go.disabled = typed.value.trim().toLowerCase() !== word.toLowerCase(); });
    no.addEventListener("click", () => box.close());
    form.addEventListener("submit", () => { box.returnValue = "yes"; });
    box.addEventListener("close", () => { box.remove(); resolve(box.returnValue === "yes"); });
    document.body.append(box);
    box.showModal();
    (typed ?? no).focus();
  });
}

/** A button does one thing: asks first if it says so, then says how it went and shows it anew. */
export function act(button, path, body) {
  return busy(button, async () => {
    const { confirm, word, yes } = button.dataset;
    if (confirm && !(await sure(confirm, { word, yes: yes ?? button.textContent.trim() }))) return;
    const answer = await ask(path, word ? { ...body, word } : body);
    if (answer.said) note(answer.said);
    await again();
    for (const pause of SOON) setTimeout(() => again().catch(() => {}), pause);
  });
}
