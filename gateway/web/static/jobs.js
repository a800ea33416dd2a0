// Jobs: change them, and make new ones with what a WHEN means shown while it is written.
import { act, again, keep } from "./acting.js";
import { ask, busy, make, note } from "./page.js";

const at = (id) => document.getElementById(id);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-job]");
  if (button) act(button, `/api/jobs/${button.dataset.job}`, { do: button.dataset.do });
});
keep();

// A new one -----------------------------------------------------------------------------------

const CONDITIONS = {
  url: [["changed", "it changes"], ["contains", "it contains"], ["status", "the status is"], ["json", "a value in its JSON is"]],
  run: [["exit", "its exit status is"], ["changed", "what it says changes"], ["contains", "it says"]],
  file: [["changed", "it changes"], ["exists", "it is there"], ["contains", "it contains"]],
};
const TARGETS = {
  url: ["Address", "https://example.org/"], run: ["Command", "make test"], file: ["Path", "report.csv"],
};
const QUOTES = [['"', '"'], ["“", "”"], ["'", "'"]];
const form = at("make");
const watching = () => form.elements.kind.value === "watch";

/** In quotes that do not stand in the text itself. */
function quoted(text) {
  const pair = QUOTES.find(([open, close]) => !text.includes(open) && !text.includes(close));
  if (!pair) throw new Error("This text holds every kind of quotes; leave one kind out.");
  return pair[0] + text + pair[1];
}

/** What is looked at, in the words of /watch. */
function watched() {
  const look = at("look").value, target = at("target").value.trim();
  const wait = at("condition").value, value = at("value").value.trim();
  const what = `${look} ${look === "url" ? target : quoted(target)}`;
  if (wait === "contains") return `${what} contains ${quoted(value)}`;
  if (wait === "status" || wait === "exit") return `${what} ${wait} ${at("op").value} ${value}`;
  if (wait !== "json") return `${what} ${wait}`;
  const plainly = /^-?\d+(\.\d+)?$|^(true|false|null)$/.test(value) ? value : quoted(value);
  return `${what} json ${at("path").value.trim() || "."} ${at("op").value} ${plainly}`;
}

const often = (when) => (/^(every|each|daily|monthly)\b/i.test(when) ? when : `every ${when}`);

/** The fields that the gateway makes the same words of as are written in a chat. */
function wish() {
  const body = {
    when: at("when").value, catch_up: at("late").value, if_busy: at("busy").value, budget: at("budget").value,
  };
  if (watching()) Object.assign(body, { watch: watched(), until: at("until").value, each_time: at("each").checked });
  return body;
}

function fields() {
  const watch = watching(), look = at("look").value;
  for (const one of form.querySelectorAll("[data-for]")) one.hidden = one.dataset.for !== (watch ? "watch" : "times");
  at("when").placeholder = watch ? "every 5m" : "every day at 09:00";
  const [label, hint] = TARGETS[look];
  form.querySelector("label[for=target]").textContent = label;
  at("target").placeholder = hint;
  if (at("condition").dataset.of !== look) {
    at("condition").dataset.of = look;
    at("condition").replaceChildren(...CONDITIONS[look].map(([value, says]) => make("option", { value }, says)));
  }
  const wait = at("condition").value;
  at("value-field").hidden = !["contains", "status", "exit", "json"].includes(wait);
  at("op-field").hidden = !["status", "exit", "json"].includes(wait);
  at("path-field").hidden = wait !== "json";
  form.querySelector("label[for=value]").textContent = wait === "status" || wait === "exit" ? "Number" : wait === "json" ? "Value" : "Text";
}

let pause, asked = 0;
const HINT = at("when-said")?.firstElementChild;

/** What it means, or why it means nothing, a moment after the last key. */
function look() {
  clearTimeout(pause);
  pause = setTimeout(async () => {
    const mine = ++asked;
    const said = at("when-said");
    at("composed").hidden = true;
    if (!at("when").value.trim() || (watching() && !at("target").value.trim())) {
      at("when").removeAttribute("aria-invalid");
      said.replaceChildren(HINT);
      return;
    }
    try {
      const body = wish();
      if (watching()) {
        at("composed").hidden = false;
        at("composed").querySelector("code").textContent = `/watch ${body.watch} ${often(body.when.trim())} : …`;
      }
      const found = await ask("/api/when", body);
      if (mine !== asked) return;
      at("when").removeAttribute("aria-invalid");
      const head = watching() ? `Looks now, then until ${found.until}:` : found.once ? "Runs once:" : "Next:";
      said.replaceChildren(make("ul", {}, make("li", { class: "soft" }, head),
        ...found.coming.map((one) => make("li", { class: "tag good" }, make("time", { datetime: one.at }, one.said)))));
    } catch (fault) {
      if (mine !== asked) return;
      at("when").setAttribute("aria-invalid", "true");
      said.replaceChildren(make("p", { class: "wrong" }, fault.message));
    }
  }, 300);
}

function wrong(text) {
  at("wrong").textContent = text;
  at("wrong").hidden = !text;
}

form?.addEventListener("input", () => { fields(); look(); wrong(""); });
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  busy(form.querySelector("[type=submit]"), async () => {
    try {
      const job = await ask("/api/jobs", { lane: at("lane").value, prompt: at("prompt").value, ...wish() });
      const lane = at("lane").value;
      form.reset();
      at("lane").value = lane;
      fields();
      at("when-said").replaceChildren(HINT);
      at("composed").hidden = true;
      wrong("");
      at("new").open = false;
      note(`Job ${job.id} is set.`);
      await again();
      at(`job-${job.id}`)?.querySelector("a")?.focus();
    } catch (fault) {
      wrong(fault.message);
    }
  });
});
if (form) fields();
