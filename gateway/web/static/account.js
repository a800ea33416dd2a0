// Where I am signed in, and my time zone.
import { ask, busy, note, when } from "./page.js";

for (const time of document.querySelectorAll("time")) {
  time.title = time.dateTime;
  time.textContent = when(time.dateTime);
}

const at = (id) => document.getElementById(id);
const others = () => document.querySelectorAll("#places .end");

at("signout").addEventListener("click", () => busy(at("signout"), async () => {
  await ask("/api/signout", {});
  location.assign("/signin");
}));

at("places").addEventListener("click", (event) => {
  const button = event.target.closest(".end");
  if (!button) return;
  const place = button.closest("li");
  busy(button, async () => {
    try {
      await ask("/api/account/end", { id: place.dataset.id });
    } catch (fault) {
      if (fault.status !== 404) throw fault;  // it is over already: that is what was wanted
    }
    place.remove();
    if (!others().length) at("end-others")?.closest("p").remove();
    at("places-title").setAttribute("tabindex", "-1");
    at("places-title").focus();
    note("Ended. That browser has to sign in again.");
  });
});

at("end-others")?.addEventListener("click", () => busy(at("end-others"), async () => {
  const { ended } = await ask("/api/account/end-others", {});
  for (const button of others()) button.closest("li").remove();
  at("end-others").closest("p").remove();
  note(ended === 1 ? "One sign-in was ended." : `${ended} sign-ins were ended.`);
}));

at("zone-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button"), said = at("zone-wrong");
  busy(button, async () => {
    said.hidden = true;
    at("zone").removeAttribute("aria-invalid");
    try {
      const { zone } = await ask("/api/account/zone", { zone: at("zone").value.trim() });
      note(zone ? `Your time zone is ${zone} now.` : "The gateway's own time zone is used now.");
    } catch (fault) {
      said.textContent = fault.message;
      said.hidden = false;
      at("zone").setAttribute("aria-invalid", "true");
      at("zone").focus();
    }
  });
});
