// The page behind a link: looking at it changes nothing, its button signs in.
import { ask } from "./page.js";

const given = new URLSearchParams(location.hash.slice(1)).get("token")
  ?? new URLSearchParams(location.search).get("token") ?? location.hash.slice(1);
history.replaceState(null, "", "/signin/link");  // out of the address bar, the history and logs
const button = document.getElementById("go"), said = document.getElementById("wrong");

function wrong(text) {
  said.textContent = text;
  said.hidden = false;
}

if (!given) {
  wrong("This link is not whole. Copy all of it, to its very end.");
  button.disabled = true;
}

document.getElementById("follow").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (button.getAttribute("aria-busy") === "true") return;
  button.setAttribute("aria-busy", "true");
  try {
    await ask("/api/signin/link", { token: given });
    location.replace("/");
  } catch (fault) {
    wrong(fault.message);
    button.disabled = fault.status === 401;
  } finally {
    button.removeAttribute("aria-busy");
  }
});
