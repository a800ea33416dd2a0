// What every page uses: asking the gateway, saying how it went, and staying live.

/** Ask the gateway; the answer's JSON, or an Error whose message is for people. */
export async function ask(path, body, method) {
  const how = { method: method ?? (body === undefined ? "GET" : "POST"), headers: {} };
  if (body !== undefined) {
    how.headers["Content-Type"] = "application/json";
    how.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, how);
  } catch {
    throw new Error("The gateway cannot be reached. Is it running?");
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401 && !path.startsWith("/api/signin")) signIn();
  if (!answer.ok) throw Object.assign(new Error(said.error ?? `The gateway answered ${answer.status}.`), { status: answer.status, said });
  return said;
}

function signIn() {
  location.assign(`/signin?next=${encodeURIComponent(location.pathname)}`);
}

/** Say something for a while, read out to those who do not see it. */
export function note(text, bad = false) {
  const said = document.createElement("p");
  said.textContent = text;
  said.classList.toggle("bad", bad);
  for (const one of [...document.querySelectorAll("#notes p")]) if (one.textContent === text) one.remove();
  document.getElementById("notes").append(said);
  setTimeout(() => said.remove(), bad ? 12000 : 5000);
}

/** Do something once at a time while its button says so; what goes wrong is said. */
export async function busy(button, work) {
  if (button.getAttribute("aria-busy") === "true") return undefined;
  button.setAttribute("aria-busy", "true");
  try {
    return await work();
  } catch (fault) {
    note(fault.message, true);
    return undefined;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** An element: make("p", {class: "soft"}, "text", another). Text is never markup. */
export function make(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...inside.filter((one) => one !== null && one !== undefined));
  return made;
}

/**
 * Server-sent events by name. A connection that breaks comes back by itself; each new one begins
 * with the whole state, so nothing is lost or doubled. `down` is told whether it is broken.
 */
export function events(path, on, down = () => {}) {
  let source, again, pause = 1000;
  const open = () => {
    source = new EventSource(path);
    source.onopen = () => { pause = 1000; down(false); };
    source.onerror = () => {
      down(true);
      if (source.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
      ask("/api/session").catch(() => {});  // who was signed out is led to the sign-in
      again = setTimeout(open, pause);
      pause = Math.min(pause * 2, 30000);
    };
    for (const [name, does] of Object.entries(on)) {
      source.addEventListener(name, (event) => does(JSON.parse(event.data)));
    }
  };
  open();
  return () => { clearTimeout(again); source.close(); };
}

/** An instant as people say it: today by the clock, else with its day. */
export function when(iso) {
  if (!iso) return "";
  const at = new Date(iso), now = new Date();
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === now.toDateString()) return clock;
  const day = { day: "numeric", month: "short" };
  if (at.getFullYear() !== now.getFullYear()) day.year = "numeric";
  return `${at.toLocaleDateString([], day)}, ${clock}`;
}

/** How long something has lasted. */
export function lasting(iso) {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(iso)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** US dollars, with more decimals where it is less than a cent. */
export function dollars(value) {
  if (value === null || value === undefined) return "–";
  return `$${value !== 0 && Math.abs(value) < 0.01 ? value.toPrecision(2) : value.toFixed(2)}`;
}
