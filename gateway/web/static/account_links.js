// The chats that are part of this account: a code to add one, and a way to take one out.
import { sure } from "./acting.js";
import { ask, busy, make, note } from "./page.js";

const at = (id) => document.getElementById(id);
const LOOK = 3000;  // ms between two looks while a code is shown
let timer, until = 0, known = null;

function shown(chats) {
  at("chat-list").removeAttribute("aria-busy");
  at("chat-list").replaceChildren(...chats.map((chat) => make("li", {},
    make("div", { class: "grow" }, make("strong", {}, chat.name), " ",
      chat.name === chat.identity ? null : make("code", {}, chat.identity),
      make("br"), make("small", {}, `since ${chat.since}`)),
    make("button", { class: "small danger", "aria-label": `Unlink ${chat.name}`, onclick: (event) => unlink(event.target, chat) }, "Unlink"))));
  if (!chats.length) at("chat-list").append(make("li", { class: "soft" }, "None yet."));
}

async function look() {
  const { chats } = await ask("/api/account/links");
  const added = known && chats.find((chat) => !known.has(chat.identity));
  if (!known || chats.length !== known.size || added) shown(chats);
  known = new Set(chats.map((chat) => chat.identity));
  if (added && until) {
    hide();
    note(`${added.name} is part of your account now.`);
  }
}

function unlink(button, chat) {
  busy(button, async () => {
    if (!(await sure(`Take ${chat.name} out of your account? Its threads are no longer shown here.`, { yes: "Unlink" }))) return;
    const { said } = await ask("/api/account/links/remove", { identity: chat.identity });
    note(said);
    await look();
    at("link-new").focus();
  });
}

function hide() {
  clearInterval(timer);
  until = 0;
  at("link-code").hidden = true;
  at("link-new").textContent = "Add a chat";
}

function left() {
  const minutes = Math.ceil((until - Date.now()) / 60000);
  if (minutes <= 0) {
    hide();
    note("The code has expired. Show a new one when you need it.");
    return;
  }
  const said = `It works once, within the next ${minutes === 1 ? "minute" : `${minutes} minutes`}. Do not show it to others.`;
  if (at("link-left").textContent !== said) at("link-left").textContent = said;
  if (!document.hidden) look().catch(() => {});
}

at("link-new").addEventListener("click", () => busy(at("link-new"), async () => {
  const made = await ask("/api/account/links/code", {});
  clearInterval(timer);
  until = new Date(made.until).getTime();
  at("link-words").textContent = `/link ${made.code}`;
  at("link-code").hidden = false;
  at("link-new").textContent = "Another code";
  left();
  timer = setInterval(left, LOOK);
}));

at("link-copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("link-words").textContent);
    note("Copied.");
  } catch {
    getSelection().selectAllChildren(at("link-words"));
    note("Select it and copy it by hand.", true);
  }
});

look().catch((fault) => {
  at("chat-list").replaceChildren(make("li", { class: "wrong" }, fault.message));
});
