// Writing a message: kept until it is sent, sent once however often it is tried.
import { ask, make, note } from "./page.js";
import { bytes } from "./log.js";

const DRAFT = "laneway.draft.", UNSENT = "laneway.unsent.";
const AGAIN = 3000;  // ms between tries
const at = (id) => document.getElementById(id);
const load = (key) => { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } };
const keep = (key, value) => { try { if (value) localStorage.setItem(key, JSON.stringify(value)); else localStorage.removeItem(key); } catch { /* full or forbidden: it works without */ } };
const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");

export class Composer {
  constructor(parts) {
    Object.assign(this, parts);
    this.text = at("text");
    this.files = [];
    this.unsent = load(UNSENT + this.lane) ?? [];
    this.trying = false;
    this.chosen = -1;
    this.draft = DRAFT + (this.opened ? this.lane : "new");
    const draft = load(this.draft);
    if (draft) { this.text.value = draft.text; draft.files.forEach((file) => this.attached({ ...file, done: true })); }
    at("composer").addEventListener("submit", (event) => { event.preventDefault(); this.send(); this.text.focus(); });  // also on a phone, whose keyboard stays
    this.text.addEventListener("keydown", (event) => this.key_(event));
    this.text.addEventListener("input", () => { this.grow(); this.save(); this.suggest(); });
    this.text.addEventListener("paste", (event) => this.take([...event.clipboardData.files], event));
    this.text.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
    at("attach").addEventListener("click", () => at("file").click());
    at("file").addEventListener("change", () => { this.take([...at("file").files]); at("file").value = ""; });
    const box = document.getElementById("chat");
    box.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) { event.preventDefault(); box.classList.add("drop"); } });
    box.addEventListener("dragleave", (event) => { if (!box.contains(event.relatedTarget)) box.classList.remove("drop"); });
    box.addEventListener("drop", (event) => { box.classList.remove("drop"); this.take([...event.dataTransfer.files], event); });
    addEventListener("online", () => this.flush());
    this.grow();
    this.showUnsent();
    if (matchMedia("(pointer: fine)").matches) this.text.focus();  // on a phone it would open the keyboard
  }

  /** The thread was shown whole: what is not in it stands below it. */
  there() { this.showUnsent(); this.flush(); }

  // Sending ----------------------------------------------------------------------------------

  send() {
    const text = this.text.value;
    if (this.files.some((file) => !file.done && !file.failed)) { note("A file is still on its way; it is sent with the message when it is there."); return; }
    const files = this.files.filter((file) => file.done);
    if (!text.trim() && !files.length) { this.text.focus(); return; }
    const one = { id: newId(), text, files: files.map(({ id, name, size }) => ({ id, name, size })), at: Date.now() };
    this.unsent.push(one);
    this.saveUnsent();
    this.text.value = "";
    this.files = [];
    at("attached").replaceChildren();
    keep(this.draft, null);
    this.draft = DRAFT + this.lane;
    this.grow();
    this.hide();
    this.began();
    this.show(one);
    this.flush();
  }

  show(one) {
    const shown = document.createElement("div");
    shown.textContent = one.text;
    this.log.local({
      id: `local ${one.id}`, ref: one.id, at: one.at, kind: "said", key: this.key, name: this.name, turn: null,
      html: shown.innerHTML.replaceAll("\n", "<br>"), files: one.files.map((file) => ({ ...file, url: `/api/files/in-${file.id}/${encodeURIComponent(file.name)}` })),
      receipt: one.why ? "refused" : one.kept ? "kept" : "sending", why: one.why ?? "", note: "",
      buttons: one.why ? [[{ label: "Write it again", style: "", run: () => this.again(one) }, { label: "Remove", style: "danger", run: () => this.forget(one) }]] : [],
    });
  }

  showUnsent() { for (const one of this.unsent) this.show(one); }
  saveUnsent() { keep(UNSENT + this.lane, this.unsent.length ? this.unsent : null); }

  /** Send what waits, in its order; what cannot be sent now is tried again. */
  async flush() {
    if (this.trying) return;
    this.trying = true;
    try {
      for (let one; (one = this.unsent.find((waiting) => !waiting.why)); ) {
        if (this.log.refs.has(one.id)) {  // it is there, only the answer to it was lost
          this.unsent = this.unsent.filter((other) => other !== one);
          continue;
        }
        try {
          await ask(`/api/lanes/${encodeURIComponent(this.lane)}/say`, { id: one.id, text: one.text, files: one.files.map((file) => file.id) });
          this.unsent = this.unsent.filter((other) => other !== one);
        } catch (fault) {
          if (!fault.status || fault.status >= 500 || fault.status === 401 || fault.status === 429) {
            one.kept = true;
            this.show(one);
            clearTimeout(this.timer);
            this.timer = setTimeout(() => this.flush(), AGAIN);
            return;
          }
          one.why = fault.message;
          this.show(one);
        }
        this.saveUnsent();
      }
    } finally {
      this.trying = false;
      this.saveUnsent();
    }
  }

  forget(one) {
    this.unsent = this.unsent.filter((other) => other !== one);
    this.saveUnsent();
    this.log.remove(`local ${one.id}`);
  }

  again(one) {
    this.forget(one);
    this.text.value = [one.text, this.text.value].filter(Boolean).join("\n");
    this.grow();
    this.save();
    this.text.focus();
  }

  save() {
    const files = this.files.filter((file) => file.done).map(({ id, name, size }) => ({ id, name, size }));
    keep(this.draft, this.text.value || files.length ? { text: this.text.value, files } : null);
  }

  grow() {
    this.text.rows = 1;
    const line = parseFloat(getComputedStyle(this.text).lineHeight) || 24;
    this.text.rows = Math.min(10, Math.max(1, Math.round((this.text.scrollHeight - 12) / line)));
  }

  // Keys and commands ------------------------------------------------------------------------

  key_(event) {
    const open = !at("suggestions").hidden;
    if (open && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      const count = at("suggestions").children.length;
      this.mark((this.chosen + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
    } else if (open && (event.key === "Tab" || (event.key === "Enter" && this.chosen >= 0))) {
      event.preventDefault();
      this.choose(at("suggestions").children[Math.max(this.chosen, 0)]);
    } else if (open && event.key === "Escape") {
      event.preventDefault();
      this.hide();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send();
    }
  }

  suggest() {
    const typed = /^\/([a-z]*)$/i.exec(this.text.value);
    const found = typed ? this.commands.filter((one) => one.name.startsWith(typed[1].toLowerCase())).slice(0, 8) : [];
    if (!found.length || (found.length === 1 && found[0].name === typed[1])) { this.hide(); return; }
    at("suggestions").replaceChildren(...found.map((one, nth) => make("li", {
      role: "option", id: `suggestion-${nth}`, "data-name": one.name, "data-args": one.args, "aria-selected": "false",
      onmousedown: (event) => { event.preventDefault(); this.choose(event.currentTarget); },
    }, make("b", {}, `/${one.name}${one.args ? ` ${one.args}` : ""}`), ` ${one.line}`)));
    at("suggestions").hidden = false;
    this.chosen = -1;
    this.text.removeAttribute("aria-activedescendant");
  }

  mark(nth) {
    this.chosen = nth;
    [...at("suggestions").children].forEach((one, place) => one.setAttribute("aria-selected", String(place === nth)));
    this.text.setAttribute("aria-activedescendant", `suggestion-${nth}`);
  }

  choose(item) {
    this.text.value = `/${item.dataset.name}${item.dataset.args ? " " : ""}`;
    this.hide();
    this.save();
    this.text.focus();
  }

  hide() { at("suggestions").hidden = true; this.chosen = -1; this.text.removeAttribute("aria-activedescendant"); }

  // Files ------------------------------------------------------------------------------------

  take(files, event) {
    if (!files.length) return;
    event?.preventDefault();
    for (const file of files) this.upload(file);
    this.text.focus();
  }

  upload(file) {
    const one = this.attached({ name: file.name || "file", size: file.size });
    const form = new FormData(), call = new XMLHttpRequest();
    form.append("file", file, one.name);
    one.call = call;
    call.upload.onprogress = (event) => { if (event.lengthComputable) one.bar.value = event.loaded / event.total; };
    call.onload = () => {
      let said = {};
      try { said = JSON.parse(call.responseText); } catch { /* told below */ }
      if (call.status === 200) Object.assign(one, { id: said.id, name: said.name, done: true });
      else { one.failed = true; note(`${one.name}: ${said.error ?? `the gateway answered ${call.status}`}`, true); this.detach(one); }
      one.bar.remove();
      this.save();
    };
    call.onerror = () => { one.failed = true; note(`${one.name} could not be sent up; add it again when the connection is back.`, true); this.detach(one); };
    call.open("POST", "/api/files");
    call.send(form);
  }

  attached(one) {
    one.bar = make("progress", { max: 1, value: 0, "aria-label": `Sending up ${one.name}` });
    one.item = make("li", {}, `📎 ${one.name} (${bytes(one.size)}) `, one.done ? null : one.bar,
      make("button", { type: "button", class: "small", "aria-label": `Remove ${one.name}`, onclick: () => { this.detach(one); this.text.focus(); } }, "×"));
    at("attached").append(one.item);
    this.files.push(one);
    return one;
  }

  detach(one) {
    one.call?.abort();
    one.item.remove();
    this.files = this.files.filter((other) => other !== one);
    this.save();
  }
}
