// Two steps on one page: the address, then the code that was sent to it.
import { ask } from "./page.js";

const onward = document.querySelector(".signin").dataset.onward;
const first = document.getElementById("ask"), second = document.getElementById("prove");
const email = document.getElementById("email"), code = document.getElementById("code");
const KEPT = "laneway-signing-in";  // where a page that is loaded again goes on

function wrong(input, id, text) {
  const said = document.getElementById(id);
  said.textContent = text;
  said.hidden = !text;
  if (text) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
}

async function busy(form, work) {
  const button = form.querySelector("button.main");
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try { await work(); } finally { button.removeAttribute("aria-busy"); }
}

function show(step) {
  first.hidden = step !== first;
  second.hidden = step !== second;
  wrong(email, "ask-wrong", "");
  wrong(code, "code-wrong", "");
  document.getElementById("to").textContent = email.value.trim();
  (step === first ? email : code).focus();
}

async function send() {
  await ask("/api/signin/start", { email: email.value });
  sessionStorage.setItem(KEPT, JSON.stringify({ email: email.value, at: Date.now() }));
}

first.addEventListener("submit", (event) => {
  event.preventDefault();
  busy(first, async () => {
    wrong(email, "ask-wrong", "");
    if (!email.value.includes("@")) {
      wrong(email, "ask-wrong", "Type your mail address, like ana@example.org.");
      email.focus();
      return;
    }
    try {
      await send();
      code.value = "";
      show(second);
    } catch (fault) {
      wrong(email, "ask-wrong", fault.message);
    }
  });
});

const digits = () => code.value.normalize("NFKC").replace(/\D/g, "");

async function prove() {
  wrong(code, "code-wrong", "");
  if (!digits()) {
    wrong(code, "code-wrong", "Type the eight digits of the code.");
    code.focus();
    return;
  }
  try {
    await ask("/api/signin/verify", { email: email.value, code: code.value });
    sessionStorage.removeItem(KEPT);
    location.replace(onward);
  } catch (fault) {
    wrong(code, "code-wrong", fault.said?.ask_again ? "That was wrong too often. Press “New code”, then type the one that comes." : fault.message);
    code.select();
  }
}

second.addEventListener("submit", (event) => {
  event.preventDefault();
  busy(second, prove);
});

// A pasted or filled-in code is whole at once: there is nothing left to press.
code.addEventListener("input", (event) => {
  const byHand = event.data?.length === 1 || event.inputType?.startsWith("delete");
  if (!byHand && digits().length === 8) second.requestSubmit();
});

document.getElementById("again").addEventListener("click", () => busy(second, async () => {
  try {
    await send();
    show(second);
    code.value = "";
    document.getElementById("code-hint").textContent = "A new code is on its way. It is good for 10 minutes, in this browser only.";
  } catch (fault) {
    wrong(code, "code-wrong", fault.message);
  }
}));

document.getElementById("back").addEventListener("click", () => {
  sessionStorage.removeItem(KEPT);
  show(first);
});

const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
if (kept && Date.now() - kept.at < 600_000) {
  email.value = kept.email;
  show(second);
}
