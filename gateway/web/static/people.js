// People and what admins did: one button, one change; and forms that add.
import { act, again, keep } from "./acting.js";
import { ask, busy, note } from "./page.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post]");
  if (button) act(button, button.dataset.post, JSON.parse(button.dataset.send));
});

for (const form of document.querySelectorAll("form[data-post]")) {
  const wrong = form.querySelector(".wrong"), first = form.querySelector("input");
  form.addEventListener("input", () => { wrong.hidden = true; first.removeAttribute("aria-invalid"); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector("button"), async () => {
      try {
        const { said } = await ask(form.dataset.post, Object.fromEntries(new FormData(form)));
        form.reset();
        note(said);
        await again();
      } catch (fault) {
        wrong.textContent = fault.message;
        wrong.hidden = false;
        first.setAttribute("aria-invalid", "true");
        first.focus();
      }
    });
  });
}
keep();
